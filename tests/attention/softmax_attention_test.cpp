#include "core/attention/softmax_attention.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/attention/attention_kernel.h"
#include "core/attention/masks.h"
#include "core/base/error.h"
#include "core/tensor/panels.h"
#include "core/tensor/tape.h"
#include "tests/support/largest_difference.h"
#include "tests/support/random_tensor.h"
#include "tests/support/worst.h"

namespace headscope::softmax_attention_test {

using testing::largest_difference;
using testing::random_tensor;
using testing::Worst;

namespace {

/// A window of 5 keys with a bias that falls with distance: a rule that is neither causal nor plain.
class WindowWithSlope final : public AttentionRule {
 public:
  KeyRange keys(Index query, Index n_key) const override {
    return {std::max<Index>(0, query - 4), std::min(query + 1, n_key)};
  }
  bool plain() const override { return false; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const Index distance = query - first_key - static_cast<Index>(i);
      scores[i] =
          distance == 2 ? -std::numeric_limits<float>::infinity() : scores[i] - 0.5f * static_cast<float>(distance);
    }
  }
  std::string describe() const override { return "window 5, slope ½, not two back"; }
};

AttentionInput random_input(Index n, Index heads, Index kv_heads, Index d, Index cached,
                            std::shared_ptr<const AttentionRule> rule) {
  AttentionInput in;
  in.q = random_tensor({n, heads, d}, 1);
  in.k = random_tensor({n + cached, kv_heads, d}, 2);
  in.v = random_tensor({n + cached, kv_heads, d}, 3);
  in.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  in.rule = std::move(rule);
  in.offset = cached;
  return in;
}

/// softmax(scale q kᵀ + bias) of one row, in double, by the definition.
std::vector<double> row_by_definition(const AttentionInput& in, Index head, Index i) {
  const Index n_key = in.k.dim(0), kv = head * in.k.dim(1) / in.q.dim(1);
  std::vector<double> row(static_cast<std::size_t>(n_key));
  double sum = 0;
  for (Index j = 0; j < n_key; ++j) {
    if (masked(*in.rule, in.offset + i, j, n_key)) continue;
    float bias = 0;
    in.rule->apply(in.offset + i, j, {&bias, 1});
    double dot = 0;
    for (Index c = 0; c < in.q.dim(2); ++c) dot += static_cast<double>(in.q.at(i, head, c)) * in.k.at(j, kv, c);
    sum += row[static_cast<std::size_t>(j)] = std::exp(dot * in.scale + bias);
  }
  if (sum > 0)
    for (double& w : row) w /= sum;
  return row;
}

struct Apart {
  Worst map, z;
};

Apart from_definition(const AttentionInput& in, const AttentionOutput& out) {
  Apart apart;
  for (Index head = 0; head < in.q.dim(1); ++head)
    for (Index i = 0; i < in.q.dim(0); ++i) {
      const std::vector<double> row = row_by_definition(in, head, i);
      for (Index j = 0; j < in.k.dim(0); ++j)
        apart.map.add(
            std::abs(out.maps[static_cast<std::size_t>(head)].weight(i, j) - row[static_cast<std::size_t>(j)]));
      for (Index c = 0; c < in.q.dim(2); ++c) {
        double z = 0;
        for (Index j = 0; j < in.k.dim(0); ++j)
          z += row[static_cast<std::size_t>(j)] * in.v.at(j, head * in.k.dim(1) / in.q.dim(1), c);
        apart.z.add(std::abs(z - out.z.at(i, head, c)));
      }
    }
  return apart;
}

/// Watches scores and pattern, and may replace one of them.
class Watch final : public Tap {
 public:
  bool wants(Site site) const override { return site.kind == SiteKind::attn_scores || site.kind == SiteKind::pattern; }
  Tensor at(Site site, const Tensor& value) override {
    (site.kind == SiteKind::pattern ? pattern : scores) = value;
    if (site.kind != edited) return value;
    Tensor other = value.copy();
    edit(other);
    return other;
  }
  Tensor scores, pattern;
  SiteKind edited = SiteKind::logits;
  std::function<void(Tensor&)> edit;
};

}  // namespace

