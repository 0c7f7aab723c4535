// Models that mix tokens by a state (families mamba and mamba2): caches that go back, edits of what the state amounts
// to, and what such a model has not. Their numbers against transformers: families_test.

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/attention/masks.h"
#include "core/attention/state_patterns.h"
#include "core/base/error.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/model.h"
#include "core/model/parameter_parts.h"
#include "core/run/run_request.h"
#include "core/tensor/tape.h"
#include "core/train/gradients.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

using namespace headscope;
using namespace headscope::testing;

namespace headscope::state_space_test {
namespace {

const std::vector<std::int32_t> ids{3, 17, 8, 21, 40, 3, 17, 9, 33, 12, 40, 5, 3};
const char* const folders[] = {"mamba", "mamba-bare", "mamba2", "mamba2-one"};

struct Subject {
  Backend backend{2};
  LoadedModel loaded;
  RunRequest request;
  explicit Subject(const std::string& folder) {
    loaded.model = Model::load(reference("families") / folder, backend);
    request.ids = ids;
  }
  const Model& model() const { return *loaded.model; }
  Ctx ctx(Tap* tap = nullptr) { return {backend, tap}; }
  std::shared_ptr<const Trace> run_with(const std::vector<std::string>& edits, std::set<SiteKind> sites = {}) {
    RunRequest own = request;
    own.capture.maps = MapStorage::dense;
    own.capture.sites = std::move(sites);
    for (const std::string& edit : edits) own.edits.push_back(parse_intervention(edit, "test"));
    return run(loaded, own, Ctx{backend});
  }
};

/// Puts `by` in one cell of the pattern of a head, if at all, and keeps z.
class OtherCell final : public Tap {
 public:
  OtherCell(HeadId head, Index query, Index key, float by) : head_(head), query_(query), key_(key), by_(by) {}
  bool wants(Site site) const override {
    return site == Site{SiteKind::pattern, head_.layer} || site == Site{SiteKind::z, head_.layer};
  }
  Tensor at(Site site, const Tensor& value) override {
    if (site.kind == SiteKind::z) return z = value;
    Tensor other = value.copy();
    other.ref(head_.head, query_, key_) = by_;
    return other;
  }
  Tensor z;

