#pragma once
// Maps of layers whose output is linear in what they take in (state_patterns.h), for texts whose patterns are not to
// stand in memory: a head's cells are computed where they are looked at.

#include <memory>
#include <vector>

#include "core/attention/state_patterns.h"
#include "core/trace/computed_cells.h"

namespace headscope {

/// Those of every head of `in`, which is kept: what its functions hold should be no more than they read. Every thread
/// remembers a few bands of rows that it computed last, so that rows and cells one by one cost little more than a band
/// at once.
std::vector<std::shared_ptr<const ComputedCells>> cells_of(LinearMixing in, Index heads);

}  // namespace headscope
