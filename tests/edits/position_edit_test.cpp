// Edits of positions: words, and what they do in models of both kinds, against definitions of their own.

#include "core/edits/position_edit.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "core/attention/lsh.h"
#include "core/attention/positions/alibi.h"
#include "core/base/error.h"
#include "core/metrics/next_token.h"
#include "core/model/weights.h"
#include "core/run/run_request.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"
#include "tests/support/worst.h"

namespace headscope::position_edit_test {

using testing::largest_difference;
using testing::reference;
using testing::Worst;

namespace {

std::string refusal(const std::string& words) {
  try {
    parse_edit_action(words, "edit");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

struct Bench {
  explicit Bench(const std::filesystem::path& where) : loaded(load_model(where, backend)) {
    plain.model = where;
    plain.ids = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7};
    plain.capture.maps = MapStorage::dense;
  }
  std::shared_ptr<const Trace> operator()(std::vector<const char*> edits, std::set<SiteKind> sites = {}) {
    RunRequest request = plain;
    for (const char* edit : edits) request.edits.push_back(parse_intervention(edit, "test"));
    request.capture.sites = std::move(sites);
    return run(loaded, request, Ctx{backend});
  }
  std::string refused(const char* edit) {
    try {
      (*this)({edit});
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }
  Backend backend{1};
  LoadedModel loaded;
  RunRequest plain;
};

std::filesystem::path bundled(const char* name) {
  return headscope::testing::source_dir() / "models" / name;
}

}  // namespace

TEST_CASE("words of positions read back, and wrong ones are refused with the forms") {
  for (const char* words :
       {"position none", "position rope", "position rope base 500", "position rope scaling yarn 4",
        "position rope base 1234.5 scaling ntk 2.5", "position rope scaling none", "position sinusoidal",
        "position alibi", "position alibi on top", "position chunks 96", "position t5 128 bias 0,-0.5,1.25,3",
        "position shift 17", "position t5 16 bias 1,2 on top"})
    CHECK(text_of(parse_edit_action(words, "edit")) == words);
  CHECK(refusal("position").find("position none | rope") != std::string::npos);
  CHECK(refusal("position rope base").find("found \"nothing more\"") != std::string::npos);
  CHECK(refusal("position rope scaling yarn").find("nothing more") != std::string::npos);
  CHECK(refusal("position rope scaling yarm 2").find("\"yarm\"") != std::string::npos);
  CHECK(refusal("position rope scaling yarn 0.5").find("a factor from 1") != std::string::npos);
  CHECK(refusal("position rope base 1").find("a base from") != std::string::npos);
  CHECK(refusal("position rope base nan").find("a base from") != std::string::npos);
  CHECK(refusal("position shift -1").find("a shift from 0") != std::string::npos);
  CHECK(refusal("position t5 128 bias 1").find("2 to") != std::string::npos);
  CHECK(refusal("position t5 1 bias 1,2,3,4").find("largest distance") != std::string::npos);
  CHECK(refusal("position t5 9 bias 1,x").find("\"x\"") != std::string::npos);
  CHECK(refusal("position none at all").find("\"at all\"") != std::string::npos);
}

TEST_CASE("a rotary model does not notice a shift, and its own base changes nothing") {
  Bench bench(reference("llama-gqa"));
  const auto plain = bench({});
  CHECK(largest_difference(bench({"*: position rope"})->logits, plain->logits) < 1e-5);
  CHECK(largest_difference(bench({"*: position shift 100"})->logits, plain->logits) < 1e-3);
  CHECK(largest_difference(bench({"*: position rope base 500"})->logits, plain->logits) > 1e-2);
  CHECK(largest_difference(bench({"1.*: position none"})->logits, plain->logits) > 1e-3);
}

TEST_CASE("rotations recomputed by an edit are those of the definition") {
  Bench bench(reference("llama-gqa"));
  const auto trace =
      bench({"*: position rope base 777 scaling yarn 4"}, {SiteKind::q, SiteKind::k, SiteKind::rot_q, SiteKind::rot_k});
  const ModelConfig& config = bench.loaded.model->config();
  RotaryConfig own;
  own.base = 777;
  RotaryConfig turned = rescaled(own, RotaryConfig::Scaling::yarn, 4, config.context);
  turned.ramp = RotaryConfig::Ramp::whole_pairs;
  const auto theta = rotary_frequencies(turned, config.dims.d_head);
  for (const auto& [from, to] : {std::pair{SiteKind::q, SiteKind::rot_q}, std::pair{SiteKind::k, SiteKind::rot_k}}) {
    const Tensor &x = trace->sites.at({from, 1}), &y = trace->sites.at({to, 1});
    Worst most;
    for (Index p = 0; p < x.dim(0); ++p)
      for (Index h = 0; h < x.dim(1); ++h) {
        std::vector<double> vector;
        for (Index c = 0; c < x.dim(2); ++c) vector.push_back(static_cast<double>(x.at(p, h, c)));
        const auto expected =
            rotated(vector, static_cast<double>(p), theta, RotaryLayout::half_split, rotary_magnitude(turned));
        for (Index c = 0; c < x.dim(2); ++c)
          most.add(std::abs(expected[static_cast<std::size_t>(c)] - static_cast<double>(y.at(p, h, c))));
      }
    CHECK(most.value() < 1e-5);
  }
}

TEST_CASE("without positions and without a mask the outputs of permuted tokens are the permuted outputs") {
  for (const char* name : {"llama-gqa", "gpt2-random"}) {
    CAPTURE(name);
    Bench bench(reference(name));
    bench.plain.ids = {3, 14, 15};  // "dog bites man"
    const auto forward = bench({"*: position none", "*: mask full"});
    const auto causal = bench({"*: position none"});
    const auto placed = bench({"*: mask full"});
    bench.plain.ids = {15, 14, 3};  // "man bites dog"
    const auto backward = bench({"*: position none", "*: mask full"});
    const auto causal_backward = bench({"*: position none"});
    const auto placed_backward = bench({"*: mask full"});
    const auto worst = [](const Tensor& a, const Tensor& b) {
      Worst most;
      for (Index p = 0; p < 3; ++p) most.add(largest_difference(a.slice(0, p, p + 1), b.slice(0, 2 - p, 3 - p)));
      return most.value();
    };
    CHECK(worst(forward->logits, backward->logits) < 1e-4);
    CHECK(worst(causal->logits, causal_backward->logits) > 1e-3);  // the causal mask tells orders apart
    CHECK(worst(placed->logits, placed_backward->logits) > 1e-3);  // and so do positions
  }
}

TEST_CASE("without positions a DeBERTa's scores are those of contents alone, in the rows that an edit reaches") {
  Bench bench(reference("families/deberta_v2"));
  bench.plain.capture.maps = MapStorage::factored;
  const std::set<SiteKind> sites{SiteKind::q, SiteKind::k, SiteKind::attn_scores};
  const auto none = bench({"0.1@2..4: position none"}, sites), own = bench({}, sites),
             halved = bench({"*: temperature 2", "0.1@2..4: position none"}, sites);
  const Tensor &q = own->sites.at({SiteKind::q, 0}), &k = own->sites.at({SiteKind::k, 0});
  const double scale = 1 / std::sqrt(3.0 * 6);
  for (Index head = 0; head < 3; ++head)
    for (Index i = 0; i < 12; ++i)
      for (Index j = 0; j < 12; ++j) {
        double contents = 0;
        for (Index c = 0; c < 6; ++c)
          contents += scale * static_cast<double>(q.at(i, head, c)) * static_cast<double>(k.at(j, head, c));
        const auto before = static_cast<double>(own->sites.at({SiteKind::attn_scores, 0}).at(head, i, j)),
                   after = static_cast<double>(none->sites.at({SiteKind::attn_scores, 0}).at(head, i, j)),
                   half = static_cast<double>(halved->sites.at({SiteKind::attn_scores, 0}).at(head, i, j));
        const bool reached = head == 1 && i >= 2 && i <= 4;
        CHECK(after == doctest::Approx(reached ? contents : before).epsilon(1e-4));
        CHECK(half == doctest::Approx((reached ? contents : before) / 2).epsilon(1e-4));
        CHECK(std::abs(before - contents) > 1e-5);
      }
  // Nothing tells orders apart then.
  bench.plain.ids = {3, 14, 15};
  const auto forward = bench({"*: position none"}), placed = bench({});
  bench.plain.ids = {15, 14, 3};
  const auto backward = bench({"*: position none"}), placed_backward = bench({});
  CHECK(largest_difference(forward->logits.slice(0, 0, 1), backward->logits.slice(0, 2, 3)) < 1e-4);
  CHECK(largest_difference(placed->logits.slice(0, 0, 1), placed_backward->logits.slice(0, 2, 3)) > 1e-3);
  // The softmax that takes the place of the model's own is the same.
  const auto swapped = bench({"1.*: mechanism softmax"}), same = bench({});
  CHECK(largest_difference(swapped->logits, same->logits) < 1e-4);
}

TEST_CASE("ALiBi's bias and T5's are in the scores of each head") {
  Bench bench(reference("gpt2-random"));
  const auto bare = bench({"*: position none"}, {SiteKind::attn_scores});
  const auto alibi = bench({"*: position alibi"}, {SiteKind::attn_scores});
  const auto t5 = bench({"*: position t5 8 bias 0,1,2,3"}, {SiteKind::attn_scores});
  const int heads = bench.loaded.model->config().dims.heads;
  const auto slopes = alibi_slopes(heads);
  const Tensor &a = bare->sites.at({SiteKind::attn_scores, 0}), &b = alibi->sites.at({SiteKind::attn_scores, 0}),
               &c = t5->sites.at({SiteKind::attn_scores, 0});
  const double bucket[] = {0, 1, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3};  // two exact, then 2 + 2 ln(d/2)/ln 4
  for (Index h = 0; h < heads; ++h)
    for (Index i = 0; i < 12; ++i)
      for (Index j = 0; j <= i; ++j) {
        const auto base = static_cast<double>(a.at(h, i, j));
        CHECK(static_cast<double>(b.at(h, i, j)) - base ==
              doctest::Approx(-slopes[static_cast<std::size_t>(h)] * static_cast<double>(i - j)).epsilon(1e-3));
        CHECK(static_cast<double>(c.at(h, i, j)) - base == doctest::Approx(bucket[i - j]).epsilon(1e-3));
      }
  // On top of the model's own positions, where it is asked for.
  const auto own = bench({}, {SiteKind::attn_scores});
  const auto on_top = bench({"0.1: position alibi on top"}, {SiteKind::attn_scores});
  CHECK(largest_difference(own->sites.at({SiteKind::attn_scores, 0}).select(0, 0),
                           on_top->sites.at({SiteKind::attn_scores, 0}).select(0, 0)) == 0);
  CHECK(largest_difference(own->logits, on_top->logits) > 1e-3);
  CHECK(static_cast<double>(on_top->sites.at({SiteKind::attn_scores, 0}).at(1, 11, 0) -
                            own->sites.at({SiteKind::attn_scores, 0}).at(1, 11, 0)) ==
        doctest::Approx(-11 * slopes[1]).epsilon(1e-3));
}

TEST_CASE("learned positions: left out, shifted along the table, replaced by sinusoids of the same length") {
  Bench bench(reference("gpt2-random"));
  const Tensor table = bench.loaded.model->weights().position_embedding;
  const auto shifted = bench({"*: position shift 4"}, {SiteKind::pos_embed});
  CHECK(largest_difference(shifted->sites.at({SiteKind::pos_embed}), table.slice(0, 4, 16)) == 0);
  const auto none = bench({"*: position none"}, {SiteKind::pos_embed});
  for (const float x : none->sites.at({SiteKind::pos_embed}).packed().values()) CHECK(x == 0.0f);
  const auto waves = bench({"*: position sinusoidal"}, {SiteKind::pos_embed});
  double own = 0, length = 0;
  const Tensor& rows = waves->sites.at({SiteKind::pos_embed});
  for (Index p = 0; p < table.dim(0); ++p) {
    double sum = 0;
    for (Index c = 0; c < table.dim(1); ++c) sum += std::pow(static_cast<double>(table.at(p, c)), 2);
    own += std::sqrt(sum) / static_cast<double>(table.dim(0));
  }
  for (Index c = 0; c < rows.dim(1); ++c) length += std::pow(static_cast<double>(rows.at(3, c)), 2);
  CHECK(std::sqrt(length) == doctest::Approx(own).epsilon(1e-4));
}

TEST_CASE("what a model cannot follow is refused with what it can") {
  Bench gpt2(reference("gpt2-random")), llama(reference("llama-gqa"));
  CHECK(gpt2.refused("0.*: position none").find("added to the embeddings") != std::string::npos);
  CHECK(gpt2.refused("*: position shift 100000").find("a shift of at most") != std::string::npos);
  CHECK(llama.refused("1.0: position rope base 500").find("share") != std::string::npos);
  CHECK(llama.refused("1.0: position alibi on top") == "accepted");
  CHECK(llama.refused("1.*: position rope base 500") == "accepted");
}

TEST_CASE("a rotary model reads past its trained length when an edit says how positions go on") {
  Bench bench(bundled("tiny-llama"));
  const int context = bench.loaded.model->config().context;
  bench.plain.ids.clear();
  for (int i = 0; i < context + 40; ++i) bench.plain.ids.push_back(static_cast<std::int32_t>(40 + i % 50));
  CHECK(bench.refused("*: temperature 1").find("at most 256 tokens") != std::string::npos);
  CHECK(bench.refused("1.*: position rope base 500").find("at most 256 tokens") != std::string::npos);
  const auto past = bench({"*: position rope scaling ntk 2"});
  CHECK(token_losses(*past).size() == static_cast<std::size_t>(context + 39));
  CHECK(static_cast<int>(past->tokens.size()) == context + 40);
  bench.plain.too_long = RunRequest::TooLong::keep_first;
  CHECK(static_cast<int>(bench({"*: position alibi"})->tokens.size()) == context + 40);
  CHECK(static_cast<int>(bench({})->tokens.size()) == context);
}

TEST_CASE("dual chunks: one chunk changes nothing; long texts are read with distances below the context alone") {
  Bench bench(bundled("tiny-llama"));
  const int context = bench.loaded.model->config().context;
  const auto plain = bench({});
  CHECK(largest_difference(bench({"*: position chunks 100"})->logits, plain->logits) < 1e-3);  // the text is one chunk
  CHECK(largest_difference(bench({"*: position chunks 6"})->logits, plain->logits) <
        1e-3);  // 12 tokens: all distances true
  bench.plain.ids.clear();
  for (int i = 0; i < context + 60; ++i) bench.plain.ids.push_back(static_cast<std::int32_t>(40 + i % 50));
  const auto past = bench({"*: position chunks 192"});
  CHECK(static_cast<int>(past->tokens.size()) == context + 60);
  CHECK(largest_difference(past->logits.slice(0, 0, 192), bench({"*: position rope"})->logits.slice(0, 0, 192)) < 1e-3);
  CHECK(largest_difference(past->logits.slice(0, 310, 316), bench({"*: position rope"})->logits.slice(0, 310, 316)) >
        1e-3);
  CHECK(bench.refused("*: position chunks 256").find("chunks shorter than") != std::string::npos);
  Bench gpt2(reference("gpt2-random"));
  CHECK(gpt2.refused("*: position chunks 4").find("a rotary model") != std::string::npos);
}

TEST_CASE("a mask of hashes is made of the head's own queries and keys, after rotation where the model rotates") {
  for (const char* name : {"llama-gqa", "gpt2-random"}) {
    CAPTURE(name);
    Bench bench(reference(name));
    const bool rotary = bench.loaded.model->config().position == PositionKind::rotary;
    const SiteKind q_site = rotary ? SiteKind::rot_q : SiteKind::q, k_site = rotary ? SiteKind::rot_k : SiteKind::k;
    const auto trace = bench({"0.*: mask lsh 8 rounds 1 seed 3"}, {q_site, k_site});
    const ModelDims& dims = bench.loaded.model->config().dims;
    int hidden = 0;
    for (int head = 0; head < dims.heads; ++head) {
      const Tensor q = trace->sites.at({q_site, 0}).select(1, head),
                   k = trace->sites.at({k_site, 0}).select(1, head / (dims.heads / dims.kv_heads));
      const RulePtr rule = lsh_rule(q, k, {.buckets = 8, .rounds = 1, .seed = 3}, "lsh");
      for (Index i = 0; i < 12; ++i)
        for (Index j = 0; j <= i; ++j) {
          const bool shut = masked(*rule, i, j, 12);
          CHECK((trace->map({0, head}).weight(i, j) == 0.0f) == shut);
          hidden += shut;
        }
    }
    CHECK(hidden > 20);
  }
}

TEST_CASE("shared keys are those of pooled weights; a latent of full rank changes nothing") {
  Bench bench(reference("gpt2-random"));
  const auto plain = bench({}, {SiteKind::k, SiteKind::v});
  const auto shared = bench({"0.*: share keys 1"}, {SiteKind::k, SiteKind::v});
  const Tensor &k = plain->sites.at({SiteKind::k, 0}), &pooled = shared->sites.at({SiteKind::k, 0});
  for (Index p = 0; p < k.dim(0); ++p)
    for (Index c = 0; c < k.dim(2); ++c) {
      double mean = 0;
      for (Index h = 0; h < k.dim(1); ++h) mean += static_cast<double>(k.at(p, h, c)) / static_cast<double>(k.dim(1));
      for (Index h = 0; h < k.dim(1); ++h)
        CHECK(static_cast<double>(pooled.at(p, h, c)) == doctest::Approx(mean).epsilon(1e-4));
    }
  const ModelDims& dims = bench.loaded.model->config().dims;
  CHECK(largest_difference(bench({("*: share keys " + std::to_string(dims.kv_heads)).c_str()})->logits, plain->logits) <
        1e-6);
  const int full = static_cast<int>(std::min(dims.d_model, 2 * dims.kv_heads * dims.d_head));
  CHECK(largest_difference(bench({("*: latent keys " + std::to_string(full)).c_str()})->logits, plain->logits) < 1e-3);
  CHECK(largest_difference(bench({"*: latent keys 1"})->logits, plain->logits) > 1e-2);
  CHECK(bench.refused("*: share keys 1000").find("equal groups") != std::string::npos);
  CHECK(bench.refused("*: latent keys 100000").find("a rank from 1") != std::string::npos);
}

}  // namespace headscope::position_edit_test
