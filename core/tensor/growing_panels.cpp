#include "core/tensor/growing_panels.h"

#include <algorithm>
#include <cassert>

#include "core/base/thread_pool.h"
#include "core/tensor/over_rows.h"
#include "core/tensor/panels.h"

namespace headscope {

void GrowingPanels::forget(Index from) {
  known_ = std::min(known_, from);
}

std::size_t GrowingPanels::bytes_in_use() const {
  return panels_.defined()
             ? panels_.bytes() / static_cast<std::size_t>(room_) * static_cast<std::size_t>(panels::padded(known_))
             : 0;
}

void GrowingPanels::put(const Tensor& rows, Index room, ThreadPool& pool) {
  const Index n = rows.dim(0), heads = rows.dim(1), d = rows.dim(2), width = panels::width();
  assert(rows.stride(2) == 1);
  if (!panels_.defined() || n > room_ || panels_.dim(0) != heads) {
    room_ = panels::padded(std::max(n, room));
    panels_ = Tensor::uninitialized({heads, panels::packed_size(d, room_)});
    known_ = 0;
  }
  assert(panels_.dim(1) == room_ * d);
  if (known_ >= n) return;
  const Index first = known_ / width * width, begun = std::min(known_ - first, n - first);
  over_rows(pool, heads, (n - known_) * d, 1, [&](Index head, Index end) {
    for (; head < end; ++head) {
      float* const panel = &panels_.ref(head, first * d);
      Index row = first;
      if (begun > 0)  // the rest of a panel whose first rows are there
        for (row = known_; row < std::min(n, first + width); ++row)
          for (Index i = 0; i < d; ++i) panel[i * width + row - first] = rows.at(row, head, i);
      if (row < n) panels::pack(rows.slice(0, row, n).select(1, head).transpose(0, 1), &panels_.ref(head, row * d));
    }
  });
  known_ = n;
}

}  // namespace headscope
