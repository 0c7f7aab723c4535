// Each action against a definition of its own: a tap written by hand, an identity, or the numbers of the plain run.

#include "core/edits/intervention_tap.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <set>

#include "core/attention/mechanism.h"
#include "core/attention/mechanism_math.h"
#include "core/base/error.h"
#include "core/edits/weight_edit.h"
#include "core/run/mechanism_input.h"
#include "core/run/pass_memory.h"
#include "core/run/run_request.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::intervention_tap_test {

using testing::largest_difference;
using testing::reference;

namespace {

const char* const text_a = "Mr and Mrs Quill of Fox Hythe kept bees.";
const char* const text_b = "Mr and Mrs Hythe of Fox Quill kept bees.";

/// A tap of one function.
class ByHand final : public Tap {
 public:
  ByHand(SiteKind kind, int layer, std::function<void(Tensor&)> edit) : site_{kind, layer}, edit_(std::move(edit)) {}
  bool wants(Site site) const override { return site == site_; }
  Tensor at(Site, const Tensor& value) override {
    Tensor edited = value.copy();
    edit_(edited);
    return edited;
  }

 private:
  Site site_;
  std::function<void(Tensor&)> edit_;
};

struct Bench {
  explicit Bench(std::filesystem::path where) : folder(std::move(where)), loaded(load_model(folder, backend)) {
    plain.model = folder;
    plain.capture.maps = MapStorage::dense;
  }
  std::shared_ptr<const Trace> operator()(std::vector<const char*> edits, Tap* tap = nullptr,
                                          std::set<SiteKind> sites = {}) {
    RunRequest request = plain;
    for (const char* edit : edits) request.edits.push_back(parse_intervention(edit, "test"));
    request.capture.sites = std::move(sites);
    return run(loaded, request, Ctx{backend, tap});
  }
  Backend backend{1};
  std::filesystem::path folder;
  LoadedModel loaded;
  RunRequest plain;
};

/// A model of random weights on twelve token ids.
struct RandomBench : Bench {
  explicit RandomBench(const char* name) : Bench(reference(name)) {
    plain.ids = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7};
  }
};

/// The bundled example, which has a tokenizer.
struct TextBench : Bench {
  explicit TextBench(const char* text = text_a)
      : Bench(headscope::testing::source_dir() / "assets/examples/induction") {
    plain.text = text;
  }
};

}  // namespace

TEST_CASE("zeroing every head of a layer is removing its attention output") {
  RandomBench bench("llama-gqa");  // whose output projection has no bias
  const auto zeroed = bench({"1.*: ablate zero"}), off = bench({"1.*: switch off attention"});
  CHECK(largest_difference(zeroed->logits, off->logits) < 1e-6);
  CHECK(largest_difference(zeroed->logits, bench({})->logits) > 1e-3);
  ByHand tap(SiteKind::attn_out, 1, [](Tensor& value) { std::ranges::fill(value.mutable_values(), 0.0f); });
  CHECK(largest_difference(off->logits, bench({}, &tap)->logits) == 0);
}

