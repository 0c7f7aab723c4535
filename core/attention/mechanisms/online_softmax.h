#pragma once
// Online softmax (Milakov & Gimelshein, Online Normalizer Calculation for Softmax, 2018): the running maximum m, sum l
// and mixture O of a block of rows, to which blocks of keys are added in any order. What FlashAttention and ring
// attention share.

#include "core/attention/mechanism.h"

namespace headscope::mechanism {

struct OnlineSoftmax {
  Tensor max;     ///< (n, 1), −∞ before the first visible key
  Tensor sum;     ///< (n, 1) Σ exp(s − max)
  Tensor mixed;   ///< (n, d_v) Σ exp(s − max) v
  Tensor newest;  ///< (n, 1) Σ exp(s − max) of the newest keys alone: what came to sum
  explicit OnlineSoftmax(Index n, Index d_v);
  /// Rows `rows` meet keys `keys`: scale · q kᵀ, the rule, m, l and O rescaled and added to. False when every cell is
  /// hidden, where a kernel would skip the block.
  bool add(const MechanismInput& in, KeyRange rows, KeyRange keys);
  Tensor output() const;  ///< (n, d_v) mixed ÷ sum; rows without a key are zero
};

/// exp(s − m_i) ÷ l_i of the cells that `done` marks (row-major n × m): the effective weights so far.
Tensor online_weights(const MechanismInput& in, const OnlineSoftmax& state, const std::vector<std::uint8_t>& done);

/// Steps "weights so far" and output of a result whose weights and output are there; `hidden` as MechanismStep::masked.
void add_weights_so_far(MechanismResult& result, const MechanismInput& in, std::vector<std::uint8_t> hidden);

}  // namespace headscope::mechanism
