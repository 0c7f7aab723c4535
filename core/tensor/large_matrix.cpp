#include <algorithm>
#include <cassert>
#include <cstring>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/tensor/block_product.h"
#include "core/tensor/matrix.h"
#include "core/tensor/over_rows.h"

namespace headscope {
namespace {

// Rows are split among threads only where each gets so many, or it would read more of the matrix than it multiplies.
constexpr Index least_rows = 64;
// Rows of a task: their part of x and of the result stay in the second-level cache beside two blocks.
constexpr Index most_rows = 192;
// Up to here a product is as quick as memory, and the processor's own prefetcher does better than we do.
constexpr Index rows_to_read_ahead = 3;

/// Columns [begin, end) of the matrices side by side: a view where they lie in one, else a copy.
Tensor columns_of(std::span<const Tensor> parts, Index begin, Index end) {
  Tensor copy;
  Index before = 0;
  for (const Tensor& part : parts) {
    const Index from = std::max(begin, before), to = std::min(end, before + part.dim(1));
    if (from < to) {
      const Tensor source = part.slice(1, from - before, to - before);
      if (to - from == end - begin) return source;
      if (!copy.defined()) copy = Tensor::uninitialized({part.dim(0), end - begin});
      for (Index i = 0; i < part.dim(0); ++i)
        for (Index j = 0; j < to - from; ++j) copy.ref(i, from - begin + j) = source.at(i, j);
    }
    before += part.dim(1);
  }
  return copy;
}

/// In tiles of block_columns, each its blocks one behind the other, in the order in which a product reads them. Rows in
/// one strip are multiplied with a block while the next is on its way from memory.
class LargeMatrix final : public PackedMatrix {
 public:
  LargeMatrix(std::span<const Tensor> parts, ThreadPool& pool) : in_(parts[0].dim(0)) {
    for (const Tensor& part : parts) out_ += part.dim(1);
    blocks_ = Tensor::uninitialized({panels::packed_size(in_, out_)});
    float* const to = blocks_.mutable_data();
    pool.parallel(static_cast<int>(tiles()), [&](int tile, int) {
      const Index column = tile * block_columns;
      const Tensor source = columns_of(parts, column, std::min(out_, column + block_columns));
      for (Index k = 0; k < in_; k += block_depth)
        panels::pack(source.slice(0, k, std::min(in_, k + block_depth)), to + place(column, k));
    });
  }

  std::size_t bytes() const override { return blocks_.bytes(); }
  Index in() const override { return in_; }
  Index out() const override { return out_; }

  void multiply(const Tensor& x, const float* bias, Tensor& out, ThreadPool& pool) const override {
    const Index rows = x.dim(0), width = panels::width();
    // Columns first, whole tiles if there are enough, then rows.
    const Index wanted = std::min<Index>(3 * pool.threads(), rows * in_ * out_ / product_task_grain + 1);
    Index step = block_columns;
    while (step > width && (out_ + step - 1) / step < wanted) step /= 2;
    const Index across = (out_ + step - 1) / step;
    const Index down = std::max(std::clamp<Index>(rows / least_rows, 1, std::max<Index>(wanted / across, 1)),
                                (rows + most_rows - 1) / most_rows);
    const Index tall = ((rows + down - 1) / down + strip_rows - 1) / strip_rows * strip_rows;
    const Index tasks = across * ((rows + tall - 1) / tall);
    pool.parallel(static_cast<int>(tasks), [&](int task, int) {
      const Index row = task / across * tall, column = task % across * step, columns = std::min(step, out_ - column);
      const Tensor source = x.slice(0, row, std::min(rows, row + tall));
      for (Index k = 0; k < in_; k += block_depth) {
        panels::Ahead ahead;
        const bool last = k + block_depth >= in_;  // then the next columns come
        const Index next_k = last ? 0 : k + block_depth, next_column = last ? column + step : column;
        if (rows >= rows_to_read_ahead && next_column < out_)
          ahead = {blocks_.data() + place(next_column, next_k),
                   std::min(block_depth, in_ - next_k) * panels::padded(std::min(step, out_ - next_column))};
        multiply_block(source, k, std::min(block_depth, in_ - k), blocks_.data() + place(column, k), columns,
                       bias ? bias + column : nullptr, out.mutable_data() + row * out.stride(0) + column, out.stride(0),
                       ahead);
      }
    });
  }

 private:
  Index tiles() const { return (out_ + block_columns - 1) / block_columns; }

  /// Where the panel of this column begins in the block of this depth.
  Index place(Index column, Index k) const {
    const Index first = column / block_columns * block_columns,
                wide = panels::padded(std::min(block_columns, out_ - first)), deep = std::min(block_depth, in_ - k);
    return first * in_ + k * wide + (column - first) * deep;
  }

  Index in_, out_ = 0;
  Tensor blocks_;
};

}  // namespace

std::shared_ptr<const PackedMatrix> pack_large(std::span<const Tensor> parts, ThreadPool& pool) {
  return std::make_shared<LargeMatrix>(parts, pool);
}

}  // namespace headscope
