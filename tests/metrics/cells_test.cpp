#include "core/metrics/cells.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/attention/rule_edits.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "tests/metrics/maps.h"

namespace headscope::cells_test {

using namespace testing;
using doctest::Approx;

TEST_CASE("cells that are read in blocks are the weights of the map: biased, masked, behind cached tokens") {
  Random random(5);
  constexpr Index n_query = 150, offset = 20, n_key = n_query + offset, depth = 5;
  const auto noise = [&](Index rows) {
    Tensor out = Tensor::zeros({rows, depth});
    for (float& each : out.mutable_values()) each = static_cast<float>(random.uniform() - 0.5);
    return out;
  };
  const std::shared_ptr<const AttentionRule> rules[] = {causal_rule(), full_rule(), std::make_shared<Holes>()};
  for (const auto& rule : rules) {
    auto stats = std::make_shared<HeadStats>();
    for (Index i = 0; i < n_query; ++i) stats->log_sum_exp.push_back(static_cast<double>(i) / 3 + random.uniform());
    const AttentionMap factored =
        AttentionMap::factored({.offset = offset}, noise(n_query), noise(n_key), 0.5f, rule, stats);
    const AttentionMap dense = AttentionMap::dense({.offset = offset}, factored.to_dense(), rule, stats);
    std::vector<std::vector<Index>> asked(static_cast<std::size_t>(n_query));  // near cells and far ones; of some none
    for (Index query = 0; query < n_query; ++query)
      for (Index key = 0; key < n_key; ++key)
        if (query % 3 != 0 && random.uniform() < (key + 9 > query + offset && key < query + offset + 2 ? 0.6 : 0.05))
          nth(asked, query).push_back(key);
    for (const AttentionMap* map : {&factored, &dense}) {
      std::vector<bool> told(static_cast<std::size_t>(n_query));
      read_cells(
          *map, [&](Index query, std::vector<Index>& keys) { keys = nth(asked, query); },
          [&](Index query, std::span<const Index> keys, std::span<const float> weights) {
            nth(told, query) = true;
            std::vector<Index> visible = nth(asked, query);
            std::erase_if(visible, [&](Index key) { return map->masked(query, key); });
            REQUIRE(std::ranges::equal(keys, visible));
            REQUIRE(weights.size() == keys.size());
            for (std::size_t i = 0; i < keys.size(); ++i)
              CHECK(weights[i] == Approx(factored.weight(query, keys[i])).epsilon(1e-6));
          });
      for (Index query = 0; query < n_query; ++query)
        CHECK(nth(told, query) ==
              std::ranges::any_of(nth(asked, query), [&](Index key) { return !map->masked(query, key); }));
    }
  }
}

namespace {

/// Causal without key 3, later keys raised by the query; query 570 sees nothing, of 571 every score is hidden.
class Raised final : public AttentionRule {
 public:
  KeyRange keys(Index query, Index n_key) const override { return {0, query == 570 ? 0 : std::min(query + 1, n_key)}; }
  bool plain() const override { return false; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const Index key = first_key + static_cast<Index>(i);
      scores[i] += key == 3 || query == 571 ? -std::numeric_limits<float>::infinity()
                                            : 0.002f * static_cast<float>(key * (query % 7));
    }
  }
  std::string describe() const override { return "raised"; }
};

}  // namespace

TEST_CASE(
    "cells of a long map kept as factors are e^score ÷ Σ e^score by the formula: cap, bias, sink, rows that see "
    "nothing") {
  Random random(8);
  constexpr Index n_query = 150, offset = 530, n_key = n_query + offset, depth = 7;
  constexpr double scale = 0.8;
  const auto noise = [&](Index rows) {
    Tensor out = Tensor::zeros({rows, depth});
    for (float& each : out.mutable_values()) each = static_cast<float>(4 * random.uniform() - 2);
    return out;
  };
  const Tensor q = noise(n_query), k = noise(n_key);
  const auto score = [&](Index row, Index key) {
    double dot = 0;
    for (Index c = 0; c < depth; ++c) dot += static_cast<double>(q.at(row, c)) * static_cast<double>(k.at(key, c));
    return 2 * std::tanh(scale * dot / 2) + 0.002 * static_cast<double>(key * ((offset + row) % 7));
  };
  const auto visible = [&](Index row, Index key) { return row != 40 && row != 41 && key != 3 && key <= offset + row; };
  auto stats = std::make_shared<HeadStats>();
  for (Index row = 0; row < n_query; ++row) {
    double sum = std::exp(1.5);
    for (Index key = 0; key < n_key; ++key)
      if (visible(row, key)) sum += std::exp(score(row, key));
    stats->log_sum_exp.push_back(std::log(sum));
  }
  const RulePtr rule = capped_rule(sink_rule(std::make_shared<Raised>(), 1.5f), 2);
  const AttentionMap map = AttentionMap::factored({.offset = offset}, q, k, static_cast<float>(scale), rule, stats);
  Index rows = 0, cells = 0;
  read_cells(
      map,
      [&](Index row, std::vector<Index>& keys) {
        for (const Index key : {Index{0}, Index{2}, Index{3}, 300 + row % 7, 599 + row % 5, offset + row - 1})
          if (keys.empty() || key > keys.back()) keys.push_back(key);
      },
      [&](Index row, std::span<const Index> keys, std::span<const float> weights) {
        ++rows;
        for (std::size_t i = 0; i < keys.size(); ++i, ++cells) {
          CHECK(visible(row, keys[i]));
          CHECK(weights[i] == Approx(std::exp(score(row, keys[i]) - nth(stats->log_sum_exp, row))).epsilon(1e-5));
        }
      });
  CHECK(rows == n_query - 2);
  CHECK(cells > 4 * rows);
}

}  // namespace headscope::cells_test
