// Disentangled attention against its definition, number by number.

#include "core/attention/positions/disentangled.h"

#include <doctest/doctest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "core/attention/described_rule.h"
#include "core/attention/masks.h"
#include "core/attention/softmax_attention.h"
#include "tests/support/random_tensor.h"
#include "tests/support/worst.h"

namespace headscope::disentangled_test {

using testing::random_tensor;
using testing::Worst;

namespace {

/// Scores as they stand in the pass, and temperatures of heads.
class Scores final : public Tap {
 public:
  HeadRule head_rule(HeadId id, HeadRule usual) const override {
    if (id.head == 1) usual.scale /= 2;
    if (id.head == 2) usual.without_distances = {{3, 5}};
    return usual;
  }
  bool wants(Site site) const override { return watches && site.kind == SiteKind::attn_scores; }
  Tensor at(Site, const Tensor& value) override {
    seen.push_back(value);
    return value;
  }
  bool watches = true;
  std::vector<Tensor> seen;
};

struct Heads {
  Index n = 9, heads = 3, d = 5;
  Tensor q = random_tensor({n, heads, d}, 1), k = random_tensor({n, heads, d}, 2), v = random_tensor({n, heads, d}, 3);
  std::vector<std::shared_ptr<const DistanceVectors>> distances;

