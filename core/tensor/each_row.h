#pragma once
// How a row-wise op is run: now, shared out, or later. Private to core/tensor.

#include <algorithm>
#include <utility>

#include "core/tensor/backend.h"
#include "core/tensor/over_rows.h"
#include "core/tensor/row_queue.h"

namespace headscope {

template <class Body>
void Backend::each_row(RowQueue* later, Index rows, Index work, Body body) {
  if (later)
    later->add(rows, work, std::move(body));
  else
    over_rows(pool_, rows, work, 1, std::move(body));
}

/// x without gaps. A copy can be made only of what is there.
inline Tensor gapless(const Tensor& x, RowQueue* later) {
  if (later && !x.contiguous()) later->run();
  return x.packed();
}

/// Elements under one index of the first axis.
inline Index row_width(const Tensor& x) {
  return x.size() / std::max<Index>(x.dim(0), 1);
}

}  // namespace headscope
