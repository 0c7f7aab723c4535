#pragma once
// The standard test for induction heads (Olsson et al., In-context Learning and Induction Heads, 2022): a block of
// random tokens said twice. Random text has no grammar to follow, so whoever finds the second block's next token has
// looked back at what followed the same token in the first. Block b of period P starts at position first + b·P, first =
// 1 after a BOS.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/trace/attention_map.h"

namespace headscope {

/// The ids of [0, vocab) that repeated tokens can be drawn from: all but the BOS. Throws Error when there is none.
std::vector<std::int32_t> whole_alphabet(int vocab, std::optional<std::int32_t> bos);

/// [bos] and then `repeats` times the same `period` random ids out of `alphabet` (each id once, no BOS), each at most
/// once per block as long as there are enough for that. The same seed gives the same ids everywhere. Throws Error when
/// the alphabet is empty, period below 1 or repeats below 2.
std::vector<std::int32_t> repeated_tokens(std::span<const std::int32_t> alphabet, int period, int repeats,
                                          std::optional<std::int32_t> bos, std::uint64_t seed);

/// Mean weight of the rows of all blocks after the first on the token that followed the same token one block before
/// (distance P − 1): the standard induction score. NaN when no such row exists, and
/// for weights that are no probabilities. The same number for a head that spreads
/// its weight evenly is its value for even_head().
double induction_block(const AttentionMap& map, int period, int first);
/// The same for the earlier equal token itself (distance P).
double duplicate_block(const AttentionMap& map, int period, int first);
/// Mean over every row that has a key at distance P − 1, the first block included (TransformerLens' convention).
double induction_diagonal(const AttentionMap& map, int period);

}  // namespace headscope