TEST_CASE("ablation by zero, mean and resampling replaces the rows of that head at those positions") {
  RandomBench bench("gpt2-random");
  const Site z{SiteKind::z, 1};
  const Tensor plain = bench({}, nullptr, {SiteKind::z})->sites.at(z);
  const auto edited = [&](const char* edit) { return bench({edit}, nullptr, {SiteKind::z})->sites.at(z); };
  const Tensor zero = edited("1.0@3..5: ablate zero"), mean = edited("1.1: ablate mean over text"),
               before = edited("1.1@2..: ablate mean"), resampled = edited("1.0: ablate resample 7");
  std::vector<int> taken(static_cast<std::size_t>(plain.dim(0)), 0);
  for (Index i = 0; i < plain.dim(0); ++i) {
    double sum = 0;
    for (Index each = 0; each < plain.dim(0); ++each) sum += plain.at(each, 1, 2);
    CHECK(mean.at(i, 1, 2) == doctest::Approx(sum / static_cast<double>(plain.dim(0))).epsilon(1e-5));
    // By itself the mean is of this position and those before it.
    double so_far = 0;
    for (Index each = 0; each <= i; ++each) so_far += plain.at(each, 1, 2);
    if (i < 2)
      CHECK(before.at(i, 1, 2) == plain.at(i, 1, 2));
    else
      CHECK(before.at(i, 1, 2) == doctest::Approx(so_far / static_cast<double>(i + 1)).epsilon(1e-5));
    CHECK(mean.at(i, 0, 2) == plain.at(i, 0, 2));
    CHECK(zero.at(i, 0, 2) == (i >= 3 && i <= 5 ? 0.0f : plain.at(i, 0, 2)));
    CHECK(zero.at(i, 1, 2) == plain.at(i, 1, 2));
    for (Index from = 0; from < plain.dim(0); ++from)
      taken[static_cast<std::size_t>(from)] += resampled.at(i, 0, 2) == plain.at(from, 0, 2);
  }
  for (int count : taken) CHECK(count == 1);  // a permutation
  CHECK(largest_difference(resampled, plain) > 0);
  CHECK(largest_difference(resampled, edited("1.0: ablate resample 7")) == 0);
}

TEST_CASE("ablation by the mean tells no row of later tokens, over the whole text it does") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Backend backend(1);
    const LoadedModel model = load_model(reference(name), backend);
    const auto logits = [&](std::vector<std::int32_t> ids, const char* edit) {
      RunRequest request;
      request.ids = std::move(ids);
      request.edits = {parse_intervention(edit, "test"), parse_intervention("1.1: temperature 0.5", "test")};
      return run(model, request, Ctx{backend})->logits;
    };
    const auto change = [&](const char* edit) {
      const Tensor a = logits({5, 9, 5, 30, 9, 5, 17, 2}, edit), b = logits({5, 9, 5, 30, 9, 5, 41, 40}, edit);
      double most = 0;
      for (Index i = 0; i < 6; ++i)
        for (Index j = 0; j < a.dim(1); ++j)
          most = std::max(most, std::abs(static_cast<double>(a.at(i, j)) - static_cast<double>(b.at(i, j))));
      return most;
    };
    CHECK(change("0.*: ablate mean") < 1e-6);
    CHECK(change("*: ablate mean") < 1e-6);
    CHECK(change("0.*: ablate mean over text") > 1e-3);
    CHECK(change("0.*: ablate resample 3") > 1e-3);
  }
}

TEST_CASE("ablation from reference texts takes their mean, or one of their positions, in every head that it reaches") {
  Backend backend(1);
  const LoadedModel model = load_model(headscope::testing::source_dir() / "assets/examples/induction", backend);
  const Site z{SiteKind::z, 1};
  const auto z_of = [&](const std::string& text, std::vector<std::string> edits) {
    RunRequest request;
    request.text = text;
    request.capture.sites = {SiteKind::z};
    for (const std::string& edit : edits) request.edits.push_back(parse_intervention(edit, "test"));
    return run(model, request, Ctx{backend})->sites.at(z);
  };
  const Tensor plain = z_of("a fox and a fox", {}), one = z_of("bees", {}), two = z_of("of honey", {});
  const Tensor mean = z_of("a fox and a fox", {"1.1: ablate mean from \"bees\" \"of honey\"", "0.*: ablate zero"}),
               drawn = z_of("a fox and a fox", {"1.2@3..: ablate resample 4 from \"bees\" \"of honey\""}),
               again = z_of("a fox and a hare", {"1.2@3..: ablate resample 4 from \"bees\" \"of honey\""});
  const auto rows = static_cast<double>(one.dim(0) + two.dim(0));
  std::set<Index> places;
  for (Index i = 0; i < plain.dim(0); ++i) {
    for (Index j = 0; j < plain.dim(2); ++j) {
      double sum = 0;
      for (Index r = 0; r < one.dim(0); ++r) sum += static_cast<double>(one.at(r, 1, j));
      for (Index r = 0; r < two.dim(0); ++r) sum += static_cast<double>(two.at(r, 1, j));
      // The references are run without any edit, so that the zero of layer 0 does not show in them.
      CHECK(mean.at(i, 1, j) == doctest::Approx(sum / rows).epsilon(1e-5).scale(1e-4));
    }
    const auto same = [&](const Tensor& x, Index row) {
      for (Index j = 0; j < plain.dim(2); ++j)
        if (x.at(row, 2, j) != drawn.at(i, 2, j)) return false;
      return true;
    };
    if (i < 3) {
      CHECK(same(plain, i));
      continue;
    }
    Index found = -1;
    for (Index r = 0; r < one.dim(0); ++r)
      if (same(one, r)) found = r;
    for (Index r = 0; r < two.dim(0); ++r)
      if (same(two, r)) found = one.dim(0) + r;
    CHECK(found >= 0);
    places.insert(found);
    if (i < again.dim(0)) CHECK(again.at(i, 2, 0) == drawn.at(i, 2, 0));  // what is drawn hangs on the position alone
  }
  CHECK(places.size() > 3);
}

