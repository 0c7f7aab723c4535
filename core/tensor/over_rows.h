#pragma once
// How the rows of an op are shared out. Private to core/tensor.

#include <algorithm>

#include "core/base/thread_pool.h"
#include "core/tensor/tensor.h"

namespace headscope {

// Handing out a task costs about as much as this many elements of simple arithmetic, or multiply-adds of a product.
inline constexpr Index row_task_grain = 4096;
inline constexpr Index product_task_grain = 100'000;

/// body(first row, end row) over rows of `width` elements: in parallel when the work is worth it.
template <class Body>
void over_rows(ThreadPool& pool, Index rows, Index width, Index cost, Body body) {
  const Index wanted = std::clamp<Index>(rows * width * cost / row_task_grain, 1, 4 * pool.threads());
  const Index step = (rows + wanted - 1) / wanted;
  pool.parallel(static_cast<int>((rows + step - 1) / std::max<Index>(step, 1)),
                [&](int task, int) { body(task * step, std::min(rows, (task + 1) * step)); });
}

// Sums over rows run in tiles of this many, whose results are added in order: no sum depends on the threads.
inline constexpr Index sum_tile_rows = 32;

}  // namespace headscope
