#include <algorithm>
#include <vector>

#include "core/base/nth.h"
#include "core/base/thread_pool.h"
#include "core/tensor/block_product.h"
#include "core/tensor/matrix.h"

namespace headscope {
namespace {

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
    const std::vector<BlockTask> tasks =
        block_tasks(x.dim(0), in_, std::span(&out_, 1), block_columns, most_rows, pool);
    pool.parallel(static_cast<int>(tasks.size()), [&](int number, int) {
      const BlockTask& task = nth(tasks, number);
      const Tensor source = x.slice(0, task.row, task.row + task.rows);
      for (Index k = 0; k < in_; k += block_depth) {
        Ahead ahead;
        const bool last = k + block_depth >= in_;  // then the next columns come
        const Index next_k = last ? 0 : k + block_depth, next = last ? task.column + task.columns : task.column;
        if (x.dim(0) >= rows_to_read_ahead && next < out_)
          ahead = Ahead::of(blocks_.data() + place(next, next_k),
                            std::min(block_depth, in_ - next_k) * panels::padded(std::min(task.columns, out_ - next)));
        multiply_block(source, k, std::min(block_depth, in_ - k), blocks_.data() + place(task.column, k), task.columns,
                       bias ? bias + task.column : nullptr, out.mutable_data() + task.row * out.stride(0) + task.column,
                       out.stride(0), ahead);
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