TEST_CASE("a weight that is set stands there, and the others keep their ratios") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    RandomBench bench(name);
    const AttentionMap plain = bench({})->map({0, 1});
    for (const char* edit :
         {"0.1: weight 6 2 0.7", "0.1: weight -6 2 0.25", "0.1: weight 6 2 0", "0.1: weight 6 2 1"}) {
      CAPTURE(edit);
      const double wanted = parse_intervention(edit, "test").action.as<SetWeight>()->weight;
      const AttentionMap map = bench({edit})->map({0, 1});
      CHECK(map.weight(6, 2) == doctest::Approx(wanted).epsilon(1e-5));
      double sum = 0;
      for (Index j = 0; j < map.n_key(); ++j) {
        sum += map.weight(6, j);
        if (j != 2)
          CHECK(map.weight(6, j) ==
                doctest::Approx(plain.weight(6, j) * (1 - wanted) / (1 - plain.weight(6, 2))).epsilon(1e-4));
        CHECK(map.weight(5, j) == plain.weight(5, j));
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-5));
    }
    // a masked key opens; a row with one key has nobody to share with
    CHECK(bench({"0.1: weight 3 9 0.5"})->map({0, 1}).weight(3, 9) == doctest::Approx(0.5).epsilon(1e-5));
    CHECK(bench({"0.1: weight 0 0 0.5"})->map({0, 1}).weight(0, 0) == 1.0f);
    // two weights of a row: the later one shrinks the earlier
    const AttentionMap two = bench({"0.1: weight 6 2 0.5", "0.1: weight 6 4 0.5"})->map({0, 1});
    const double fourth = plain.weight(6, 4) * 0.5 / (1 - plain.weight(6, 2));
    CHECK(two.weight(6, 2) == doctest::Approx(0.5 * 0.5 / (1 - fourth)).epsilon(1e-4));
    CHECK(two.weight(6, 4) == doctest::Approx(0.5).epsilon(1e-5));
  }
}

TEST_CASE("forced patterns look by rule, also at some positions only") {
  RandomBench bench("llama-gqa");
  const auto plain = bench({});
  const auto uniform = bench({"1.2: pattern uniform"}), previous = bench({"1.2@4..: pattern previous"}),
             self = bench({"1.2: pattern self"}), first = bench({"1.2: pattern first"}),
             window = bench({"1.2: mask window 3", "1.2: pattern uniform"});
  for (Index i = 0; i < 12; ++i)
    for (Index j = 0; j < 12; ++j) {
      CHECK(uniform->map({1, 2}).weight(i, j) ==
            doctest::Approx(j <= i ? 1.0 / static_cast<double>(i + 1) : 0.0).epsilon(1e-6));
      CHECK(previous->map({1, 2}).weight(i, j) == (i < 4 ? plain->map({1, 2}).weight(i, j) : j == i - 1 ? 1.0f : 0.0f));
      CHECK(self->map({1, 2}).weight(i, j) == (i == j ? 1.0f : 0.0f));
      CHECK(first->map({1, 2}).weight(i, j) == (j == 0 ? 1.0f : 0.0f));
      CHECK(window->map({1, 2}).weight(i, j) ==
            doctest::Approx(j <= i && i - j < 3 ? 1.0 / static_cast<double>(std::min<Index>(i + 1, 3)) : 0.0));
      CHECK(uniform->map({1, 1}).weight(i, j) == plain->map({1, 1}).weight(i, j));
    }
}

