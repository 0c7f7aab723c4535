#include "core/tensor/growing_rows.h"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace headscope {

Tensor GrowingRows::put(Index known, const Tensor& fresh, Index room, Backend& backend) {
  const Index rows = known + fresh.dim(0);
  assert(all_.defined() && known <= all_.dim(0));
  if (lent_ > known || all_.dim(0) < rows) {
    const Tensor read = all_.slice(0, 0, known);
    Shape shape = all_.shape();
    shape[0] = std::max({rows, room, shape[0]});
    all_ = Tensor::uninitialized(shape);
    if (known > 0) backend.put_rows(all_, 0, read);
  }
  backend.put_rows(all_, known, fresh);
  lent_ = rows;
  return all_.slice(0, 0, rows);
}

GrowingRows GrowingRows::copy(Index rows) const {
  if (!all_.defined()) return {};
  GrowingRows other(Tensor::uninitialized(all_.shape()));
  const Tensor read = all_.slice(0, 0, rows);
  std::memcpy(other.all_.mutable_data(), read.data(), read.bytes());
  return other;
}

}  // namespace headscope