TEST_CASE("the worked example: q = [1,0], K = [[1,0],[0,1],[1,1]], V = [10,20,30] gives [0.40, 0.20, 0.40] and 20") {
  Backend backend(1);
  AttentionInput in;
  in.q = Tensor::from({1, 1, 2}, std::vector<float>{1, 0});
  in.k = Tensor::from({3, 1, 2}, std::vector<float>{1, 0, 0, 1, 1, 1});
  in.v = Tensor::from({3, 1, 2}, std::vector<float>{10, 0, 20, 0, 30, 0});
  in.scale = static_cast<float>(1 / std::sqrt(2.0));
  in.rule = full_rule();
  in.storage = MapStorage::dense;
  const AttentionOutput out = softmax_attention(in, backend, nullptr, {});
  const double e = std::exp(1 / std::sqrt(2.0)), z = 2 * e + 1;  // 0.401, 0.198, 0.401
  CHECK(out.maps[0].weight(0, 0) == doctest::Approx(e / z).epsilon(1e-6));
  CHECK(out.maps[0].weight(0, 1) == doctest::Approx(1 / z).epsilon(1e-6));
  CHECK(out.maps[0].weight(0, 2) == doctest::Approx(0.40).epsilon(0.005));
  CHECK(out.z.at(0, 0, 0) == doctest::Approx(20.0).epsilon(1e-6));
}

TEST_CASE("maps and mixtures equal the definition for any rule, group of heads, storage and cached start") {
  Backend backend(2);
  struct Case {
    Index n, heads, kv_heads, d, cached;
  };
  for (const Case c : {Case{1, 1, 1, 2, 0},
                       {7, 4, 2, 8, 0},
                       {70, 3, 1, 24, 0},
                       {33, 4, 4, 32, 40},
                       {200, 2, 2, 64, 0},
                       {1, 6, 3, 16, 90}})
    for (const auto& rule :
         {causal_rule(), full_rule(), std::shared_ptr<const AttentionRule>(std::make_shared<WindowWithSlope>())}) {
      CAPTURE(c.n);
      CAPTURE(c.cached);
      CAPTURE(rule->describe());
      AttentionInput in = random_input(c.n, c.heads, c.kv_heads, c.d, c.cached, rule);
      in.storage = MapStorage::dense;
      const AttentionOutput dense = softmax_attention(in, backend, nullptr, {});
      const Apart apart = from_definition(in, dense);
      CHECK(apart.map.value() < 2e-6);
      CHECK(apart.z.value() < 1e-5);

      in.storage = MapStorage::factored;
      const AttentionOutput factored = softmax_attention(in, backend, nullptr, {});
      CHECK(factored.maps[0].is_factored());
      CHECK(std::ranges::equal(factored.z.values(), dense.z.values()));
      for (std::size_t h = 0; h < dense.maps.size(); ++h) {
        CHECK(largest_difference(dense.maps[h].to_dense(), factored.maps[h].to_dense()) < 1e-6);
        CHECK(std::ranges::equal(dense.maps[h].stats().entropy, factored.maps[h].stats().entropy));
      }

      Watch watch;  // the staged pass: same bits
      in.storage = MapStorage::dense;
      const AttentionOutput staged = softmax_attention(in, backend, &watch, {});
      CHECK(std::ranges::equal(staged.z.values(), dense.z.values()));
      for (std::size_t h = 0; h < dense.maps.size(); ++h) {
        const Tensor left = dense.maps[h].to_dense(), right = staged.maps[h].to_dense();
        CHECK(std::ranges::equal(left.values(), right.values()));
        CHECK(dense.maps[h].stats().column_mass == staged.maps[h].stats().column_mass);
      }
      REQUIRE(watch.scores.defined());
      REQUIRE(watch.pattern.defined());
    }
}