TEST_CASE("the first tokens are dropped with or without renormalising") {
  RandomBench bench("gpt2-random");
  const AttentionMap plain = bench({})->map({0, 0}), shared = bench({"0.0: drop first 2"})->map({0, 0}),
                     lost = bench({"0.0: drop first 2 and its weight"})->map({0, 0});
  for (Index i = 0; i < 12; ++i) {
    double rest = 0;
    for (Index j = 2; j <= i; ++j) rest += plain.weight(i, j);
    for (Index j = 0; j < 12; ++j) {
      CHECK(lost.weight(i, j) == (j < 2 ? 0.0f : plain.weight(i, j)));
      CHECK(shared.weight(i, j) == doctest::Approx(j < 2 || j > i ? 0.0 : plain.weight(i, j) / rest).epsilon(1e-5));
    }
  }
}

TEST_CASE("scores times ln n / ln m, as a tap by hand writes them") {
  RandomBench bench("gpt2-random");
  ByHand tap(SiteKind::attn_scores, 1, [](Tensor& scores) {
    for (Index h = 0; h < scores.dim(0); ++h)
      for (Index i = 0; i < scores.dim(1); ++i)
        for (Index j = 0; j <= i; ++j)
          scores.ref(h, i, j) *= static_cast<float>(std::log(static_cast<double>(i + 1)) / std::log(64.0));
  });
  const auto by_hand = bench({}, &tap), edited = bench({"1.*: scale by length 64"});
  CHECK(largest_difference(by_hand->logits, edited->logits) < 1e-5);
  CHECK(largest_difference(bench({})->logits, edited->logits) > 1e-3);
  bench.plain.capture.maps = MapStorage::factored;
  CHECK(largest_difference(by_hand->map({1, 1}).to_dense(),
                           bench({"1.*: scale by length 64"})->map({1, 1}).to_dense()) < 1e-5);
}

TEST_CASE("a temperature at some positions changes those rows alone") {
  RandomBench bench("gpt2-random");
  const auto plain = bench({})->map({0, 0}), all = bench({"0.0: temperature 0.5"})->map({0, 0}),
             some = bench({"0.0@7: temperature 0.5"})->map({0, 0});
  for (Index i = 0; i < 12; ++i)
    for (Index j = 0; j <= i; ++j)
      CHECK(some.weight(i, j) == doctest::Approx((i == 7 ? all : plain).weight(i, j)).epsilon(1e-5));
}

TEST_CASE("the MLP and the norms switch off") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    RandomBench bench(name);
    ByHand no_mlp(SiteKind::mlp_out, 0, [](Tensor& value) { std::ranges::fill(value.mutable_values(), 0.0f); });
    CHECK(largest_difference(bench({"0.*: switch off mlp"})->logits, bench({}, &no_mlp)->logits) == 0);
    const auto trace =
        bench({"1.*: switch off ln1", "1.*: switch off ln2"}, nullptr,
              {SiteKind::resid_pre, SiteKind::ln1_normalized, SiteKind::resid_mid, SiteKind::ln2_normalized});
    CHECK(largest_difference(trace->sites.at({SiteKind::resid_pre, 1}),
                             trace->sites.at({SiteKind::ln1_normalized, 1})) == 0);
    CHECK(largest_difference(trace->sites.at({SiteKind::resid_mid, 1}),
                             trace->sites.at({SiteKind::ln2_normalized, 1})) == 0);
    CHECK(largest_difference(trace->sites.at({SiteKind::resid_pre, 0}),
                             trace->sites.at({SiteKind::ln1_normalized, 0})) > 0);
  }
}

