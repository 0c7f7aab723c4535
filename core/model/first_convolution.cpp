#include "core/model/first_convolution.h"

#include <algorithm>

#include "core/base/nth.h"
#include "core/model/weights.h"

namespace headscope {

Tensor convolved_along(const FirstConvolution& config, const std::vector<Linear>& taps, Backend& backend,
                       const Tensor& x, std::span<const Index> lengths) {
  const Index n = x.dim(0);
  const std::span<const Index> texts = lengths.empty() ? std::span(&n, 1) : lengths;
  Tensor sum;
  for (int tap = 0; tap < config.tokens; ++tap) {
    const Index by = tap - config.tokens / 2;
    std::vector<std::int32_t> rows;  // of x, by row of the output
    Tensor inside = Tensor::zeros(x.shape());
    Index first = 0;
    for (const Index length : texts) {
      for (Index i = 0; i < length; ++i) {
        const bool there = i + by >= 0 && i + by < length;
        for (Index j = 0; there && j < x.dim(1); ++j) inside.ref(first + i, j) = 1;
        rows.push_back(static_cast<std::int32_t>(first + i + (there ? by : 0)));
      }
      first += length;
    }
    const Tensor near = by == 0 ? x : backend.multiply(backend.gather(x, rows), inside);
    const Tensor part = backend.linear(near, nth(taps, tap));
    sum = sum.defined() ? backend.add(sum, part) : part;
  }
  return activated(config.activation, {}, backend, sum);
}

}  // namespace headscope
