#include "core/edits/product_anew.h"

#include <Eigen/Core>

namespace headscope {

namespace {
using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using View = Eigen::Map<const RowMajor>;
}  // namespace

void multiply_anew(const Projection& by, const Tensor& input, Index first, Index last, Index kept, Tensor& out) {
  if (last < first) return;
  const Tensor x = input.packed(), w = by.weight.packed();
  const Index in = w.dim(0), width = w.dim(1), rows = last - first + 1;
  RowMajor product = View(x.data() + first * in, rows, in) * View(w.data(), in, width);
  const Index inner = out.rank() == 3 ? out.dim(2) : 1;
  for (Index i = 0; i < rows; ++i)
    for (Index c = 0; c < width; ++c) {
      if (c % inner < kept) continue;
      const float value = product(i, c) + (by.bias.defined() ? by.bias.at(c) : 0.0f);
      (out.rank() == 3 ? out.ref(first + i, c / inner, c % inner) : out.ref(first + i, c)) = value;
    }
}

void multiply_heads_anew(const Projection& by, const Tensor& input, Index first, Index last, Tensor& out) {
  const Tensor w = by.weight.packed();
  const Index heads = input.dim(1), d = input.dim(2), width = w.dim(1);
  for (Index head = 0; head < heads; ++head) {
    const Tensor z = input.select(1, head).packed();
    const RowMajor product =
        View(z.data() + first * d, last - first + 1, d) * View(w.data() + head * d * width, d, width);
    for (Index i = 0; i < product.rows(); ++i)
      for (Index c = 0; c < width; ++c) out.ref(first + i, head, c) = product(i, c);
  }
}

}  // namespace headscope
