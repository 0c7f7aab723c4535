// LayerNorm and RMSNorm.

#include <algorithm>
#include <cassert>

#include "core/tensor/backend.h"
#include "core/tensor/each_row.h"
#include "core/tensor/over_rows.h"
#include "core/tensor/row_gradients.h"
#include "core/tensor/row_ops.h"

namespace headscope {

Tensor Backend::layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon, RowQueue* later) {
  assert(bias.contiguous() && bias.size() == gain.size());
  return norm(true, x, gain, bias, epsilon, later);
}

Tensor Backend::rms_norm(const Tensor& x, const Tensor& gain, double epsilon, RowQueue* later) {
  return norm(false, x, gain, {}, epsilon, later);
}

Tensor Backend::norm(bool center, const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon,
                     RowQueue* later) {
  const Tensor in = gapless(x, later);
  const Index width = x.dim(-1), rows = x.size() / width;
  const auto small = static_cast<float>(epsilon);
  const Index sets = gain.size() / width;  // of gains, which rows take in turn
  assert(gain.contiguous() && sets > 0 && gain.size() == sets * width);
  Tensor out = empty(x.shape());
  each_row(later, rows, 2 * width, [=](Index begin, Index end) mutable {
    for (Index r = begin; r < end; ++r)
      if (center)
        row_ops::layer_norm(in.data() + r * width, gain.data() + r % sets * width, bias.data() + r % sets * width,
                            width, small, out.mutable_data() + r * width);
      else
        row_ops::rms_norm(in.data() + r * width, gain.data() + r % sets * width, width, small,
                          out.mutable_data() + r * width);
  });
  if (!tape_ || !(tape_->active(x) || tape_->active(gain) || tape_->active(bias))) return out;
  tape_->record(out, [=, this, &tape = *tape_](const Tensor& d_out) {
    Tape::Slot d_x{};
    Tensor dx;
    if (tape.active(x)) {
      d_x = tape.into(x);
      dx = d_x.values.contiguous() ? d_x.values : empty(x.shape());
    }
    const bool direct = dx.defined() && d_x.values.contiguous();
    // Of gain and bias: sums over rows, tile by tile.
    const Index tiles = (rows + sum_tile_rows - 1) / sum_tile_rows;
    const Index weights = sets * width;
    Tensor partial = empty({tiles, 2, weights});
    pool_.parallel(static_cast<int>(tiles), [&](int tile, int) {
      float* const sums = partial.mutable_data() + tile * 2 * weights;
      std::fill(sums, sums + 2 * weights, 0.0f);
      for (Index r = tile * sum_tile_rows; r < std::min(rows, (tile + 1) * sum_tile_rows); ++r) {
        float* const own = sums + r % sets * width;
        row_gradients::norm(center, in.data() + r * width, gain.data() + r % sets * width, d_out.data() + r * width,
                            width, small, direct && d_x.add, dx.defined() ? dx.mutable_data() + r * width : nullptr,
                            own, center ? own + weights : nullptr);
      }
    });
    if (dx.defined() && !direct) accumulate(dx, d_x);
    for (const Tensor* weight : {&gain, &bias}) {
      if (!tape.active(*weight)) continue;
      const Tape::Slot slot = tape.into(*weight);
      Tensor sum = slot.values;
      for (Index tile = 0; tile < tiles; ++tile)
        row_gradients::accumulate(partial.data() + (2 * tile + (weight == &bias)) * weights, weights,
                                  slot.add || tile > 0, sum.mutable_data());
    }
  });
  return out;
}

}  // namespace headscope