TEST_CASE("large scores agree between storages to 1e-6") {
  Backend backend(2);
  AttentionInput in = random_input(150, 2, 2, 64, 0, causal_rule());
  in.scale = 3;  // scores of a few dozen
  in.storage = MapStorage::dense;
  const AttentionOutput dense = softmax_attention(in, backend, nullptr, {});
  in.storage = MapStorage::factored;
  const AttentionOutput factored = softmax_attention(in, backend, nullptr, {});
  Worst apart;
  for (std::size_t h = 0; h < 2; ++h)
    for (Index i = 0; i < 150; ++i)
      for (Index j = 0; j < 150; ++j)
        apart.add(std::abs(static_cast<double>(dense.maps[h].weight(i, j)) - factored.maps[h].weight(i, j)));
  CHECK(apart.value() < 1e-6);
}

TEST_CASE("the threads have no say in the result") {
  AttentionInput in = random_input(180, 4, 2, 16, 0, causal_rule());
  in.storage = MapStorage::dense;
  Backend one(1), four(4);
  const AttentionOutput a = softmax_attention(in, one, nullptr, {}), b = softmax_attention(in, four, nullptr, {});
  CHECK(std::ranges::equal(a.z.values(), b.z.values()));
  for (std::size_t h = 0; h < 4; ++h) {
    CHECK(a.maps[h].stats().column_mass == b.maps[h].stats().column_mass);
    CHECK(a.maps[h].stats().distance_mass == b.maps[h].stats().distance_mass);
  }
}

TEST_CASE(
    "a few rows behind others have a whole pass's bits, whoever keeps the panels of their keys, for any threads") {
  // Whole panels of values, which are read where they lie, and others; one chunk of a sum and several.
  for (const Index d : {Index{24}, panels::width(), 2 * panels::width()}) {
    CAPTURE(d);
    AttentionInput whole = random_input(150, 4, 2, d, 0, causal_rule());
    whole.storage = MapStorage::dense;
    Backend one(1), three(3);
    const AttentionOutput all = softmax_attention(whole, one, nullptr, {});
    GrowingPanels kept;
    for (Index begin = 0, rows = 0; begin < 150; begin += rows) {
      rows = std::min<Index>(150 - begin, begin == 0 ? 60 : 1 + begin % 6);
      AttentionInput in = whole;
      in.q = whole.q.slice(0, begin, begin + rows);
      for (Tensor* x : {&in.k, &in.v}) *x = x->slice(0, 0, begin + rows);
      in.offset = begin;
      for (Backend* backend : {&one, &three})
        for (GrowingPanels* panels : {static_cast<GrowingPanels*>(nullptr), &kept})
          for (const bool statistics : {true, false}) {
            in.key_panels = panels;
            in.room = 100;
            in.statistics = statistics;
            const AttentionOutput some = softmax_attention(in, *backend, nullptr, {});
            REQUIRE(std::ranges::equal(some.z.values(), all.z.slice(0, begin, begin + rows).values()));
            for (std::size_t head = 0; head < 4; ++head)
              REQUIRE(largest_difference(some.maps[head].to_dense(),
                                         all.maps[head].tile({begin, begin + rows}, {0, begin + rows})) == 0);
            CHECK(some.maps[0].stats().entropy.size() == static_cast<std::size_t>(statistics ? rows : 0));
          }
    }
  }
}