TEST_CASE("a frozen pattern stays as it was while what feeds it changes") {
  RandomBench bench("gpt2-random");
  const auto plain = bench({}), loose = bench({"0.*: ablate zero"}),
             frozen = bench({"0.*: ablate zero", "1.0: freeze pattern"});
  CHECK(largest_difference(plain->map({1, 0}).to_dense(), frozen->map({1, 0}).to_dense()) == 0);
  CHECK(largest_difference(plain->map({1, 0}).to_dense(), loose->map({1, 0}).to_dense()) > 1e-3);
  CHECK(largest_difference(loose->map({1, 1}).to_dense(), frozen->map({1, 1}).to_dense()) == 0);
}

TEST_CASE("everything patched from another text gives the other text's logits") {
  TextBench bench, other(text_b);
  const auto plain = bench({}), wanted = other({});
  REQUIRE(plain->tokens.size() == wanted->tokens.size());
  REQUIRE(largest_difference(plain->logits, wanted->logits) > 1);
  const std::string from = " from \"" + std::string(text_b) + "\"";
  CHECK(largest_difference(bench({("0.*: patch resid_pre" + from).c_str()})->logits, wanted->logits) == 0);
  CHECK(largest_difference(bench({("1.*: patch resid_post" + from).c_str()})->logits, wanted->logits) == 0);
  // q, k and v of a head together are its pattern and its z; one alone is not.
  const std::string q = "0.2: patch q" + from, k = "0.2: patch k" + from, v = "0.2: patch v" + from,
                    z = "0.2: patch z" + from;
  const auto all = bench({q.c_str(), k.c_str(), v.c_str()}), by_z = bench({z.c_str()});
  CHECK(largest_difference(all->logits, by_z->logits) < 1e-4);
  CHECK(largest_difference(all->map({0, 2}).to_dense(), wanted->map({0, 2}).to_dense()) < 1e-5);
  CHECK(largest_difference(by_z->map({0, 2}).to_dense(), plain->map({0, 2}).to_dense()) == 0);
  const auto frozen = bench({("0.2: freeze pattern" + from).c_str()});
  CHECK(largest_difference(frozen->map({0, 2}).to_dense(), wanted->map({0, 2}).to_dense()) == 0);
}

TEST_CASE("patches of a shorter text are aligned at its start, its end or its tokens") {
  TextBench bench("Mr and Mrs Quill kept bees."), other("Quill kept bees.");
  const auto sites = std::set<SiteKind>{SiteKind::resid_post};
  const Site site{SiteKind::resid_post, 0};
  const Tensor plain = bench({}, nullptr, sites)->sites.at(site), source = other({}, nullptr, sites)->sites.at(site);
  const Index n = plain.dim(0), m = source.dim(0);
  REQUIRE(m < n);
  const auto patched = [&](const char* aligned) {
    const std::string edit = std::string("0.*: patch resid_post from \"Quill kept bees.\"") + aligned;
    return bench({edit.c_str()}, nullptr, sites)->sites.at(site);
  };
  const Tensor start = patched(""), end = patched(" aligned end");
  for (Index i = 0; i < n; ++i) {
    CHECK(start.at(i, 0) == (i < m ? source.at(i, 0) : plain.at(i, 0)));
    CHECK(end.at(i, 0) == (i >= n - m ? source.at(i - (n - m), 0) : plain.at(i, 0)));
  }
}

TEST_CASE("what a memory keeps of other texts changes no number") {
  TextBench bench;
  PassMemory memory;
  const std::string patch = "1.0: patch z from \"" + std::string(text_b) + "\"";
  for (const std::vector<const char*>& edits : {std::vector<const char*>{},
                                                {patch.c_str()},
                                                {patch.c_str(), "1.1: ablate zero"},
                                                {"1.2: freeze pattern"},
                                                {"0.*: ablate mean", "1.2: freeze pattern"},
                                                {"0.1: weight -1 3 0.5", patch.c_str()},
                                                {}}) {
    RunRequest request = bench.plain;
    for (const char* edit : edits) request.edits.push_back(parse_intervention(edit, "test"));
    const auto whole = run(bench.loaded, request, Ctx{bench.backend}),
               partial = run(bench.loaded, request, Ctx{bench.backend}, memory);
    CHECK(largest_difference(whole->logits, partial->logits) == 0);
    CHECK(largest_difference(whole->map({1, 0}).to_dense(), partial->map({1, 0}).to_dense()) == 0);
  }
}

