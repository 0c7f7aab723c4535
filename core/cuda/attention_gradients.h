#pragma once
// The way back through softmax attention on the card, as core/attention/attention_backward.h writes it, without a
// stored pattern: every weight is computed again from its score, its row's largest score and sum (Dao et al.,
// FlashAttention, 2022, appendix B.4). Two kernels, so that every sum has one owner and one order: tiles of 32 queries
// find their rows' numbers and dQ, tiles of 32 keys dK and dV of all heads that share them. Private to core/cuda.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/cuda/attention_kernels.h"

namespace headscope::cuda {

struct AttentionGradientTask {
  AttentionTask of;  ///< as it was computed; `rows` and `biases` null
  const float* d_z;
  std::int64_t d_z_row, d_z_head;
  const int2* seen_by;   ///< by rule and key: queries [x, y) that may see it, and no others
  const int* first_key;  ///< by query: the first key of its text, which entropy does not count
  float price;           ///< AttentionInput::entropy_price
  float* rows;           ///< room for attention_gradient_rows numbers of every head and query
  struct Into {
    float* to = nullptr;  ///< null: nobody asks
    std::int64_t row = 0, head = 0;
    bool add = false;
  } d_q, d_k, d_v;
};
inline constexpr int attention_gradient_rows = 5;

/// Whether a block's shared memory has room for such widths.
bool attention_gradient_takes(int d, int d_value, Room room);
void attention_gradient(const AttentionGradientTask& task, cudaStream_t stream);

}  // namespace headscope::cuda
