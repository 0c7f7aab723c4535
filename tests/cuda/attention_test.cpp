// Attention on the card beside the processor's: z, every weight and every statistic, for rules of all kinds.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/attention/masks.h"
#include "core/attention/rule_edits.h"
#include "core/attention/softmax_attention.h"
#include "tests/cuda/card.h"
#include "tests/support/largest_difference.h"
#include "tests/support/random_tensor.h"
#include "tests/support/worst.h"

namespace headscope::attention_test {

using testing::largest_difference;
using testing::random_tensor;
using testing::Worst;

namespace {

struct Sizes {
  Index n, heads, kv_heads, d, d_value, cached;
};

struct Kind {
  std::string name;
  std::function<void(AttentionInput&)> set;
  std::function<HeadRule(HeadId, HeadRule)> tapped = nullptr;
};

class Rules final : public Tap {
 public:
  explicit Rules(std::function<HeadRule(HeadId, HeadRule)> rule) : rule_(std::move(rule)) {}
  bool wants(Site) const override { return false; }
  Tensor at(Site, const Tensor& value) override { return value; }
  HeadRule head_rule(HeadId id, HeadRule usual) const override { return rule_(id, std::move(usual)); }

 private:
  std::function<HeadRule(HeadId, HeadRule)> rule_;
};

const std::vector<double>& slopes() {
  static const std::vector<double> list{0.5, 0.25, 0.125, 0.0625, 0.03, 0.02};
  return list;
}

const std::vector<std::shared_ptr<const BucketBias>>& buckets() {
  static const auto list = [] {
    std::vector<std::shared_ptr<const BucketBias>> out;
    for (int head = 0; head < 6; ++head) {
      BucketBias bias{{}, 32, false};
      for (int i = 0; i < 8; ++i) bias.bias.push_back(0.3f * static_cast<float>((i * 5 + head) % 7) - 1);
      out.push_back(std::make_shared<const BucketBias>(bias));
    }
    return out;
  }();
  return list;
}

std::vector<Kind> kinds() {
  return {
      {"causal", [](AttentionInput& in) { in.rule = causal_rule(); }},
      {"full", [](AttentionInput& in) { in.rule = full_rule(); }},
      {"window", [](AttentionInput& in) { in.rule = window_rule(5); }},
      {"slopes", [](AttentionInput& in) { in.slopes = slopes(); }},
      {"rounded slopes", [](AttentionInput& in) { in.slopes = slopes(), in.slope_unit = 0.25; }},
      {"capped", [](AttentionInput& in) { in.cap = 1.5f; }},
      {"sinks",
       [](AttentionInput& in) {
         in.sinks = random_tensor({in.q.dim(1)}, 9);
         in.sinks.ref(0) = 30;  // takes nearly all
       }},
      {"capped, slopes, sinks, window",
       [](AttentionInput& in) {
         in.rule = window_rule(9), in.cap = 2, in.slopes = slopes(), in.sinks = random_tensor({in.q.dim(1)}, 9);
       }},
      {"a sink inside the rule", [](AttentionInput& in) { in.rule = sink_rule(window_rule(9), 0.7f); }},
      {"buckets", [](AttentionInput& in) { in.buckets = buckets(); }},
      {"large scores", [](AttentionInput& in) { in.scale = 4; }},
      {"a tap's", [](AttentionInput& in) { in.cap = 3; },
       [](HeadId id, HeadRule usual) {
         if (id.head == 0) usual.scale /= 4;
         if (id.head == 1) usual.rule = without_first(usual.rule, 2);  // the first rows see nothing
         if (id.head == 2)
           usual.rule = scaled_rule(
               usual.rule, [](Index i) { return 0.5f + 0.1f * static_cast<float>(i % 3); }, "by row");
         if (id.head == 3)
           usual.rule = biased_rule(
               usual.rule, [](Index i, Index j) { return 0.2f * static_cast<float>((i + 2 * j) % 5); }, "biased");
         return usual;
       }},
  };
}

void compare(const std::vector<float>& a, const std::vector<float>& b, double tolerance, const char* what) {
  CAPTURE(what);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(i);
    if (std::isnan(a[i]) || std::isnan(b[i]))
      REQUIRE(std::isnan(a[i]) == std::isnan(b[i]));
    else
      REQUIRE(static_cast<double>(a[i]) == doctest::Approx(b[i]).epsilon(tolerance).scale(1));
  }
}
void compare(const std::vector<double>& a, const std::vector<double>& b, double tolerance, const char* what) {
  CAPTURE(what);
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::isinf(a[i]) && a[i] == b[i])) REQUIRE(a[i] == doctest::Approx(b[i]).epsilon(tolerance).scale(1));
}

