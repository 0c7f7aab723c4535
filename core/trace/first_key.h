#pragma once
// A map seen without its first key, where attention sinks drown everything else (Xiao et al., Efficient Streaming
// Language Models with Attention Sinks, 2023).

#include "core/trace/attention_map.h"

namespace headscope {

/// The map with key 0 masked; with `renormalize` every row is divided by what is left of it (a row of which nothing is
/// left becomes zero). Dense; costs n² for a factored map. Statistics are taken anew.
AttentionMap without_first_key(const AttentionMap& map, bool renormalize);

}  // namespace headscope
