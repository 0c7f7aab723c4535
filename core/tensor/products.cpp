#include "core/tensor/products.h"

#include <algorithm>
#include <cassert>
#include <utility>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/tensor/over_rows.h"
#include "core/tensor/panels.h"

namespace headscope {
namespace {

// A block of b (128 × 32 columns × 4 bytes: 16 KB) and what it is multiplied with stay in the first-level cache.
constexpr Index depth_block = 128;
// A task packs its block of b once for so many rows of a.
constexpr Index least_rows = 128;
// Between strips of so many rows (whole blocks of the kernel's 8 or 6) the next block is asked for.
constexpr Index strip = 24;

/// Some panels of columns of one product, over some of its rows.
struct Task {
  const Product* product;
  Index row, rows, column, columns;
};

/// Asks for part of a matrix a piece at a time, ahead of its use: what a step multiplies is often far more than the
/// caches hold, and rows that lie far apart are not foreseen by the processor.
class MatrixAhead {
 public:
  MatrixAhead() = default;
  MatrixAhead(const Tensor& x, Index row, Index rows, Index column, Index columns) {
    if (x.kind() != Stored::f32) return;  // half of it or less, which the processor foresees
    data_ = x.data() + row * x.stride(0) + column * x.stride(1);
    lines_ = rows;
    stride_ = x.stride(0);
    length_ = columns;
    if (x.stride(1) == 1) return;
    std::swap(lines_, length_);
    stride_ = x.stride(1);
  }
  /// So that `done` of `all` pieces have been asked for.
  void ask(Index done, Index all) {
    constexpr Index cache_line = 64 / sizeof(float);
    for (; asked_ < lines_ * done / all; ++asked_)
      for (Index i = 0; i < length_; i += cache_line) __builtin_prefetch(data_ + asked_ * stride_ + i, 0, 2);
  }

 private:
  const float* data_ = nullptr;
  Index lines_ = 0, stride_ = 0, length_ = 0, asked_ = 0;
};

void run(const Task& task) {
  const Product& p = *task.product;
  alignas(64) float panel[static_cast<std::size_t>(depth_block * panels::widest)];
  const Index depth = p.a.dim(1), width = panels::width(), end = task.column + task.columns;
  for (Index k = 0; k < depth; k += depth_block) {
    const Index block = std::min(depth_block, depth - k), next_k = k + block;
    for (Index column = task.column; column < end; column += width) {
      const Index columns = std::min(width, end - column), next_column = column + columns;
      panels::pack(p.b.slice(0, k, next_k).slice(1, column, next_column), panel);
      MatrixAhead a, b;
      if (next_column < end) {
        b = MatrixAhead(p.b, k, block, next_column, std::min(width, end - next_column));
      } else if (next_k < depth) {
        const Index next_block = std::min(depth_block, depth - next_k);
        b = MatrixAhead(p.b, next_k, next_block, task.column, std::min(width, task.columns));
        a = MatrixAhead(p.a, task.row, task.rows, next_k, next_block);
      }
      for (Index r = 0; r < task.rows; r += strip) {
        const Index rows = std::min(strip, task.rows - r), row = task.row + r;
        a.ask(r + rows, task.rows);
        b.ask(r + rows, task.rows);
        float* const c = const_cast<float*>(p.c.data()) + row * p.c.stride(0) + column;
        panels::Addend addend;
        if (k > 0 || p.add)
          addend = {c, p.c.stride(0)};
        else if (p.bias.defined())
          addend = {p.bias.data() + column, 0};
        panels::multiply({p.a.data() + row * p.a.stride(0) + k * p.a.stride(1), p.a.stride(0), p.a.stride(1)}, rows,
                         block, panel, block * width, columns, 1.0f, addend, c, p.c.stride(0));
      }
    }
  }
}

}  // namespace

void multiply(std::span<const Product> products, ThreadPool& pool) {
  const Index width = panels::width();
  assert(width <= panels::widest);
  std::vector<Task> tasks;
  for (const Product& p : products) {
    Tensor(p.c).mutable_data();  // it may lie on a device, which then knows that it is written to here
    const Index rows = p.a.dim(0), depth = p.a.dim(1), columns = p.b.dim(1);
    assert(p.b.dim(0) == depth && p.c.shape() == Shape({rows, columns}) && p.c.stride(1) == 1);
    assert(!p.bias.defined() || (!p.add && p.bias.dim(0) == columns && p.bias.stride(0) == 1));
    const Index all = panels::padded(columns) / width;
    const Index wanted = std::clamp<Index>(rows * depth * columns / product_task_grain, 1, 4 * pool.threads());
    // Rows first, so that each thread goes on with those that the op before left in its cache.
    const Index down = std::clamp<Index>(rows / least_rows, 1, wanted), step = ((rows + down - 1) / down + 7) / 8 * 8;
    const Index across = std::min((wanted + down - 1) / down, all), per_task = (all + across - 1) / across;
    for (Index row = 0; row < rows; row += step)
      for (Index panel = 0; panel < all; panel += per_task)
        tasks.push_back(
            {&p, row, std::min(step, rows - row), panel * width, std::min(per_task * width, columns - panel * width)});
  }
  pool.parallel(static_cast<int>(tasks.size()), [&](int task, int) { run(tasks[static_cast<std::size_t>(task)]); });
}

}  // namespace headscope
