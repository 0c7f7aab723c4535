#include "core/cuda/card_tensors.h"

#include <array>
#include <cassert>

#include "core/cuda/gradients.h"

namespace headscope::cuda {
namespace {

struct Axes {
  std::array<Index, 4> extents{1, 1, 1, 1}, strides{};
};

/// Of up to four axes, the missing ones in front.
Axes axes_of(const Tensor& x) {
  Axes out;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const auto to = static_cast<std::size_t>(4 - x.rank() + axis);
    out.extents[to] = x.dim(axis);
    out.strides[to] = x.stride(axis);
  }
  return out;
}

}  // namespace

Operand CardTensors::on_card(const Tensor& x) const {
  device_->choose();
  if (ours(x)) {
    const Tensor packed = x.contiguous() && aligned(x) ? x : without_gaps(x);
    return {place(packed), packed};
  }
  const Tensor here = x.packed();
  const auto sent = std::make_shared<Storage>(device_, here);
  return {sent->on_card(), here.also_on(sent)};
}

Tensor CardTensors::without_gaps(const Tensor& x) const {
  const Axes axes = axes_of(x);
  return made(x.shape(), [&](float* out) { copy(place(x), axes.extents, axes.strides, x.size(), out, stream()); });
}

void CardTensors::accumulate(const Tensor& from, const Tensor& to, bool add) const {
  assert(from.shape() == to.shape());
  const Operand in = on_card(from);
  const Axes axes = axes_of(to);
  write(to, [&](float* out) {
    if (!add && to.contiguous())
      check(cudaMemcpyAsync(out, in.data, to.bytes(), cudaMemcpyDeviceToDevice, stream()), "copying numbers");
    else
      spread(in.data, axes.extents, axes.strides, to.size(), add, out, stream());
  });
}

}  // namespace headscope::cuda