TEST_CASE("edits outside the text or the layer are refused") {
  RandomBench bench("gpt2-random");
  for (const char* edit : {"0.0: weight 12 0 0.5", "0.0: weight 0 -13 0.5", "0.0@12: ablate zero"}) {
    CAPTURE(edit);
    CHECK_THROWS_WITH_AS(bench({edit}), doctest::Contains("positions from 0 to 11"), Error);
  }
  CHECK_THROWS_WITH_AS(bench({"0.0: patch mlp_out from \"x\""}), doctest::Contains("write 0.*"), Error);
}

TEST_CASE("a mechanism takes the place of softmax: equal where it is equal, and on the head's own q, k and v") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    RandomBench bench(name);
    const auto plain = bench({});
    CHECK(largest_difference(bench({"*: mechanism softmax"})->logits, plain->logits) < 1e-4);
    CHECK(largest_difference(bench({"*: mechanism flash fit=off rows=3 columns=5"})->logits, plain->logits) < 1e-4);
    CHECK(largest_difference(bench({"0.1: mechanism softmax temperature=2"})->logits,
                             bench({"0.1: temperature 2"})->logits) < 1e-4);

    const bool rotary = name == std::string("llama-gqa");
    const SiteKind q_kind = rotary ? SiteKind::rot_q : SiteKind::q, k_kind = rotary ? SiteKind::rot_k : SiteKind::k;
    for (const char* spec : {"linear", "polaformer", "lightning", "entmax alpha=2"}) {
      CAPTURE(spec);
      const auto edited =
          bench({(std::string("1.2: mechanism ") + spec).c_str()}, nullptr, {q_kind, k_kind, SiteKind::v, SiteKind::z});
      CHECK(largest_difference(edited->map({1, 2}).to_dense(), plain->map({1, 2}).to_dense()) > 1e-3);
      CHECK(largest_difference(edited->map({1, 1}).to_dense(), plain->map({1, 1}).to_dense()) == 0);
      CHECK(largest_difference(edited->logits, plain->logits) > 1e-4);
      // What the pass went on with is what the mechanism makes of its q, k, v.
      const auto site = [&](SiteKind kind) { return edited->sites.at({kind, 1}); };
      const Tensor q = site(q_kind), k = site(k_kind), v = site(SiteKind::v), z = site(SiteKind::z);
      const Index shared = 2 / (q.dim(1) / k.dim(1));
      MechanismInput in{q.select(1, 2).packed(), k.select(1, shared).packed(), v.select(1, shared).packed(),
                        static_cast<float>(1 / std::sqrt(static_cast<double>(q.dim(2)))), causal_rule()};
      in.head = 2, in.layer = heads_of_layer(q, k, v, 1, edited->model.dims.layers);
      const MechanismChoice choice = parse_mechanism(spec);
      const MechanismResult own = choice.mechanism->run(in, choice.values, Detail::weights);
      CHECK(largest_difference(edited->map({1, 2}).to_dense(), own.weights) < 1e-5);
      CHECK(largest_difference(z.select(1, 2), own.output) < 1e-4);
    }
    // Only at the positions that it reaches; under the head's mask and temperature.
    const auto part = bench({"1.2@3..5: mechanism linear"});
    for (Index i = 0; i < 12; ++i) {
      const bool reached = i >= 3 && i <= 5;
      CHECK((largest_difference(part->map({1, 2}).to_dense().slice(0, i, i + 1),
                                plain->map({1, 2}).to_dense().slice(0, i, i + 1)) > 0) == reached);
    }
    const auto windowed = bench({"1.2: mask window 3", "1.2: mechanism linear"});
    CHECK(windowed->map({1, 2}).weight(9, 5) == 0.0f);
    CHECK(windowed->map({1, 2}).weight(9, 7) > 0.0f);
    // Signed weights are not shown as probabilities.
    CHECK(bench({"1.2: mechanism lightning"})->map({1, 2}).place().kind == MapKind::effective);
    CHECK(bench({"1.2: mechanism linear"})->map({1, 2}).place().kind == MapKind::probability);
  }
}

