#include "core/tensor/products.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/tensor/over_rows.h"
#include "core/tensor/panels.h"

namespace headscope {
namespace {

constexpr Index depth_block = 256;  // × 32 columns × 4 bytes: 32 KB of a first-level cache of 48
constexpr Index widest_panel = 64;

/// Some panels of columns of one product, over some of its rows.
struct Task {
  const Product* product;
  Index row, rows, column, columns;
};

void run(const Task& task) {
  const Product& p = *task.product;
  alignas(64) float panel[static_cast<std::size_t>(depth_block * widest_panel)];
  const Index depth = p.a.dim(1), width = panels::width();
  for (Index column = task.column; column < task.column + task.columns; column += width) {
    const Index columns = std::min(width, task.column + task.columns - column);
    float* const c = const_cast<float*>(p.c.data()) + task.row * p.c.stride(0) + column;
    for (Index k = 0; k < depth; k += depth_block) {
      const Index block = std::min(depth_block, depth - k);
      panels::pack(p.b.slice(0, k, k + block).slice(1, column, column + columns), panel);
      panels::Addend addend;
      if (k > 0 || p.add)
        addend = {c, p.c.stride(0)};
      else if (p.bias.defined())
        addend = {p.bias.data() + column, 0};
      panels::multiply({p.a.data() + task.row * p.a.stride(0) + k * p.a.stride(1), p.a.stride(0), p.a.stride(1)},
                       task.rows, block, panel, block * width, columns, 1.0f, addend, c, p.c.stride(0));
    }
  }
}

}  // namespace

void multiply(std::span<const Product> products, ThreadPool& pool) {
  const Index width = panels::width();
  assert(width <= widest_panel);
  std::vector<Task> tasks;
  for (const Product& p : products) {
    const Index rows = p.a.dim(0), depth = p.a.dim(1), columns = p.b.dim(1);
    assert(p.b.dim(0) == depth && p.c.shape() == Shape({rows, columns}) && p.c.stride(1) == 1);
    assert(!p.bias.defined() || (!p.add && p.bias.dim(0) == columns && p.bias.stride(0) == 1));
    const Index all = panels::padded(columns) / width;
    const Index wanted = std::clamp<Index>(rows * depth * columns / product_task_grain, 1, 8 * pool.threads());
    const Index across = std::min(wanted, all), per_task = (all + across - 1) / across;
    const Index down = std::min((wanted + across - 1) / across, (rows + 63) / 64);
    const Index step = ((rows + down - 1) / down + 7) / 8 * 8;
    for (Index panel = 0; panel < all; panel += per_task)
      for (Index row = 0; row < rows; row += step)
        tasks.push_back(
            {&p, row, std::min(step, rows - row), panel * width, std::min(per_task * width, columns - panel * width)});
  }
  pool.parallel(static_cast<int>(tasks.size()), [&](int task, int) { run(tasks[static_cast<std::size_t>(task)]); });
}

}  // namespace headscope
