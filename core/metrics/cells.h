#pragma once
// The weights of some cells of a map: of a factored one a block of rows is computed at a time, since cells one by one
// cost far more.

#include <functional>
#include <span>
#include <vector>

#include "core/trace/attention_map.h"

namespace headscope {

/// Appends the keys whose weight counts in one query row, ascending. An empty function means the whole row.
using KeysOfRow = std::function<void(Index query, std::vector<Index>& keys)>;

/// Tells every row that sees any of its cells, in order: the keys that it sees, and the weights there.
using OnRow = std::function<void(Index query, std::span<const Index> keys, std::span<const float> weights)>;
/// REQUIRES a function that is not empty.
void read_cells(const AttentionMap& map, const KeysOfRow& keys_of_row, const OnRow& on_row);

}  // namespace headscope