/// `scale`: how large the scores are, whose rounding moves a weight.
void compare(const AttentionMap& here, const AttentionMap& there, double scale = 1) {
  CHECK(here.is_factored() == there.is_factored());
  CHECK(here.place().kv_head == there.place().kv_head);
  REQUIRE(largest_difference(here.to_dense(), there.to_dense()) < 1e-5 * scale);
  const HeadStats &a = here.stats(), &b = there.stats();
  compare(a.log_sum_exp, b.log_sum_exp, 1e-5 * scale, "log-sum-exp");
  compare(a.entropy, b.entropy, 2e-5 * scale, "entropy");
  compare(a.entropy_without_first, b.entropy_without_first, 1e-4 * scale, "entropy without the first key");
  compare(a.max_weight, b.max_weight, 1e-5 * scale, "largest weight");
  compare(a.first, b.first, 1e-5 * scale, "weight of the first key");
  compare(a.duplicate, b.duplicate, 1e-5 * scale, "duplicate");
  compare(a.induction, b.induction, 1e-5 * scale, "induction");
  compare(a.column_mass, b.column_mass, 1e-4 * scale, "column mass");
  compare(a.distance_mass, b.distance_mass, 1e-4 * scale, "distance mass");
  REQUIRE(a.max_key.size() == b.max_key.size());
  for (std::size_t i = 0; i < a.max_key.size(); ++i)
    if (a.max_key[i] != b.max_key[i])  // of two that are equal but for rounding
      REQUIRE(here.weight(static_cast<Index>(i), a.max_key[i]) ==
              doctest::Approx(here.weight(static_cast<Index>(i), b.max_key[i])).epsilon(1e-5 * scale));
  CHECK(a.overview.bin == b.overview.bin);
  REQUIRE(largest_difference(a.overview.values, b.overview.values) < 1e-5 * scale);
}

TokenLinks links(Index count) {
  std::vector<std::int32_t> tokens;
  for (Index i = 0; i < count; ++i) tokens.push_back(static_cast<std::int32_t>(i * i % 11));
  return TokenLinks::of(tokens);
}

AttentionInput input(const Sizes& s, MapStorage storage) {
  AttentionInput in;
  in.q = random_tensor({s.n, s.heads, s.d}, 1);
  in.k = random_tensor({s.n + s.cached, s.kv_heads, s.d}, 2);
  in.v = random_tensor({s.n + s.cached, s.kv_heads, s.d_value}, 3);
  in.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.d)));
  in.rule = causal_rule();
  in.offset = s.cached;
  in.storage = storage;
  return in;
}

void compare(const AttentionInput& in, Tap* tap, Backend& here, Backend& card, double scale = 1) {
  const AttentionOutput expected = softmax_attention(in, here, tap, {}), got = softmax_attention(in, card, tap, {});
  card.finish();
  REQUIRE(got.z.remote() != nullptr);  // it was the card
  REQUIRE(largest_difference(expected.z, got.z) < 2e-5 * scale);
  REQUIRE(expected.maps.size() == got.maps.size());
  for (std::size_t head = 0; head < got.maps.size(); ++head) {
    CAPTURE(head);
    compare(expected.maps[head], got.maps[head], scale);
  }
}

/// `scale`: of what may differ.
void compare_all(const std::vector<Sizes>& sizes, Backend& here, Backend& card, double scale = 1) {
  for (const Sizes s : sizes)
    for (const Kind& kind : kinds())
      for (const MapStorage storage : {MapStorage::none, MapStorage::factored, MapStorage::dense}) {
        CAPTURE(s.n);
        CAPTURE(s.d);
        CAPTURE(s.cached);
        CAPTURE(kind.name);
        AttentionInput in = input(s, storage);
        const TokenLinks linked = links(s.n + s.cached);
        if (s.n != 7) in.links = &linked;
        kind.set(in);
        Rules rules(kind.tapped);
        compare(in, kind.tapped ? &rules : nullptr, here, card, kind.name == "large scores" ? 60 * scale : scale);
      }
}

}  // namespace

