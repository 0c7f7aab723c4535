#include "core/model/head_results.h"

#include <algorithm>

namespace headscope {

Tensor head_results(const Linear& o, const Tensor& z, Backend& backend) {
  const Index n = z.dim(0), heads = z.dim(1), width = z.dim(2), d_model = o.parts[0].dim(1);
  Tensor result = backend.empty({n, heads, d_model});
  for (Index head = 0; head < heads; ++head) {
    const Tensor weight = o.parts[0].slice(0, head * width, (head + 1) * width);
    const Tensor part = backend.linear(z.select(1, head), backend.linear_weights({weight}, {}));
    for (Index i = 0; i < n; ++i) std::copy_n(part.data() + i * d_model, d_model, &result.ref(i, head, 0));
  }
  return result;
}

Tensor heads_summed(const Tensor& results, const Tensor& bias, Backend& backend) {
  const Index n = results.dim(0), heads = results.dim(1), d_model = results.dim(2);
  Tensor sum = backend.empty({n, d_model});
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < d_model; ++j) {
      float total = bias.defined() ? bias.at(j) : 0.0f;
      for (Index head = 0; head < heads; ++head) total += results.at(i, head, j);
      sum.ref(i, j) = total;
    }
  return sum;
}

}  // namespace headscope
