#pragma once
// How a row-wise op is run: now, shared out, or later. Private to core/tensor.

#include <algorithm>
#include <cassert>
#include <utility>

#include "core/tensor/backend.h"
#include "core/tensor/over_rows.h"
#include "core/tensor/row_queue.h"

namespace headscope {

template <class Body>
void Backend::each_row(RowQueue* later, Index rows, Index cost, Body body) {
  assert(!(later && tape_));
  if (later)
    later->add(rows, cost * (product_task_grain / row_task_grain), std::move(body));
  else
    over_rows(pool_, rows, cost, 1, std::move(body));
}

template <class Body>
void Backend::each_element(RowQueue* later, const Tensor& x, Index cost, Body body) {
  if (!later) return over_rows(pool_, x.size(), 1, cost, std::move(body));
  const Index width = x.size() / std::max<Index>(x.dim(0), 1);
  each_row(later, x.dim(0), cost * width,
           [body = std::move(body), width](Index begin, Index end) mutable { body(begin * width, end * width); });
}

/// x without gaps. A copy can be made only of what is there.
inline Tensor gapless(const Tensor& x, RowQueue* later) {
  if (later && !x.contiguous()) later->run();
  return x.packed();
}

}  // namespace headscope
