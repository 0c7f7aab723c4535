#pragma once
// Which token of one text stands for which of another.

#include <cstdint>
#include <span>
#include <vector>

namespace headscope {

/// For every position of `a` one of `b`, ascending, or −1. Equal tokens are paired as the cheapest edit of one text
/// into the other leaves them (Wagner & Fischer, The String-to-String Correction Problem, 1974); between two pairs,
/// stretches of equal length are paired one to one, so that a word put in another's place is its partner. Time and
/// memory: the product of the lengths of what lies between the common beginning and the common end; where that exceeds
/// 25 million, the stretches are paired from their starts.
std::vector<int> align_tokens(std::span<const std::int32_t> a, std::span<const std::int32_t> b);

}  // namespace headscope
