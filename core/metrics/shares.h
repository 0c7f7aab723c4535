#pragma once
// Maps whose numbers are no probabilities, such as the matrix that a state amounts to, in a form that can be scored as
// attention.

#include <span>

#include "core/trace/attention_map.h"

namespace headscope {

/// |w| ÷ Σ |w|; a row of zeros stays.
void to_shares(std::span<float> row);

/// Every row so, which makes chance mean the same. A map of probabilities is itself; of others no token may see a later
/// one. `links` of the text.
AttentionMap as_shares(const AttentionMap& map, const TokenLinks& links);

}  // namespace headscope