 private:
  HeadId head_;
  Index query_, key_;
  float by_;
};

}  // namespace

TEST_CASE("state space: α by hand of two tokens, and what a changed cell makes of y") {
  Backend backend{1};
  // One lane, one state, width 1: a = −1, Δ = (0.5, 2), B = (3, 4), C = (5, 6), x = (7, 8), d = 10.
  StateMixing in;
  const auto of = [](const Shape& shape, std::vector<float> values) { return Tensor::from(shape, values); };
  in.x = of({2, 1, 1}, {7, 8});
  in.delta = of({2, 1}, {0.5f, 2});
  in.a = of({1, 1}, {-1});
  in.b = of({2, 1, 1}, {3, 4});
  in.c = of({2, 1, 1}, {5, 6});
  in.d = of({1}, {10});
  const Tensor alpha = mean_patterns(backend, in, 1, {0, in.x.dim(0)});
  CHECK(alpha.at(0, 0, 0) == doctest::Approx(5 * 0.5 * 3));
  CHECK(alpha.at(0, 0, 1) == 0);
  const double first = 6 * std::exp(-2.0) * 0.5 * 3;
  CHECK(alpha.at(0, 1, 0) == doctest::Approx(first));
  CHECK(alpha.at(0, 1, 1) == doctest::Approx(6 * 2 * 4));
  Tensor y = mix_states(backend, in).copy();
  CHECK(y.at(1, 0, 0) == doctest::Approx(first * 7 + 48 * 8 + 80));
  Tensor now = alpha.copy();
  now.ref(0, 1, 0) = 2;
  remix(backend, in, alpha, now, 0, y);
  CHECK(y.at(0, 0, 0) == doctest::Approx(7.5 * 7 + 70));
  CHECK(y.at(1, 0, 0) == doctest::Approx(2 * 7 + 48 * 8 + 80));
}

TEST_CASE("state space: what a head has forgotten can be set, be it 0 in α or a number too small to divide by") {
  // α of the first token behind two others is 2 e^−2 rate, which one way of computing it makes 0 before another does.
  for (const bool alike : {true, false})
    for (const float rate : {10.0f, 35.0f, 42.0f, 45.0f, 51.0f, 200.0f}) {
      CAPTURE(alike);
      CAPTURE(rate);
      Backend backend{1};
      StateMixing in;
      in.x = Tensor::from({3, 1, 1}, std::vector<float>{7, 0, 8});
      in.delta = Tensor::full({3, 1}, 1);
      in.a = alike ? Tensor::full({1, 1}, -rate) : Tensor::full({1, 2}, -rate);
      in.b = in.c = Tensor::full({3, 1, 2}, 1);
      const Tensor alpha = mean_patterns(backend, in, 1, {0, 3});
      CHECK(alpha.at(0, 2, 0) == doctest::Approx(2 * std::exp(-2 * static_cast<double>(rate))).scale(1e-30));
      Tensor y = mix_states(backend, in).copy(), now = alpha.copy();
      now.ref(0, 2, 0) = 0.5f;
      remix(backend, in, alpha, now, 0, y);
      CHECK(y.at(0, 0, 0) == 14);
      CHECK(y.at(2, 0, 0) == doctest::Approx(0.5 * 7 + 2 * 8));
      now = alpha.copy();
      now.ref(0, 2, 2) = 3;  // another cell of the row: this one is as it was
      remix(backend, in, alpha, now, 0, y);
      CHECK(y.at(2, 0, 0) == doctest::Approx(3 * 8).epsilon(1e-6));
    }
}

TEST_CASE("state space: a head of two channels has the mean of their α, and a changed cell scales both") {
  Backend backend{1};
  StateMixing in;
  const auto of = [](const Shape& shape, std::vector<float> values) { return Tensor::from(shape, values); };
  in.x = of({1, 2, 1}, {2, 3});
  in.delta = of({1, 2}, {1, 3});
  in.a = of({2, 1}, {-1, -2});
  in.b = of({1, 1, 1}, {0.5f});
  in.c = of({1, 1, 1}, {2});
  const Tensor alpha = mean_patterns(backend, in, 1, {0, in.x.dim(0)});  // of 1 and 3
  CHECK(alpha.at(0, 0, 0) == doctest::Approx(2));
  Tensor now = Tensor::full({1, 1, 1}, 4), y = mix_states(backend, in).copy();
  remix(backend, in, alpha, now, 0, y);
  CHECK(y.at(0, 0, 0) == doctest::Approx(2 * 2));
  CHECK(y.at(0, 1, 0) == doctest::Approx(6 * 3));
}

TEST_CASE("state space: of edited α what passes by the state has a slope of its own, or none where nothing passes by") {
  for (const bool passes : {true, false}) {
    CAPTURE(passes);
    Backend backend{1};
    // The two tokens above: α = 7.5; 9 e⁻², 48. The one back is put to 2, whatever the lane makes of it.
    StateMixing in;
    const auto of = [](const Shape& shape, std::vector<float> values) { return Tensor::from(shape, values); };
    in.x = of({2, 1, 1}, {7, 8});
    in.delta = of({2, 1}, {0.5f, 2});
    in.a = of({1, 1}, {-1});
    in.b = of({2, 1, 1}, {3, 4});
    in.c = of({2, 1, 1}, {5, 6});
    if (passes) in.d = of({1}, {10});
    const Tensor alpha = mean_patterns(backend, in, 1, {0, in.x.dim(0)});
    Tensor now = alpha.copy();
    now.ref(0, 1, 0) = 2;
    Tape tape(backend);
    tape.watch(in.x);
    if (passes) tape.watch(in.d);
    Tensor y;
    {
      const Backend::Recording recording(backend, &tape);
      y = mixed_by(backend, in, alpha, now);
    }
    const double d = passes ? 10 : 0;
    CHECK(y.at(0, 0, 0) == doctest::Approx(7.5 * 7 + d * 7));
    CHECK(y.at(1, 0, 0) == doctest::Approx(2 * 7 + 48 * 8 + d * 8));
    tape.backward(y, of({2, 1, 1}, {1, 100}));  // of y₀ + 100 y₁
    const Tensor dx = tape.gradient(in.x).packed();
    CHECK(dx.at(0, 0, 0) == doctest::Approx(7.5 + d + 100 * 2));
    CHECK(dx.at(1, 0, 0) == doctest::Approx(100 * (48 + d)));
    if (passes) CHECK(tape.gradient(in.d).packed().at(0) == doctest::Approx(7 + 100 * 8));
  }
}

TEST_CASE("state space: what α makes of x is what the states make of it") {
  for (const char* folder : folders) {
    CAPTURE(folder);
    Subject s(folder);
    const auto last = static_cast<Index>(ids.size()) - 1;
    OtherCell none({1, 2}, last, 0, 0.75f);
    s.model().forward(s.ctx(&none), ids);
    RunRequest plain = s.request;
    plain.capture.sites = {SiteKind::z};
    const auto trace = run(s.loaded, plain, s.ctx());
    const Tensor& scan = trace->sites.at({SiteKind::z, 1});
    // The head's rows before the changed one were made by its matrices; other heads by their states.
    double own = 0, changed = 0;
    for (Index t = 0; t <= last; ++t)
      for (Index head = 0; head < scan.dim(1); ++head)
        for (Index i = 0; i < scan.dim(2); ++i) {
          const double gap =
              std::abs(static_cast<double>(scan.at(t, head, i)) - static_cast<double>(none.z.at(t, head, i)));
          if (head != 2)
            CHECK(gap == 0);
          else
            (t == last ? changed : own) = std::max(t == last ? changed : own, gap);
        }
    CHECK(own < 1e-5);
    CHECK(changed > 1e-3);
  }
}

TEST_CASE(
    "state space: a cache that was cut back anywhere gives the logits of a pass without one, and maps of all keys") {
  for (const char* folder : folders) {
    CAPTURE(folder);
    Subject s(folder);
    const std::span<const std::int32_t> all(ids);
    KvCache cache(s.model().config().dims, 20);
    s.model().forward(s.ctx(), all, &cache);
    for (const int kept : {12, 11, 3, 1, 0}) {
      CAPTURE(kept);
      std::vector<std::int32_t> text(ids.begin(), ids.begin() + kept);
      cache.truncate(kept);
      const std::vector<std::int32_t> more{9, 30, 2};
      text.insert(text.end(), more.begin(), more.end());
      const ForwardResult fresh = s.model().forward(s.ctx(), text, nullptr, {MapStorage::dense});
      const ForwardResult first = s.model().forward(s.ctx(), std::span(more).first(1), &cache);
      const ForwardResult rest = s.model().forward(s.ctx(), std::span(more).subspan(1), &cache, {MapStorage::factored});
      CHECK(largest_difference(first.logits, fresh.logits.slice(0, kept, kept + 1)) < 1e-5);
      CHECK(largest_difference(rest.logits, fresh.logits.slice(0, kept + 1, kept + 3)) < 1e-5);
      REQUIRE(rest.maps.size() == fresh.maps.size());
      for (std::size_t m = 0; m < fresh.maps.size(); ++m) {
        CHECK(rest.maps[m].place().kind == MapKind::effective);
        CHECK(largest_difference(rest.maps[m].to_dense(), fresh.maps[m].to_dense().slice(0, kept + 1, kept + 3)) <
              1e-5);
      }
    }
  }
}

TEST_CASE("state space: masks take keys away and leave the others as they are; opened ones are refused") {
  for (const char* folder : folders) {
    CAPTURE(folder);
    Subject s(folder);
    const auto plain = s.run_with({}), cut = s.run_with({"0.1: mask window 3"});
    for (Index i = 0; i < 13; ++i)
      for (Index j = 0; j <= i; ++j) {
        const float before = plain->map({0, 1}).weight(i, j), now = cut->map({0, 1}).weight(i, j);
        CHECK(now == (i - j < 3 ? before : 0));
        CHECK(cut->map({0, 2}).weight(i, j) == plain->map({0, 2}).weight(i, j));
      }
    CHECK(cut->map({0, 1}).masked(9, 2));
    CHECK(largest_difference(plain->logits, cut->logits) > 1e-3);
    const auto set = s.run_with({"1.0: weight -1 4 0.5"});
    CHECK(set->map({1, 0}).weight(12, 4) == 0.5f);
    CHECK(set->map({1, 0}).weight(12, 5) == plain->map({1, 0}).weight(12, 5));
    CHECK_THROWS_WITH_AS(s.run_with({"*: mask full"}), doctest::Contains("no token sees a later one"), Error);
    // Frozen while another edit is at work below: the weights are those from before it.
    const auto frozen = s.run_with({"0.*: ablate zero", "1.*: freeze pattern"});
    CHECK(largest_difference(frozen->map({1, 0}).to_dense(), plain->map({1, 0}).to_dense()) < 1e-6);
    CHECK(largest_difference(s.run_with({"0.*: ablate zero"})->map({1, 0}).to_dense(), plain->map({1, 0}).to_dense()) >
          1e-3);
    CHECK(s.run_with({"*: mask (full) and causal"})->map({0, 0}).weight(3, 1) == plain->map({0, 0}).weight(3, 1));
    for (const char* edit : {"*: temperature 0.5", "*: position none", "*: pattern uniform", "*: share keys 1",
                             "*: mechanism linear", "*: scale by length 16", "*: drop first 1"})
      CHECK_THROWS_WITH_AS(s.run_with({edit}), doctest::Contains("a state space"), Error);
    CHECK(largest_difference(plain->logits, s.run_with({"*: drop first 1 and its weight"})->logits) > 1e-3);
    CHECK_THROWS_WITH_AS(s.run_with({}, {SiteKind::q}), doctest::Contains("with attention"), Error);
  }
}

TEST_CASE("state space: two edited texts in one pass are each as alone") {
  for (const char* folder : folders) {
    CAPTURE(folder);
    Subject s(folder);
    OtherCell alone({0, 0}, 4, 1, 0.5f), together({0, 0}, 4, 1, 0.5f);
    const std::span<const std::int32_t> first = std::span(ids).first(6);
    const Tensor one = s.model().forward(s.ctx(&alone), first).logits;
    std::vector<std::int32_t> two(first.begin(), first.end());
    two.insert(two.end(), first.begin(), first.end());
    const std::vector<Index> lengths{6, 6};
    const ForwardResult both =
        s.model().forward(s.ctx(&together), two, nullptr, {MapStorage::dense, nullptr, nullptr, -1}, true, {}, lengths);
    CHECK(largest_difference(one, both.logits.slice(0, 0, 6)) < 1e-5);
    CHECK(largest_difference(one, both.logits.slice(0, 6, 12)) < 1e-5);
    const auto heads = static_cast<std::size_t>(s.model().config().dims.heads);
    CHECK(both.maps.size() == 2 * heads * static_cast<std::size_t>(s.model().config().dims.layers));
    CHECK(both.maps[heads].weight(4, 1) == 0.5f);  // of the second text
  }
}

TEST_CASE("state space: gradients under a mask are the slopes of the masked pass") {
  for (const char* folder : folders) {
    CAPTURE(folder);
    Subject s(folder);
    const std::span<const std::int32_t> text = std::span(ids).first(6);
    /// Moves one number of the embedding, and lets no token see further back than two.
    struct Moved final : Tap {
      Index element = 0;
      float by = 0;
      std::shared_ptr<const AttentionRule> window = parse_mask("window 3");
      HeadRule head_rule(HeadId, HeadRule usual) const override {
        usual.rule = window;
        return usual;
      }
      bool wants(Site site) const override { return site.kind == SiteKind::embed; }
      Tensor at(Site, const Tensor& value) override {
        Tensor changed = value.copy();
        changed.mutable_data()[element] += by;
        return changed;
      }
    };
    const auto run_moved = [&](Index element, float by) {
      Moved tap;
      tap.element = element, tap.by = by;
      return input_gradients(s.model(), s.ctx(&tap), text, {.kind = GradientOf::Kind::logit, .token = 7});
    };
    const InputGradients found = run_moved(0, 0);
    const Index width = s.model().config().dims.d_model;
    double largest = 0;
    for (Index element = 2; element < 6 * width; element += 5) {
      const double slope = (run_moved(element, 4e-3f).value - run_moved(element, -4e-3f).value) / 8e-3;
      largest = std::max(largest, std::abs(slope));
      CHECK(found.embedding.at(element / width, element % width) == doctest::Approx(slope).epsilon(0.02).scale(0.1));
    }
    CHECK(largest > 0.01);
  }
}

TEST_CASE("state space: configurations") {
  const auto read = [](const std::string& type, const std::string& more) {
    return family(type, "here")
        .read_config(ConfigReader::parse(
            "{\"num_hidden_layers\": 2, \"hidden_size\": 18, \"vocab_size\": 43" + more + "}", "here"));
  };
  const ModelConfig c = read("mamba", "");
  CHECK(c.dims.d_inner == 36);
  CHECK(c.dims.lanes == 36);
  CHECK(c.dims.heads == 6);  // the largest divisor up to 8
  CHECK(c.dims.d_head == 6);
  CHECK(c.state_space->step_rank == 2);  // ⌈18 ÷ 16⌉
  CHECK(c.dims.d_state == 16);
  CHECK(c.tied_embeddings);
  const std::string heads = ", \"num_heads\": 6, \"head_dim\": 6, \"n_groups\": 2, \"state_size\": 5";
  for (const char* limits :
       {", \"time_step_limit\": [0.0, Infinity]", ", \"time_step_limit\": [0.0, {\"__float__\": \"Infinity\"}]", ""}) {
    const ModelConfig two = read("mamba2", heads + limits);
    CHECK(std::isinf(two.state_space->most_step));
    CHECK(two.dims.convolved == 36 + 2 * 2 * 5);
    CHECK_FALSE(two.tied_embeddings);
  }
  CHECK(read("mamba2", heads + ", \"time_step_limit\": [0.25, 1.5]").state_space->least_step == 0.25);
  CHECK_THROWS_WITH_AS(read("mamba2", ", \"num_heads\": 5, \"head_dim\": 6, \"n_groups\": 1"), doctest::Contains("36"),
                       Error);
  CHECK_THROWS_WITH_AS(read("mamba2", heads + ", \"time_step_limit\": [2, 1]"), doctest::Contains("time_step_limit"),
                       Error);
  CHECK_THROWS_WITH_AS(read("mamba2", ", \"num_heads\": 6, \"head_dim\": 6, \"n_groups\": 4"),
                       doctest::Contains("divisor"), Error);
  CHECK_THROWS_WITH_AS(read("mamba", ", \"time_step_rank\": \"few\""), doctest::Contains("auto"), Error);
}

TEST_CASE("state space: what a token takes in a cache, and a text of any length in the state") {
  const ModelConfig c = load_config(reference("families/mamba2"));
  CHECK(kept_numbers(c.dims).numbers == 56 + 36 + 6 + 2 * 5);
  CHECK(needed_numbers(c).numbers == 0);
  CHECK(state_numbers(c).numbers == 36 * 5 + 56 * 2);
  CHECK(state_numbers(load_config(reference("families/mistral"))).numbers == 0);
}

}  // namespace headscope::state_space_test
