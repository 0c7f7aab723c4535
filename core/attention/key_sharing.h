#pragma once
// Heads that share keys and values: multi-head (one pair per query head), grouped (Ainslie et al., GQA: Training
// Generalized Multi-Query Transformer Models, 2023) and multi-query attention (Shazeer, Fast Transformer Decoding,
// 2019). What is shared need not be kept: the cache of a text is why.

#include <cstdint>

#include "core/tensor/tensor.h"

namespace headscope {

/// Heads of rows [first, last] of x (position, kv_head, d_head) become the mean of their group: `groups` equal groups
/// of neighbouring heads. Keys and values are linear in their weights, so this is what pooling W_K and W_V gives.
/// REQUIRES groups divides x.dim(1).
void pool_heads(Tensor& x, int groups, Index first, Index last);

/// What keeping keys and values of `tokens` tokens takes, both of them `d_head` wide: 2 · layers · kv_heads · d_head ·
/// tokens · bytes.
constexpr std::uint64_t key_cache_bytes(std::uint64_t layers, std::uint64_t kv_heads, std::uint64_t d_head,
                                        std::uint64_t tokens, std::uint64_t bytes) {
  return 2 * layers * kv_heads * d_head * tokens * bytes;
}
/// With a latent of `rank` numbers (and `rotary` more for a key that carries positions): one vector for K and V.
constexpr std::uint64_t latent_cache_bytes(std::uint64_t layers, std::uint64_t rank, std::uint64_t rotary,
                                           std::uint64_t tokens, std::uint64_t bytes) {
  return layers * (rank + rotary) * tokens * bytes;
}

}  // namespace headscope
