#include "core/tensor/row_queue.h"

#include <algorithm>
#include <utility>

#include "core/base/thread_pool.h"
#include "core/tensor/over_rows.h"

namespace headscope {
namespace {

// A tile's rows: few enough to stay in cache, as many as a product needs to pay for streaming its weights past them.
constexpr Index least_tile = 16, most_tile = 64;

}  // namespace

void RowQueue::add(Index rows, Index work, Step step) {
  if (rows != rows_) run();
  rows_ = rows;
  work_ += work;
  steps_.push_back(std::move(step));
}

bool RowQueue::pays(Index rows) const {
  return rows >= 8 * pool_.threads();
}

void RowQueue::run() {
  if (steps_.empty()) return;
  const std::vector<Step> steps = std::exchange(steps_, {});
  const Index rows = rows_, work = rows * std::exchange(work_, 0), threads = pool_.threads();
  // Where there are rows enough, a few tiles for each thread, so that one that is held up can be helped.
  const Index even = (rows + threads - 1) / threads;
  const Index tile =
      work < 2 * product_task_grain ? rows : std::min(even, std::clamp((even / 4 + 7) / 8 * 8, least_tile, most_tile));
  const auto tiles = static_cast<int>((rows + tile - 1) / std::max<Index>(tile, 1));
  pool_.parallel(tiles, [&](int task, int) {
    const Index begin = task * tile, end = std::min(rows, begin + tile);
    for (const Step& step : steps) step(begin, end);
  });
}

}  // namespace headscope
