// Ops lie beside their backward passes: ops_linear.cpp, ops_norm.cpp, ops_elementwise.cpp, ops_loss.cpp.

#include "core/tensor/backend.h"

#include <fmt/format.h>

#include <atomic>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/tensor/buffer_pool.h"
#include "core/tensor/instruction_set.h"
#include "core/tensor/over_rows.h"
#include "core/tensor/row_gradients.h"
#include "core/tensor/row_ops.h"

namespace headscope {

Backend::Backend(int threads) : pool_(threads), buffers_(BufferPool::create()) {}
Backend::~Backend() = default;

std::string Backend::name() const {
  return fmt::format("CPU f32, {}", instruction_set());
}

std::string Backend::described() const {
  return fmt::format("{}, {} thread{}", name(), pool_.threads(), pool_.threads() == 1 ? "" : "s");
}

Tensor Backend::empty(Shape shape) {
  return buffers_->empty(shape);
}

void Backend::clear(Tensor x) {
  assert(x.contiguous());
  std::memset(x.mutable_data(), 0, x.bytes());
}

void Backend::accumulate(const Tensor& from, const Tape::Slot& into) {
  Tensor to = into.values;
  assert(from.shape() == to.shape());
  const Tensor source = from.packed();
  if (to.contiguous()) {
    over_rows(pool_, to.size(), 1, 1, [&](Index begin, Index end) {
      row_gradients::accumulate(source.data() + begin, end - begin, into.add, to.mutable_data() + begin);
    });
    return;
  }
  // Views with gaps: row by row along the last axis, element by element where even that has a stride.
  const Index width = to.dim(-1), step = to.stride(-1);
  for (Index row = 0; row < to.size() / width; ++row) {
    Index rest = row, offset = 0;
    for (int axis = to.rank() - 2; axis >= 0; --axis) {
      offset += rest % to.dim(axis) * to.stride(axis);
      rest /= to.dim(axis);
    }
    const float* const in = source.data() + row * width;
    float* const out = to.mutable_data() + offset;
    if (step == 1)
      row_gradients::accumulate(in, width, into.add, out);
    else
      for (Index j = 0; j < width; ++j) out[j * step] = in[j] + (into.add ? out[j * step] : 0.0f);
  }
}

void Backend::put_rows(Tensor& all, Index at, const Tensor& rows) {
  assert(at + rows.dim(0) <= all.dim(0));
  const Tensor from = rows.packed();
  std::memcpy(all.slice(0, at, at + rows.dim(0)).mutable_data(), from.data(), from.bytes());
}

void Backend::look_through(const Tensor& x) {
  NotFinite& found = looked_through_.emplace_back();
  if (finite(x)) return;
  for (Index i = 0; i < x.dim(0); ++i)
    for (Index j = 0; j < x.dim(1); ++j)
      if (found.row < 0 && !std::isfinite(x.at(i, j))) found = {i, j, x.at(i, j)};
}

std::vector<Backend::NotFinite> Backend::not_finite() {
  return std::exchange(looked_through_, {});
}

bool Backend::finite(const Tensor& x) {
  const Tensor lying = x.rank() == 2 && x.transpose(0, 1).contiguous() ? x.transpose(0, 1) : x;
  const Tensor in = lying.contiguous() ? lying : x.copy();
  std::atomic<bool> all{true};
  over_rows(pool_, in.size(), 1, 1, [&](Index begin, Index end) {
    const Index count = end - begin;
    if (!(in.kind() == Stored::f32 ? row_ops::finite(in.data() + begin, count)
                                   : stored::finite(in.kind(), in.stored(), in.first() + begin, count)))
      all = false;
  });
  return all;
}

}  // namespace headscope
