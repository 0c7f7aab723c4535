// SoLU.

#include <algorithm>

#include "core/tensor/backend.h"
#include "core/tensor/each_row.h"
#include "core/tensor/row_gradients.h"

namespace headscope {

Tensor Backend::solu(const Tensor& x, RowQueue* later) {
  const Tensor in = gapless(x, later);
  const Index width = x.dim(-1), rows = x.size() / std::max<Index>(width, 1);
  Tensor out = empty(x.shape());
  each_row(later, rows, 8 * width, [=](Index begin, Index end) mutable {
    for (Index r = begin; r < end; ++r) {
      const float* const from = in.data() + r * width;
      float* const to = out.mutable_data() + r * width;
      row_gradients::scaled_softmax(from, width, 1.0f, to);
      for (Index i = 0; i < width; ++i) to[i] *= from[i];
    }
  });
  if (!tape_ || !tape_->active(x)) return out;
  tape_->record(out, [=, this, &tape = *tape_](const Tensor& d_out) {
    // With s = softmax(x), y = x ∘ s: dx = s ∘ (dy ∘ (1 + x) − Σ dy ∘ y).
    Tensor dx = empty(x.shape());
    const Tensor dy = d_out.packed();
    over_rows(pool_, rows, width, 8, [&](Index begin, Index end) {
      for (Index r = begin; r < end; ++r) {
        const float *const from = in.data() + r * width, *const y = out.data() + r * width,
                           *const g = dy.data() + r * width;
        float* const to = dx.mutable_data() + r * width;
        row_gradients::scaled_softmax(from, width, 1.0f, to);
        float sum = 0;
        for (Index i = 0; i < width; ++i) sum += g[i] * y[i];
        for (Index i = 0; i < width; ++i) to[i] *= g[i] * (1 + from[i]) - sum;
      }
    });
    accumulate(dx, tape.into(x));
  });
  return out;
}

}  // namespace headscope
