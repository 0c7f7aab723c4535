#include "core/metrics/cells.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>

#include "core/base/nth.h"
#include "core/metrics/even_head.h"

namespace headscope {

namespace {

constexpr Index block_rows = 64;

/// Rows of a map, and the cells of each that count: all of them visible.
struct Block {
  std::vector<Index> queries;
  std::vector<std::size_t> ends;  ///< of each row's cells
  std::vector<Index> keys;        ///< of all cells, row by row

  std::span<const Index> of(std::size_t row) const {
    const std::size_t begin = row == 0 ? 0 : ends[row - 1];
    return std::span(keys).subspan(begin, ends[row] - begin);
  }
  /// The keys of all its rows, ascending.
  std::vector<Index> columns() const {
    const auto [first, last] = std::ranges::minmax(keys);
    std::vector<bool> wanted(static_cast<std::size_t>(last + 1 - first));
    for (const Index key : keys) nth(wanted, key - first) = true;
    std::vector<Index> all;
    for (Index key = first; key <= last; ++key)
      if (nth(wanted, key - first)) all.push_back(key);
    return all;
  }
};

/// Of the rows and the columns of a block, a row sees its own cells alone, by the rule of the whole map.
class OwnCells final : public AttentionRule {
 public:
  OwnCells(const AttentionMap& map, const Block& block, std::span<const Index> columns)
      : map_(map), block_(block), columns_(columns) {}

  KeyRange keys(Index row, Index) const override {
    const auto cells = cells_of(row);
    const auto first = std::ranges::lower_bound(columns_, cells.front());
    const auto last = std::lower_bound(first, columns_.end(), cells.back());
    return {first - columns_.begin(), last + 1 - columns_.begin()};
  }
  bool plain() const override { return false; }
  void apply(Index row, Index first, std::span<float> scores) const override {
    const AttentionRule* rule = map_.rule() && !map_.rule()->plain() ? map_.rule() : nullptr;
    const Index query = map_.place().offset + nth(block_.queries, row);
    const auto cells = cells_of(row);
    auto cell = std::ranges::lower_bound(cells, nth(columns_, first));
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const Index key = columns_[static_cast<std::size_t>(first) + i];
      if (cell == cells.end() || *cell != key) {
        scores[i] = -std::numeric_limits<float>::infinity();
        continue;
      }
      ++cell;
      if (rule) rule->apply(query, key, scores.subspan(i, 1));
    }
  }
  std::string describe() const override { return "own cells"; }

 private:
  std::span<const Index> cells_of(Index row) const { return block_.of(static_cast<std::size_t>(row)); }

  const AttentionMap& map_;
  const Block& block_;
  std::span<const Index> columns_;
};

/// The weights of a block's cells, row by row. Of a factored map, with its packed factors, those rows and columns alone
/// are multiplied: a map of its own.
std::vector<float> weights_of(const AttentionMap& map, const Tensor& q, const Tensor& k, const Block& block) {
  std::vector<float> out;
  out.reserve(block.keys.size());
  if (!map.is_factored()) {
    for (std::size_t row = 0; row < block.queries.size(); ++row)
      for (const Index key : block.of(row)) out.push_back(map.weight(block.queries[row], key));
    return out;
  }
  const std::vector<Index> columns = block.columns();
  auto stats = std::make_shared<HeadStats>();
  for (const Index query : block.queries) stats->log_sum_exp.push_back(nth(map.stats().log_sum_exp, query));
  const Tensor weights = AttentionMap::factored({}, q.rows(block.queries), k.rows(columns), map.scale(),
                                                std::make_shared<OwnCells>(map, block, columns), stats)
                             .to_dense();
  for (std::size_t row = 0; row < block.queries.size(); ++row) {
    auto column = std::ranges::lower_bound(columns, block.of(row).front());
    for (const Index key : block.of(row)) {
      column = std::find(column, columns.end(), key);
      out.push_back(weights.at(static_cast<Index>(row), column - columns.begin()));
    }
  }
  return out;
}

}  // namespace

void read_cells(const AttentionMap& map, const KeysOfRow& keys_of_row, const OnRow& on_row) {
  Block block;
  std::vector<Index> of_row;
  Tensor q, k;
  if (map.is_factored()) q = map.q().packed(), k = map.k().packed();
  const auto tell = [&] {
    const std::vector<float> weights = weights_of(map, q, k, block);
    for (std::size_t row = 0, begin = 0; row < block.queries.size(); begin = block.ends[row++])
      on_row(block.queries[row], block.of(row), std::span(weights).subspan(begin, block.ends[row] - begin));
    block = {};
  };
  for (Index query = 0; query < map.n_query(); ++query) {
    of_row.clear();
    keys_of_row(query, of_row);
    keep_visible(map, query, of_row);
    if (of_row.empty()) continue;
    block.queries.push_back(query);
    block.keys.insert(block.keys.end(), of_row.begin(), of_row.end());
    block.ends.push_back(block.keys.size());
    if (static_cast<Index>(block.queries.size()) == block_rows) tell();
  }
  if (!block.queries.empty()) tell();
}

}  // namespace headscope
