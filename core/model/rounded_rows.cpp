#include "core/model/rounded_rows.h"

#include <algorithm>
#include <cmath>

namespace headscope {

Tensor rounded_rows(Backend& backend, const Tensor& x, int bits) {
  if (bits <= 0) return x;
  const Tensor in = x.packed();
  Tensor out = backend.empty(x.shape());
  const float most = std::ldexp(1.0f, bits - 1) - 1;
  const Index columns = in.dim(1);
  for (Index row = 0; row < in.dim(0); ++row) {
    const float* const from = in.data() + row * columns;
    float* const to = out.mutable_data() + row * columns;
    float largest = 1e-5f;
    for (Index i = 0; i < columns; ++i) largest = std::max(largest, std::abs(from[i]));
    const float scale = most / largest;
    for (Index i = 0; i < columns; ++i) to[i] = std::clamp(std::nearbyint(from[i] * scale), -most - 1, most) / scale;
  }
  if (Tape* const tape = backend.tape(); tape && tape->active(x))
    tape->record(out, [&backend, tape, x](const Tensor& d_out) { backend.accumulate(d_out, tape->into(x)); });
  return out;
}

}  // namespace headscope
