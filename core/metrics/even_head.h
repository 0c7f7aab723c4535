#pragma once
// The head that knows nothing: it spreads each row's weight evenly over the keys that the query may see. A metric's
// chance level is its value for this head on the same text and mask, so every formula is written once.

#include <vector>

#include "core/trace/attention_map.h"
#include "core/trace/token_links.h"

namespace headscope {

/// Of the same size, place and mask as `like` (its biases apart), with all statistics; no overview. Linear in n for
/// masks without holes. Refers to the rule of `like`, which must outlive it. A map without a rule counts as seeing
/// every key.
AttentionMap even_head(const AttentionMap& like, const TokenLinks& links);

/// Keys that a query row may see: their smallest range, and how many (fewer where the mask has holes).
KeyRange visible_range(const AttentionMap& map, Index query);
Index visible_count(const AttentionMap& map, Index query);
/// Leaves of some keys, which ascend, those that the row may see.
void keep_visible(const AttentionMap& map, Index query, std::vector<Index>& keys);

}  // namespace headscope
