#pragma once
// A product with a large matrix by blocks that stay in a core's second-level cache. Private to core/tensor.

#include <algorithm>
#include <span>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/tensor/over_rows.h"
#include "core/tensor/panels.h"

namespace headscope {

/// A block in panels: 256 × 128 floats (128 KB).
inline constexpr Index block_depth = 256, block_columns = 128;
// Rows that are multiplied with it before the next (24 × 256 floats, 24 KB) stay in the first-level cache; whole blocks
// of the kernel's 8 or 6.
inline constexpr Index strip_rows = 24;

/// What one thread does without a stop: some rows times some columns, those of one part of the matrix.
struct BlockTask {
  Index row, rows, part, column, columns;
};

/// Shares a product of so many rows with the matrices of `parts` (their columns), `in` deep: columns first,
/// most_columns at a time if there are enough, then rows, at most most_rows of a task: their part of x and of the
/// result stay in the second-level cache beside two blocks.
inline std::vector<BlockTask> block_tasks(Index rows, Index in, std::span<const Index> parts, Index most_columns,
                                          Index most_rows, const ThreadPool& pool) {
  // Rows are split among threads only where each gets so many, or it would read more of the matrix than it multiplies.
  constexpr Index least_rows = 64;
  Index out = 0;
  for (const Index columns : parts) out += columns;
  const Index wanted = std::min<Index>(3 * pool.threads(), rows * in * out / product_task_grain + 1);
  Index step = most_columns;
  while (step > panels::width() && (out + step - 1) / step < wanted) step /= 2;
  const Index across = std::max<Index>((out + step - 1) / step, 1);
  const Index down = std::max(std::clamp<Index>(rows / least_rows, 1, std::max<Index>(wanted / across, 1)),
                              (rows + most_rows - 1) / most_rows);
  const Index tall = ((rows + down - 1) / down + strip_rows - 1) / strip_rows * strip_rows;
  std::vector<BlockTask> tasks;
  for (Index row = 0; row < rows; row += tall)
    for (std::size_t part = 0; part < parts.size(); ++part)
      for (Index column = 0; column < parts[part]; column += step)
        tasks.push_back(
            {row, std::min(tall, rows - row), static_cast<Index>(part), column, std::min(step, parts[part] - column)});
  return tasks;
}

/// out (rows of x, columns) gets, or where k > 0 is added, x's numbers [k, k + depth) of each row · `block` (depth,
/// columns), in panels; the first time with the bias (columns), which may be null. `ahead`: what is read next.
inline void multiply_block(const Tensor& x, Index k, Index depth, const float* block, Index columns, const float* bias,
                           float* out, Index out_stride, const Ahead& ahead = {}) {
  const Index rows = x.dim(0), strips = (rows + strip_rows - 1) / strip_rows;
  for (Index strip = 0; strip < strips; ++strip) {
    const Index r = strip * strip_rows;
    float* const c = out + r * out_stride;
    const panels::Addend added = k > 0 ? panels::Addend{c, out_stride} : panels::Addend{bias};
    panels::multiply({x.data() + r * x.stride(0) + k, x.stride(0)}, std::min(strip_rows, rows - r), depth, block,
                     depth * panels::width(), columns, 1.0f, added, c, out_stride,
                     ahead.share(strip, strip + 1, strips));
  }
}

}  // namespace headscope
