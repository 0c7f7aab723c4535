#include "core/metrics/cells.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <vector>

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

}  // namespace headscope::cells_test