TEST_CASE("heads that run Lightning Attention are normed together, and each fades at its own pace") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    RandomBench bench(name);
    const std::set<SiteKind> sites{SiteKind::z};
    const auto z_of = [&](const Trace& trace, Index head) { return trace.sites.at({SiteKind::z, 1}).select(1, head); };
    const char* const bare = "1.*: mechanism lightning output-gate=off";
    const auto edited = bench({bare}, nullptr, sites);
    // The row of all heads has root mean square 1; no single head's has.
    const Tensor z = edited->sites.at({SiteKind::z, 1});
    double most = 0;
    for (Index i = 2; i < z.dim(0); ++i) {
      double all = 0, first = 0;
      for (Index h = 0; h < z.dim(1); ++h)
        for (Index c = 0; c < z.dim(2); ++c) {
          const double x = static_cast<double>(z.at(i, h, c));
          all += x * x, first += h == 0 ? x * x : 0;
        }
      const auto width = static_cast<double>(z.dim(2));
      CHECK(std::sqrt(all / (width * static_cast<double>(z.dim(1)))) == doctest::Approx(1).epsilon(0.05));
      most = std::max(most, std::abs(std::sqrt(first / width) - 1));
    }
    CHECK(most > 0.05);
    // The same head with the decay of another head is another head.
    const auto same = bench({bare, "1.0: mechanism lightning output-gate=off decay=0.5"}, nullptr, sites);
    CHECK(largest_difference(z_of(*same, 0), z_of(*edited, 0)) > 1e-3);
    CHECK(largest_difference(z_of(*same, 1), z_of(*edited, 1)) == 0);
  }
}

TEST_CASE("of several edits that write a head's rows the last one gives the weights and what they mix") {
  RandomBench bench("gpt2-random");
  const auto mixed = [&](const Trace& trace) {  // weights · v of head 1.2
    return mechanism::product(trace.map({1, 2}).to_dense(), trace.sites.at({SiteKind::v, 1}).select(1, 2).packed());
  };
  const std::set<SiteKind> sites{SiteKind::v, SiteKind::z};
  const auto z_of = [&](const Trace& trace) { return trace.sites.at({SiteKind::z, 1}).select(1, 2); };

  const auto own = bench({"1.2: mechanism titans hidden=4"}, nullptr, sites);
  REQUIRE(largest_difference(z_of(*own), mixed(*own)) > 1e-3);  // its weights do not tell its output
  const auto later = bench({"1.2: mechanism titans hidden=4", "1.2: mechanism linear"}, nullptr, sites);
  CHECK(largest_difference(later->logits, bench({"1.2: mechanism linear"})->logits) == 0);
  const auto dropped = bench({"1.2: mechanism titans hidden=4", "1.2: drop first 1 and its weight"}, nullptr, sites);
  CHECK(largest_difference(z_of(*dropped), mixed(*dropped)) < 1e-5);
  // Each on rows of its own.
  const auto lstm = bench({"1.2: mechanism lstm"}, nullptr, sites);
  const auto both = bench({"1.2@0..5: mechanism titans hidden=4", "1.2@6..11: mechanism lstm"}, nullptr, sites);
  CHECK(largest_difference(z_of(*both).slice(0, 0, 6), z_of(*own).slice(0, 0, 6)) == 0);
  CHECK(largest_difference(z_of(*both).slice(0, 6, 12), z_of(*lstm).slice(0, 6, 12)) == 0);
}

TEST_CASE("a norm that two edits move is moved once") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    RandomBench bench(name);
    const auto once = bench({"*: post norm"});
    CHECK(largest_difference(once->logits, bench({})->logits) > 1e-3);
    CHECK(largest_difference(once->logits, bench({"*: post norm", "1.*: post norm"})->logits) == 0);
    CHECK(largest_difference(once->logits, bench({"*@0..6: post norm", "*@4..11: post norm"})->logits) < 1e-5);
  }
}

}  // namespace headscope::intervention_tap_test