TEST_CASE(
    "edited scores go through the softmax, an edited pattern is mixed as it is, and both maps are dense and true") {
  Backend backend(2);
  AttentionInput in = random_input(12, 2, 2, 8, 0, causal_rule());
  in.storage = MapStorage::factored;
  Watch watch;
  watch.edited = SiteKind::attn_scores;
  watch.edit = [](Tensor& scores) { scores.ref(1, 3, 9) = 50; };  // open a masked cell, and make it win
  const AttentionOutput opened = softmax_attention(in, backend, &watch, {});
  CHECK_FALSE(opened.maps[1].is_factored());
  CHECK(opened.maps[1].weight(3, 9) == doctest::Approx(1).epsilon(1e-6));
  CHECK(opened.maps[1].stats().max_key[3] == 9);
  for (Index c = 0; c < 8; ++c) CHECK(opened.z.at(3, 1, c) == doctest::Approx(in.v.at(9, 1, c)).epsilon(1e-5));

  watch.edited = SiteKind::pattern;
  watch.edit = [](Tensor& pattern) {
    for (Index j = 0; j < 12; ++j) pattern.ref(0, 5, j) = j == 2 ? 0.25f : 0.0f;
  };
  const AttentionOutput painted = softmax_attention(in, backend, &watch, {});
  CHECK(painted.maps[0].weight(5, 2) == 0.25f);
  CHECK(painted.maps[0].stats().max_weight[5] == 0.25f);
  CHECK(painted.maps[0].stats().entropy[5] == doctest::Approx(-0.25 * std::log(0.25)));
  for (Index c = 0; c < 8; ++c) CHECK(painted.z.at(5, 0, c) == doctest::Approx(0.25 * in.v.at(2, 0, c)).epsilon(1e-5));
}

TEST_CASE("a tap may give each head its own mask and temperature, and the maps stay factored") {
  Backend backend(2);
  AttentionInput in = random_input(40, 3, 3, 16, 0, causal_rule());
  struct Rules final : Tap {
    bool wants(Site) const override { return false; }
    Tensor at(Site, const Tensor& value) override { return value; }
    HeadRule head_rule(HeadId id, HeadRule usual) const override {
      if (id.head == 1) usual.scale /= 4;          // temperature 4
      if (id.head == 2) usual.rule = full_rule();  // the future opens
      return usual;
    }
  } rules;
  for (const MapStorage storage : {MapStorage::dense, MapStorage::factored}) {
    in.storage = storage;
    const AttentionOutput out = softmax_attention(in, backend, &rules, {});
    CHECK(out.maps[2].is_factored() == (storage == MapStorage::factored));
    AttentionInput expected = in;
    const AttentionOutput plain = softmax_attention(in, backend, nullptr, {});
    expected.scale = in.scale / 4;
    const AttentionOutput soft = softmax_attention(expected, backend, nullptr, {});
    expected.scale = in.scale;
    expected.rule = full_rule();
    const AttentionOutput open = softmax_attention(expected, backend, nullptr, {});
    for (Index i = 0; i < 40; ++i)
      for (Index j = 0; j < 40; ++j) {
        REQUIRE(out.maps[0].weight(i, j) == plain.maps[0].weight(i, j));
        REQUIRE(out.maps[1].weight(i, j) == soft.maps[1].weight(i, j));
        REQUIRE(out.maps[2].weight(i, j) == open.maps[2].weight(i, j));
      }
    CHECK_FALSE(out.maps[2].masked(0, 39));
    CHECK(out.maps[2].weight(0, 39) > 0);
  }
}

TEST_CASE("an edit of another shape is refused by name, and a stop request ends the pass") {
  Backend backend(2);
  const AttentionInput in = random_input(4, 1, 1, 8, 0, causal_rule());
  struct Shrink final : Tap {
    bool wants(Site site) const override { return site.kind == SiteKind::pattern; }
    Tensor at(Site, const Tensor&) override { return Tensor::zeros({1, 2, 2}); }
  } shrink;
  CHECK_THROWS_WITH_AS(softmax_attention(in, backend, &shrink, {}),
                       "blocks.0.attn.hook_pattern: expected an edit of shape [1, 4, 4], found [1, 2, 2]", Error);
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(softmax_attention(in, backend, nullptr, stop.get_token()), Cancelled);
}

