#pragma once
// One query in every head: its row of each map, side by side.
// Thread rule: pure functions.

#include <utility>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/trace/trace.h"
#include "core/trace/words.h"

namespace headscope {

struct QueryRows {
  Tensor weights;             ///< (map, key); NaN where the mask hides the key
  std::vector<HeadId> heads;  ///< of every row
  MapKind kind = MapKind::probability;
};

/// Rows in the order of trace.maps. `query`: a position of the text. With `words`, of which it is then one: to a word
/// the sum over its tokens, from it the mean (core/trace/words.h). Throws Error when the trace has no maps, its maps
/// are not of one shape, or it has no such row.
QueryRows query_rows(const Trace& trace, Index query, const WordGroups* words = nullptr);

/// Key 0 hidden; with `renormalize` the other weights of a row divided by their sum.
void hide_first_key(QueryRows& rows, bool renormalize);

/// after − before, signed; hidden where both are. Throws Error when they are not of the same heads and keys.
QueryRows difference(const QueryRows& after, const QueryRows& before);

}  // namespace headscope
