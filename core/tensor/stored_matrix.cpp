#include "core/tensor/stored_matrix.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "core/base/nth.h"
#include "core/base/thread_pool.h"
#include "core/tensor/block_product.h"
#include "core/tensor/panels.h"

namespace headscope {
namespace {

// So few rows wait for memory, which gives up long runs soonest: so much of the columns of one panel is asked for at a
// time, or so many columns where rows lie one behind the other. More rows take turns with what stays in a cache.
constexpr Index few_rows = 64, long_depth = 2048, long_columns = 512;

class StoredMatrix final : public PackedMatrix {
 public:
  explicit StoredMatrix(std::span<const Tensor> parts) : parts_(parts.begin(), parts.end()) {
    for (const Tensor& part : parts_) {
      begin_.push_back(out_);
      columns_.push_back(part.dim(1));
      out_ += part.dim(1);
    }
  }

  std::size_t bytes() const override {
    std::size_t sum = 0;
    for (const Tensor& part : parts_) sum += part.bytes();
    return sum;
  }
  Index in() const override { return parts_[0].dim(0); }
  Index out() const override { return out_; }

  void multiply(const Tensor& x, const float* bias, Tensor& out, ThreadPool& pool) const override {
    const std::vector<BlockTask> tasks =
        block_tasks(x.dim(0), in(), columns_, x.dim(0) <= few_rows ? long_columns : block_columns, pool);
    pool.parallel(static_cast<int>(tasks.size()), [&](int number, int) {
      const BlockTask& task = nth(tasks, number);
      const Index column = nth(begin_, task.part) + task.column;
      multiply(x.slice(0, task.row, task.row + task.rows), nth(parts_, task.part), task.column,
               std::min(task.columns + task.columns, nth(columns_, task.part) - task.column), task.columns,
               bias ? bias + column : nullptr, out.mutable_data() + task.row * out.stride(0) + column, out.stride(0));
    });
  }

 private:
  /// The bytes of `block` (depth, columns).
  static Ahead ahead(const stored::Lines& block, Index depth, Index columns) {
    const Index runs = block.rows ? depth : columns, length = block.rows ? columns : depth;
    return {block.data + stored::bytes_of(block.kind, block.first), runs, stored::bytes_of(block.kind, length),
            stored::bytes_of(block.kind, block.stride)};
  }

  /// Columns [begin, begin + columns) of one part, by one thread. Those behind them up to `all` are read next.
  static void multiply(const Tensor& x, const Tensor& w, Index begin, Index all, Index columns, const float* bias,
                       float* out, Index out_stride) {
    const stored::Lines lines = w.lines()->from(0, begin);
    const Index in = w.dim(0), rows = x.dim(0), width = panels::width();
    const bool few = rows <= few_rows;
    const Index deep = few && !lines.rows ? long_depth : block_depth, wide = !few         ? block_columns
                                                                             : lines.rows ? long_columns
                                                                                          : width;
    // What is read next is asked for where most of the time goes.
    const bool while_decoding = rows == 1 && !lines.rows;
    alignas(64) float panel[static_cast<std::size_t>(block_depth * panels::widest)];
    for (Index column = 0; column < columns; column += wide)
      for (Index k = 0; k < in; k += deep) {
        const Index across = std::min(wide, columns - column), down = std::min(deep, in - k);
        const bool last = k + deep >= in;  // then the next columns come
        const Index next_k = last ? 0 : k + deep, next = last ? column + across : column;
        const Ahead coming =
            next < all ? ahead(lines.from(next_k, next), std::min(deep, in - next_k), std::min(across, all - next))
                       : Ahead{};
        Index step = 0;
        const Index steps = (across + width - 1) / width * ((down + block_depth - 1) / block_depth);
        for (Index j = column; j < column + across; j += width)
          for (Index i = k; i < k + down; i += block_depth, ++step) {
            const Index used = std::min(width, column + across - j), depth = std::min(block_depth, k + down - i);
            if (used < width) std::fill(panel, panel + depth * width, 0.0f);
            const Ahead own = coming.part(step, step + 1, steps);
            stored::unpack(lines.from(i, j), depth, used, panel, width, while_decoding ? own : Ahead{});
            multiply_block(x, i, depth, panel, used, bias ? bias + j : nullptr, out + j, out_stride,
                           while_decoding ? Ahead{} : own);
          }
      }
  }

  std::vector<Tensor> parts_;
  std::vector<Index> begin_, columns_;  // columns before each, and its own
  Index out_ = 0;
};

}  // namespace

bool multiplied_as_stored(const Tensor& matrix) {
  return matrix.rank() == 2 && matrix.lines() && stored::begins_at(matrix.kind(), matrix.dim(0));
}

std::shared_ptr<const PackedMatrix> pack_stored(std::span<const Tensor> parts) {
  assert(std::ranges::all_of(parts, multiplied_as_stored));
  return std::make_shared<StoredMatrix>(parts);
}

}  // namespace headscope