TEST_CASE("attention on the card: z, maps and statistics as on the processor, whatever the rule and the sizes") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  compare_all({{1, 4, 4, 16, 16, 0},
               {7, 4, 2, 8, 8, 0},
               {16, 6, 1, 64, 64, 30},
               {1, 4, 4, 64, 64, 300},
               {2, 4, 4, 20, 12, 1000},
               {40, 4, 2, 256, 256, 0},  // too wide for tiles
               {64, 4, 4, 64, 64, 0},
               {65, 4, 2, 32, 32, 0},
               {70, 4, 4, 24, 40, 13},
               {90, 4, 4, 27, 30, 0},  // rows that begin at any number
               {200, 4, 4, 64, 64, 0},
               {300, 4, 2, 80, 80, 50},
               {517, 4, 4, 128, 64, 0}},
              here, *card);
}

TEST_CASE("attention on the card, quickly") {  // for the sanitizers
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  compare_all({{1, 4, 2, 16, 16, 150}, {3, 4, 2, 16, 16, 5}, {70, 4, 2, 32, 24, 5}, {140, 4, 4, 64, 64, 0}}, here,
              *card);
}

TEST_CASE("a row too long to stay on chip, and several texts at once") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  AttentionInput in;
  in.q = random_tensor({3, 2, 16}, 1);
  in.k = random_tensor({9003, 2, 16}, 2);
  in.v = random_tensor({9003, 2, 16}, 3);
  in.scale = 0.25f;
  in.rule = causal_rule();
  in.offset = 9000;
  in.storage = MapStorage::factored;
  AttentionOutput expected = softmax_attention(in, here, nullptr, {}), got = softmax_attention(in, *card, nullptr, {});
  card->finish();
  CHECK(largest_difference(expected.z, got.z) < 2e-5);
  for (std::size_t head = 0; head < 2; ++head) {
    compare(expected.maps[head].stats().column_mass, got.maps[head].stats().column_mass, 1e-5, "column mass");
    compare(expected.maps[head].stats().entropy, got.maps[head].stats().entropy, 2e-5, "entropy");
    CHECK(largest_difference(expected.maps[head].stats().overview.values, got.maps[head].stats().overview.values) <
          1e-6);
  }

  const std::vector<Index> lengths{30, 5, 70};
  in.q = random_tensor({105, 2, 16}, 4);
  in.k = random_tensor({105, 2, 16}, 5);
  in.v = random_tensor({105, 2, 16}, 6);
  in.offset = 0;
  in.lengths = lengths;
  in.mapped = -1;
  expected = softmax_attention(in, here, nullptr, {});
  got = softmax_attention(in, *card, nullptr, {});
  card->finish();
  CHECK(largest_difference(expected.z, got.z) < 2e-5);
  REQUIRE(got.maps.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) compare(expected.maps[i], got.maps[i]);
}

TEST_CASE("attention on the card where the pooled map's bins are wider than a tile") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  for (const Sizes s : {Sizes{40, 2, 1, 64, 64, 8200}, Sizes{70, 1, 1, 128, 100, 4200}}) {
    AttentionInput in = input(s, MapStorage::factored);
    const TokenLinks linked = links(s.n + s.cached);
    in.links = &linked;
    compare(in, nullptr, here, *card);
  }
}

TEST_CASE("attention by products of 11 bits is as far off as they are") {
  const auto card = testing::card(Precision::tf32);
  if (!card) return;
  Backend here(2);
  compare_all({{70, 4, 2, 32, 24, 5}, {140, 2, 2, 64, 64, 0}, {70, 2, 1, 128, 72, 0}}, here, *card, 200);
}

TEST_CASE("the card gives the same bits again") {
  HEADSCOPE_NEEDS_CARD(card);
  AttentionInput in;
  in.q = random_tensor({500, 4, 64}, 1);
  in.k = random_tensor({500, 4, 64}, 2);
  in.v = random_tensor({500, 4, 64}, 3);
  in.scale = 0.125f;
  in.rule = causal_rule();
  in.storage = MapStorage::factored;
  const AttentionOutput a = softmax_attention(in, *card, nullptr, {}), b = softmax_attention(in, *card, nullptr, {});
  card->finish();
  CHECK(largest_difference(a.z, b.z) == 0);
  for (std::size_t head = 0; head < 4; ++head) {
    CHECK(a.maps[head].stats().column_mass == b.maps[head].stats().column_mass);
    CHECK(a.maps[head].stats().distance_mass == b.maps[head].stats().distance_mass);
  }
}

}  // namespace headscope::attention_test
