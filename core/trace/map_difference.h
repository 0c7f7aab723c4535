#pragma once
// What changed between two maps of the same shape, weight by weight.

#include "core/trace/attention_map.h"

namespace headscope {

/// after − before, signed (MapKind::difference), dense; costs n² for factored maps. A cell is masked where both mask
/// it. Throws Error when the shapes differ.
AttentionMap map_difference(const AttentionMap& after, const AttentionMap& before);

}  // namespace headscope
