#pragma once
// Maps whose numbers are no probabilities, such as the matrix that a state amounts to, in a form that can be scored as
// attention.

#include "core/trace/attention_map.h"

namespace headscope {

/// Of each row the magnitudes ÷ their sum, so that they are shares and chance means the same; rows of zeros stay. A map
/// of probabilities is itself; of others no token may see a later one. `links` of the text.
AttentionMap as_shares(const AttentionMap& map, const TokenLinks& links);

}  // namespace headscope
