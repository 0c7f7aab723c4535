#pragma once
// Tensors on one card: where their numbers lie, how others come there, room for what a kernel writes. Private to
// core/cuda.

#include <memory>
#include <utility>

#include "core/cuda/device.h"
#include "core/cuda/kernels.h"
#include "core/tensor/tensor.h"

namespace headscope::cuda {

/// A tensor that a kernel reads: where it lies, and what keeps it there.
struct Operand {
  const float* data = nullptr;
  Tensor keeps;
};

class CardTensors {
 public:
  explicit CardTensors(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  const std::shared_ptr<Device>& device() const { return device_; }
  cudaStream_t stream() const { return device_->stream(); }

  static Storage* storage(const Tensor& t) { return static_cast<Storage*>(t.remote()); }
  bool ours(const Tensor& t) const {
    return t.remote() && dynamic_cast<Storage*>(t.remote()) && storage(t)->device() == device_;
  }
  static bool aligned(const Tensor& t) { return t.at_device() * Index{sizeof(float)} % Device::aligned == 0; }
  /// Where the numbers of one of ours lie.
  static float* place(const Tensor& t) { return storage(t)->on_card() + t.at_device(); }

  Tensor room(Shape shape) const {
    device_->choose();
    return Tensor::of(std::make_shared<Storage>(device_, shape.size()), shape);
  }
  /// A tensor that kernel(its place over there) is going to write.
  template <class Kernel>
  Tensor made(Shape shape, Kernel kernel) const {
    Tensor out = room(shape);
    kernel(place(out));
    check(cudaGetLastError(), "starting a kernel");
    return out;
  }
  /// kernel(its place over there) writes to one of ours that was there before.
  template <class Kernel>
  void write(const Tensor& to, Kernel kernel) const {
    device_->choose();
    kernel(place(to));
    check(cudaGetLastError(), "starting a kernel");
    storage(to)->written_on_card();
  }

  /// Its numbers over there, without gaps.
  Operand on_card(const Tensor& x) const;
  /// The same of (row, head, d), where gaps between rows and heads may stay.
  Operand heads_on_card(const Tensor& x) const {
    return ours(x) && x.stride(2) == 1 ? Operand{place(x), x} : on_card(x);
  }
  static Heads heads(const Operand& x) {
    const Tensor& t = x.keeps;
    return {x.data, t.dim(0), t.dim(1), t.dim(2), t.stride(0), t.stride(1)};
  }
  /// One of ours in storage of its own.
  Tensor without_gaps(const Tensor& x) const;
  /// Adds `from` to one of ours, or writes it there, however either lies.
  void accumulate(const Tensor& from, const Tensor& to, bool add) const;

 private:
  std::shared_ptr<Device> device_;
};

}  // namespace headscope::cuda