  Heads(Index span, int max_distance, bool keys, bool queries) {
    for (Index head = 0; head < heads; ++head)
      distances.push_back(std::make_shared<const DistanceVectors>(
          DistanceVectors{keys ? random_tensor({2 * span, d}, static_cast<std::uint64_t>(10 + head)) : Tensor(),
                          queries ? random_tensor({2 * span, d}, static_cast<std::uint64_t>(20 + head)) : Tensor(),
                          span, max_distance}));
  }
  AttentionInput input(MapStorage storage) const {
    AttentionInput in;
    in.q = q, in.k = k, in.v = v;
    in.scale = 0.4f;
    in.rule = window_rule(7);
    in.distances = distances;
    in.storage = storage;
    return in;
  }
  /// scale · (q_i·k_j + q_i·K_r + k_j·Q_r) where the row of the distance is `row`.
  double score(Index head, Index i, Index j, Index row, bool terms = true) const {
    double sum = 0;
    const DistanceVectors& own = *distances[static_cast<std::size_t>(head)];
    for (Index c = 0; c < d; ++c) {
      const auto a = static_cast<double>(q.at(i, head, c)), b = static_cast<double>(k.at(j, head, c));
      sum += a * b;
      if (terms && own.keys.defined()) sum += a * static_cast<double>(own.keys.at(row, c));
      if (terms && own.queries.defined()) sum += b * static_cast<double>(own.queries.at(row, c));
    }
    return 0.4 * sum;
  }
};

}  // namespace

TEST_CASE("rows of distances are those of the published program, log-bucketed or clipped") {
  const Index of_eight[] = {0, 0,  0,  1,  1,  1,  1,  1,  1,  1,  1,  2,  2,  2,  2,  2,  3,  3,  4,  5,  6,  7, 8,
                            9, 10, 11, 12, 13, 13, 14, 14, 14, 14, 14, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15};
  for (Index d = -22; d <= 22; ++d) CHECK(distance_row(d, 8, 20) == of_eight[d + 22]);
  // DeBERTa-v3's: 256 buckets of distances up to 512.
  for (const auto& [distance, row] : {std::pair<Index, Index>{-600, 0},
                                      {-511, 1},
                                      {-500, 2},
                                      {-200, 87},
                                      {-129, 127},
                                      {-128, 128},
                                      {-5, 251},
                                      {0, 256},
                                      {127, 383},
                                      {128, 384},
                                      {129, 385},
                                      {130, 386},
                                      {200, 425},
                                      {400, 489},
                                      {511, 511},
                                      {2000, 511}})
    CHECK(distance_row(distance, 256, 512) == row);
  for (Index d = -9; d <= 9; ++d) CHECK(distance_row(d, 4, 0) == std::min<Index>(std::max<Index>(d + 4, 0), 7));
}

TEST_CASE("scores, maps of either storage and a rule's own words hold the three products") {
  for (const auto& [keys, queries] : {std::pair{true, true}, {true, false}, {false, true}}) {
    const Heads heads(4, 8, keys, queries);
    Backend backend(2);
    Scores tap;
    const AttentionOutput dense = softmax_attention(heads.input(MapStorage::dense), backend, &tap, {});
    tap.watches = false;
    const AttentionOutput fused = softmax_attention(heads.input(MapStorage::dense), backend, &tap, {}),
                          factored = softmax_attention(heads.input(MapStorage::factored), backend, &tap, {});
    REQUIRE(tap.seen.size() == 1);
    Worst scores, weights, rounding;
    for (Index head = 0; head < heads.heads; ++head) {
      const AttentionMap& map = factored.maps[static_cast<std::size_t>(head)];
      REQUIRE(map.is_factored());
      for (Index i = 0; i < heads.n; ++i) {
        const bool terms = head != 2 || i < 3 || i >= 5;
        const double tau = head == 1 ? 2 : 1;
        std::vector<double> row;
        double sum = 0;
        for (Index j = std::max<Index>(0, i - 6); j <= i; ++j) {
          const double score = heads.score(head, i, j, distance_row(i - j, 4, 8), terms) / tau;
          scores.add(std::abs(score - static_cast<double>(tap.seen[0].at(head, i, j))));
          row.push_back(std::exp(score));
          sum += row.back();
          const auto told = map.rule()->distance_terms(i, j);
          REQUIRE(told.has_value() == terms);
          if (!told) continue;
          CHECK(told->row == distance_row(i - j, 4, 8));
          scores.add(std::abs(heads.score(head, i, j, told->row, false) / tau + told->content_to_position +
                              told->position_to_content - score));
          if (!keys) CHECK(told->content_to_position == 0);
          if (!queries) CHECK(told->position_to_content == 0);
        }
        for (Index j = 0; j < heads.n; ++j) {
          const Index first = std::max<Index>(0, i - 6);
          const double truth = j < first || j > i ? 0 : row[static_cast<std::size_t>(j - first)] / sum;
          for (const AttentionOutput* out : {&dense, &fused, &factored})
            weights.add(std::abs(truth - static_cast<double>(out->maps[static_cast<std::size_t>(head)].weight(i, j))));
        }
      }
    }
    CHECK(scores.value() < 1e-5);
    CHECK(weights.value() < 1e-6);
  }
}

TEST_CASE("texts of different lengths in one pass have their own distances") {
  Heads heads(3, 0, true, true);
  Backend backend(2);
  AttentionInput in = heads.input(MapStorage::dense);
  in.rule = full_rule();
  const std::vector<Index> lengths{4, 5};
  in.lengths = lengths;
  in.mapped = -1;
  const AttentionOutput both = softmax_attention(in, backend, nullptr, {});
  REQUIRE(both.maps.size() == 6);
  Index begin = 0;
  for (std::size_t text = 0; text < 2; ++text) {
    AttentionInput one = in;
    one.lengths = {};
    one.q = heads.q.slice(0, begin, begin + lengths[text]), one.k = heads.k.slice(0, begin, begin + lengths[text]),
    one.v = heads.v.slice(0, begin, begin + lengths[text]);
    const AttentionOutput alone = softmax_attention(one, backend, nullptr, {});
    for (std::size_t head = 0; head < 3; ++head)
      for (Index i = 0; i < lengths[text]; ++i)
        for (Index j = 0; j < lengths[text]; ++j)
          CHECK(both.maps[3 * text + head].weight(i, j) == alone.maps[head].weight(i, j));
    begin += lengths[text];
  }
}

TEST_CASE("what such a rule says of itself is read back as its mask, of all rows or of some") {
  const Heads heads(3, 0, true, true);
  HeadRule rule{rule_by_rows({{4, window_rule(2)}, {9, causal_rule()}}), 1};
  rule.distances = heads.distances[0];
  const RulePtr met = met_rule(rule, heads.q.select(1, 0), heads.k.select(1, 0), 0);
  CHECK(met->describe() == "window 2 at 0..3; causal at 4..8, disentangled 6 distances");
  const RulePtr again = parse_described_rule(met->describe());
  for (Index i = 0; i < 9; ++i)
    for (Index j = 0; j < 9; ++j) CHECK(masked(*again, i, j, 9) == masked(*met, i, j, 9));
}

}  // namespace headscope::disentangled_test