namespace {
/// A card that says what it can and notes what it was asked: every number it computes is 7.
class Card final : public AttentionKernel {
 public:
  bool can = true, can_record = true, can_together = true;
  std::vector<std::pair<std::size_t, MapStorage>> asked;  // texts, and the maps that were wanted
  int recorded = 0;
  bool takes(const AttentionInput&, std::span<const Head>) const override { return can; }
  Tensor room(Shape shape) override { return Tensor::zeros(shape); }
  bool takes_together(const AttentionInput&, std::span<const Head>) const override { return can_together; }
  std::vector<AttentionMap> attend(const AttentionInput& in, std::span<const Head>, Tensor z) override {
    asked.emplace_back(in.lengths.size(), in.storage);
    for (Index i = 0; i < z.dim(0); ++i)
      for (Index h = 0; h < z.dim(1); ++h)
        for (Index e = 0; e < z.dim(2); ++e) z.ref(i, h, e) = 7;
    return {};
  }
  bool records(const Tape&, const AttentionInput&, std::span<const Head>) const override { return can_record; }
  void record(Tape&, const AttentionInput&, std::span<const Head>, const Tensor&) override { ++recorded; }
};
struct WithCard final : Backend {
  WithCard() : Backend(1) {}
  AttentionKernel* attention() override { return &card; }
  Card card;
};
class Watching final : public Tap {
 public:
  bool wants(Site site) const override { return site.kind == SiteKind::pattern; }
  Tensor at(Site, const Tensor& value) override { return value; }
};
}  // namespace

TEST_CASE("a card computes what it takes, and of gradients only what it can record; what a tap watches it never sees") {
  AttentionInput in = random_input(5, 2, 1, 4, 0, causal_rule());
  in.storage = MapStorage::none;
  const auto by_card = [&](auto set, bool taped, Tap* tap) {
    WithCard backend;
    set(backend.card);
    Tape tape(backend);
    if (taped) tape.watch(in.q);
    const Backend::Recording recording(backend, taped ? &tape : nullptr);
    const AttentionOutput out = softmax_attention(in, backend, tap, {});
    CHECK(backend.card.recorded == (taped && out.z.at(0, 0, 0) == 7));
    CHECK(backend.card.asked.size() == (out.z.at(0, 0, 0) == 7 ? 1 : 0));
    return out.z.at(0, 0, 0) == 7 && out.z.at(4, 1, 3) == 7;
  };
  const auto all = [](Card&) {};
  const auto takes_none = [](Card& card) { card.can = false; };
  const auto records_none = [](Card& card) { card.can_record = false; };
  CHECK(by_card(all, false, nullptr));
  CHECK(by_card(all, true, nullptr));
  CHECK_FALSE(by_card(takes_none, false, nullptr));
  CHECK_FALSE(by_card(takes_none, true, nullptr));
  CHECK(by_card(records_none, false, nullptr));
  CHECK_FALSE(by_card(records_none, true, nullptr));
  Watching watching;
  CHECK_FALSE(by_card(all, false, &watching));
}

TEST_CASE("a card computes several texts at once where it can, and then the one whose maps are wanted by itself") {
  using Asked = std::vector<std::pair<std::size_t, MapStorage>>;
  const std::vector<Index> two{3, 2};
  const auto asked = [&](bool several, MapStorage storage, Index mapped, bool together) {
    WithCard backend;
    backend.card.can_together = together;
    AttentionInput in = random_input(5, 2, 1, 4, 0, causal_rule());
    if (several) in.lengths = two;
    in.storage = storage, in.mapped = mapped;
    softmax_attention(in, backend, nullptr, {});
    return backend.card.asked;
  };
  constexpr auto none = MapStorage::none, dense = MapStorage::dense;
  CHECK(asked(true, none, -1, true) == Asked{{2, none}});
  CHECK(asked(true, none, -1, false) == Asked{{0, none}, {0, none}});
  CHECK(asked(true, dense, -1, true) == Asked{{0, dense}, {0, dense}});  // maps of all: one after another
  CHECK(asked(true, dense, 1, true) == Asked{{2, none}, {0, dense}});
  CHECK(asked(true, dense, 1, false) == Asked{{0, none}, {0, dense}});
  CHECK(asked(false, dense, 0, true) == Asked{{0, dense}});
  CHECK(asked(false, none, -1, true) == Asked{{0, none}});
}

}  // namespace headscope::softmax_attention_test
