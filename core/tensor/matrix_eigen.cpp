// Large matrix products by Eigen, where oneDNN is not installed: column tiles, each its own single-threaded product.

#include <Eigen/Core>
#include <algorithm>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/tensor/matrix.h"

namespace headscope {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Strided = Eigen::Map<const Matrix, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
using Rows = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
using RowsOut = Eigen::Map<Matrix, 0, Eigen::OuterStride<>>;

constexpr Index tile_rows = 128, tile_columns = 256;

class EigenMatrix final : public PackedMatrix {
 public:
  EigenMatrix(std::span<const Tensor> parts, ThreadPool& pool) : in_(parts[0].dim(0)) {
    for (const Tensor& part : parts) out_ += part.dim(1);
    Matrix whole(in_, out_);
    Index column = 0;
    for (const Tensor& part : parts) {
      whole.middleCols(column, part.dim(1)) = Strided(part.data(), in_, part.dim(1), {part.stride(0), part.stride(1)});
      column += part.dim(1);
    }
    tiles_.resize(static_cast<std::size_t>((out_ + tile_columns - 1) / tile_columns));
    pool.parallel(static_cast<int>(tiles_.size()), [&](int tile, int) {
      tiles_[static_cast<std::size_t>(tile)] =
          whole.middleCols(tile * tile_columns, std::min(tile_columns, out_ - tile * tile_columns));
    });
  }

  Index in() const override { return in_; }
  Index out() const override { return out_; }

  void multiply(const Tensor& x, const float* bias, Tensor& out, ThreadPool& pool) const override {
    const Index rows = x.dim(0);
    const int down = static_cast<int>((rows + tile_rows - 1) / tile_rows);
    pool.parallel(down * static_cast<int>(tiles_.size()), [&](int task, int) {
      const Matrix& weights = tiles_[static_cast<std::size_t>(task / down)];
      const Index row = task % down * tile_rows, count = std::min(tile_rows, rows - row),
                  column = task / down * tile_columns;
      const Rows source(x.data() + row * x.stride(0), count, in_, Eigen::OuterStride<>(x.stride(0)));
      RowsOut result(out.mutable_data() + row * out.stride(0) + column, count, weights.cols(),
                     Eigen::OuterStride<>(out.stride(0)));
      result.noalias() = source * weights;
      if (bias) result.rowwise() += Eigen::Map<const Eigen::RowVectorXf>(bias + column, weights.cols());
    });
  }

 private:
  Index in_, out_ = 0;
  std::vector<Matrix> tiles_;
};

}  // namespace

std::shared_ptr<const PackedMatrix> pack_large(std::span<const Tensor> parts, ThreadPool& pool) {
  return std::make_shared<EigenMatrix>(parts, pool);
}

#define HEADSCOPE_STRING2(x) #x
#define HEADSCOPE_STRING(x) HEADSCOPE_STRING2(x)
const char* matrix_library() {
  return "Eigen " HEADSCOPE_STRING(EIGEN_WORLD_VERSION) "." HEADSCOPE_STRING(EIGEN_MAJOR_VERSION) "." HEADSCOPE_STRING(
      EIGEN_MINOR_VERSION);
}

}  // namespace headscope
