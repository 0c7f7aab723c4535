#include "core/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/error.h"
#include "core/cuda/card_tensors.h"
#include "core/cuda/cuda_attention.h"
#include "core/cuda/cuda_training.h"
#include "core/cuda/device.h"
#include "core/cuda/held_rows.h"
#include "core/cuda/kernels.h"
#include "core/cuda/looks.h"

namespace headscope {
namespace cuda {
namespace {

/// Weights over there, (in, out) row-major with rows made up to a multiple of 16 bytes; of BF16 products as bfloat16.
class Matrix final : public PackedMatrix {
 public:
  Matrix(std::span<const Tensor> parts, std::shared_ptr<Device> device, Precision precision)
      : device_(std::move(device)), precision_(precision), in_(parts[0].dim(0)) {
    for (const Tensor& part : parts) out_ += part.dim(1);
    const Index step = half() ? 8 : 4;
    stride_ = (out_ + step - 1) / step * step;
    device_->choose();
    const bool as_it_is = parts.size() == 1 && stride_ == out_;
    Tensor whole = as_it_is ? parts[0].packed() : Tensor::zeros({in_, stride_});
    Index column = 0;
    for (const Tensor& each : parts) {
      if (as_it_is) break;
      const Tensor part = each.packed();
      const auto width = static_cast<std::size_t>(part.dim(1));
      for (Index i = 0; i < in_; ++i) std::memcpy(&whole.ref(i, column), part.data() + i * part.dim(1), 4 * width);
      column += part.dim(1);
    }
    weights_ = device_->upload(whole.data(), whole.bytes());
    if (half()) {
      std::shared_ptr<float> rounded = device_->take(whole.bytes() / 2);
      to_bfloat(weights_.get(), in_, stride_, stride_, rounded.get(), device_->stream());
      weights_ = std::move(rounded);
    }
    device_->synchronize();
  }

  std::size_t bytes() const override {
    return static_cast<std::size_t>(in_ * stride_) * (half() ? sizeof(std::uint16_t) : sizeof(float));
  }
  Index in() const override { return in_; }
  Index out() const override { return out_; }
  const Device* device() const { return device_.get(); }
  const void* weights() const { return weights_.get(); }
  Index stride() const { return stride_; }
  bool half() const { return precision_ == Precision::bf16; }

  /// c (rows, out) of a (rows, in), both over there.
  void multiply(const float* a, Index a_stride, Index rows, const float* bias, float* c) const {
    std::shared_ptr<float> rounded;
    if (half()) {
      rounded = device_->take(static_cast<std::size_t>(rows * in_) * 2);
      to_bfloat(a, rows, in_, a_stride, rounded.get(), device_->stream());
    }
    device_->multiply({kind_of(precision_),
                       compute_of(precision_),
                       {half() ? rounded.get() : a, half() ? in_ : a_stride},
                       {weights_.get(), stride_},
                       rows,
                       in_,
                       out_,
                       c,
                       out_,
                       bias});
  }

  /// dx (rows, in) = dy (rows, out) · Wᵀ, or that added to dx, both over there without gaps.
  void multiply_back(const float* dy, Index rows, float* dx, bool add) const {
    std::shared_ptr<float> rounded;
    if (half()) {
      rounded = device_->take(static_cast<std::size_t>(rows * out_) * 2);
      to_bfloat(dy, rows, out_, out_, rounded.get(), device_->stream());
    }
    device_->multiply({kind_of(precision_),
                       compute_of(precision_),
                       {half() ? rounded.get() : dy, out_},
                       {weights_.get(), stride_, true},
                       rows,
                       out_,
                       in_,
                       dx,
                       in_,
                       nullptr,
                       add});
  }

  /// For those who compute on the processor: there and back.
  void multiply(const Tensor& x, const float* bias, Tensor& out, ThreadPool&) const override {
    device_->choose();
    const Tensor rows = x.packed();
    const Index n = rows.dim(0);
    const std::shared_ptr<float> a = device_->upload(rows.data(), rows.bytes()),
                                 c = device_->take(static_cast<std::size_t>(n * out_) * sizeof(float));
    multiply(a.get(), in_, n, nullptr, c.get());
    Tensor result = Tensor::uninitialized({n, out_});
    check(cudaMemcpyAsync(result.mutable_data(), c.get(), result.bytes(), cudaMemcpyDeviceToHost, device_->stream()),
          "copying a product from the card");
    device_->synchronize();
    for (Index i = 0; i < n; ++i)
      for (Index j = 0; j < out_; ++j) out.ref(i, j) = result.at(i, j) + (bias ? bias[j] : 0.0f);
  }

 private:
  std::shared_ptr<Device> device_;
  Precision precision_;
  Index in_, out_ = 0, stride_ = 0;
  std::shared_ptr<float> weights_;
};

class CudaBackend final : public Backend, private CardTensors {
 public:
  CudaBackend(int threads, int index, Precision precision)
      : Backend(threads),
        CardTensors(Device::open(index)),
        device_(device()),
        precision_(precision),
        held_(*this),
        attention_(*this, held_, precision == Precision::f32),
        recorder_(*this, *this, precision),
        updates_(*this),
        looks_(*this) {}

  std::string name() const override {
    return fmt::format("CUDA {}, {}", name_in(precision_names, precision_), device_->properties().name);
  }
  bool asynchronous() const override { return true; }

  Tensor resident(Tensor weight) override {
    if (!weight.defined() || weight.kind() != Stored::f32 || !weight.contiguous() || ours(weight)) return weight;
    device_->choose();
    auto storage = std::make_shared<Storage>(device_, weight);
    return weight.also_on(std::move(storage));
  }

  Tensor copy(const Tensor& x) override {
    if (!ours(x)) return x.copy();
    return without_gaps(x);
  }

  void put_rows(Tensor& all, Index at, const Tensor& rows) override {
    device_->choose();
    if (!ours(all)) {
      if (!ours(rows)) return Backend::put_rows(all, at, rows);
      all = made(all.shape(), [&, before = all.slice(0, 0, at)](float* out) {  // with what is there
        if (at > 0) device_->send(out, before.data(), before.bytes());
      });
    }
    if (rows.dim(0) <= few_rows) return held_.put(all, at, rows);
    const Operand from = on_card(rows);
    Tensor to = all.slice(0, at, at + rows.dim(0));
    check(cudaMemcpyAsync(place(to), from.data, rows.bytes(), cudaMemcpyDeviceToDevice, device_->stream()),
          "copying rows");
    storage(all)->written_on_card();
  }

  AttentionKernel* attention() override { return &attention_; }
  UpdateKernel* updates() override { return &updates_; }

  Tensor room(Shape shape) override { return CardTensors::room(shape); }
  void clear(Tensor x) override {
    if (!ours(x)) return Backend::clear(x);
    write(x, [&](float* to) { check(cudaMemsetAsync(to, 0, x.bytes(), device_->stream()), "clearing numbers"); });
  }
  void accumulate(const Tensor& from, const Tape::Slot& into) override {
    if (!ours(into.values)) return Backend::accumulate(from, into);
    CardTensors::accumulate(from, into.values, into.add);
  }

  void finish() override {
    device_->choose();
    held_.start();
    looks_.send();
    attention_.finish(pool());  // layer by layer, while later ones run
    device_->synchronize();
    looks_.read();
  }
  void abandon() override {
    held_.forget();
    looks_.forget();
    attention_.forget();
  }

  void look_through(const Tensor& x) override { looks_.add(x); }
  std::vector<NotFinite> not_finite() override {
    if (looks_.under_way()) {
      device_->choose();
      looks_.send();
      device_->synchronize();
      looks_.read();
    }
    return looks_.take();
  }

  Linear linear_weights(std::vector<Tensor> weights, const std::vector<Tensor>& biases, bool changing) override {
    Linear made = Backend::linear_weights(std::move(weights), biases, changing);
    if (!changing) made.bias = resident(made.bias);
    return made;
  }

  Tensor linear(const Tensor& x, const Linear& w, RowQueue* later) override {
    device_->choose();
    if (!w.packed) return recorder_.linear(x, w);
    const auto* const matrix = dynamic_cast<const Matrix*>(w.packed.get());
    const auto active = [this](const Tensor& t) { return tape() && tape()->active(t); };
    if (!matrix || matrix->device() != device_.get() || std::ranges::any_of(w.parts, active) ||
        std::ranges::any_of(w.biases, active))
      return Backend::linear(x, w, later);
    // Few rows are a matter of reading the weights, whose every bit then counts.
    if (!tape() && x.dim(0) <= few_rows)
      return held_.product(x, matrix->weights(), matrix->half(), matrix->out(), matrix->stride(), w.bias);
    const bool as_it_lies = ours(x) && x.stride(1) == 1 && aligned(x);
    const Operand in = as_it_lies ? Operand{place(x), x} : on_card(x);
    const Operand bias = w.bias.defined() ? on_card(w.bias) : Operand{};
    Tensor out = made({x.dim(0), matrix->out()},
                      [&](float* to) { matrix->multiply(in.data, in.keeps.stride(0), x.dim(0), bias.data, to); });
    recorder_.of_one(out, x, [matrix, packed = w.packed, rows = x.dim(0)](const float* dy, float* dx, bool add) {
      matrix->multiply_back(dy, rows, dx, add);
    });
    return out;
  }

  Tensor gather(const Tensor& table, std::span<const std::int32_t> ids) override {
    if (!ours(table)) return Backend::gather(table, ids);
    device_->choose();
    const std::shared_ptr<float> which = device_->upload(ids.data(), ids.size_bytes());
    Tensor out = made({static_cast<Index>(ids.size()), table.dim(1)}, [&](float* to) {
      cuda::gather(place(table), table.stride(0), table.dim(1), reinterpret_cast<const std::int32_t*>(which.get()),
                   static_cast<Index>(ids.size()), to, device_->stream());
    });
    recorder_.gather(out, table, ids);
    return out;
  }
  Loss cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets) override {
    return ours(logits) ? recorder_.cross_entropy(logits, targets) : Backend::cross_entropy(logits, targets);
  }

  // An asynchronous device is given no queue.

  Tensor add(const Tensor& a, const Tensor& b, RowQueue*) override {
    if (const Tensor sum = tape() ? Tensor() : held_.sum(a, b); sum.defined()) return sum;
    const Operand left = on_card(a), right = on_card(b);
    Tensor out = made(a.shape(), [&](float* to) { cuda::add(left.data, right.data, a.size(), to, device_->stream()); });
    record_sum(out, a, b);
    return out;
  }
  Tensor multiply(const Tensor& a, const Tensor& b, RowQueue*) override {
    const Operand left = on_card(a), right = on_card(b);
    Tensor out =
        made(a.shape(), [&](float* to) { cuda::multiply(left.data, right.data, a.size(), to, device_->stream()); });
    recorder_.multiply(out, a, left, b, right);
    return out;
  }
  Tensor scale(const Tensor& x, float factor, RowQueue*) override {
    Tensor out = each(x, [&](const float* in, float* to) { cuda::scale(in, factor, x.size(), to, device_->stream()); });
    recorder_.scale(out, x, factor);
    return out;
  }
  Tensor soft_cap(const Tensor& x, float limit, RowQueue* later) override {
    if (tape()) return Backend::soft_cap(x, limit, later);
    return each(x, [&](const float* in, float* out) { cuda::soft_cap(in, limit, x.size(), out, device_->stream()); });
  }
  Tensor clip(const Tensor& x, float limit, RowQueue* later) override {
    if (tape()) return Backend::clip(x, limit, later);
    return each(x, [&](const float* in, float* out) { cuda::clip(in, limit, x.size(), out, device_->stream()); });
  }
  Tensor activate(Unary f, const Tensor& x, RowQueue*) override {
    const Curve curve = f == Unary::relu        ? Curve::relu
                        : f == Unary::gelu      ? Curve::gelu
                        : f == Unary::gelu_tanh ? Curve::gelu_tanh
                                                : Curve::silu;
    if (const Tensor curved = tape() ? Tensor() : held_.curved(curve, x); curved.defined()) return curved;
    const Operand in = on_card(x);
    Tensor out = made(x.shape(), [&](float* to) { cuda::activate(curve, in.data, x.size(), to, device_->stream()); });
    recorder_.activate(out, curve, x, in);
    return out;
  }
  Tensor xielu(const Xielu& f, const Tensor& x, RowQueue* later) override {
    if (tape()) return Backend::xielu(f, x, later);
    return each(x, [&](const float* in, float* out) {
      cuda::xielu({f.positive, f.negative, f.beta, f.epsilon}, in, x.size(), out, device_->stream());
    });
  }
  Tensor solu(const Tensor& x, RowQueue* later) override {
    if (tape()) return Backend::solu(x, later);
    return each(x, [&](const float* in, float* out) {
      cuda::solu(in, x.size() / x.dim(-1), x.dim(-1), out, device_->stream());
    });
  }
  Tensor layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon, RowQueue*) override {
    return normed(x, gain, bias, epsilon);
  }
  Tensor rms_norm(const Tensor& x, const Tensor& gain, double epsilon, RowQueue*) override {
    return normed(x, gain, {}, epsilon);
  }
  Tensor add_to_heads(const Tensor& x, const Tensor& shared, RowQueue* later) override {
    if (tape()) return Backend::add_to_heads(x, shared, later);
    const Operand in = heads_on_card(x), more = on_card(shared);
    return made(x.shape(), [&](float* out) {
      cuda::add_to_heads(heads(in), more.data, shared.dim(1), shared.dim(1), out, device_->stream());
    });
  }
  Tensor rotate(const Tensor& x, const Tensor& cosine, const Tensor& sine, RowQueue*, bool adjacent) override {
    const Operand in = heads_on_card(x), c = on_card(cosine), s = on_card(sine);
    Tensor out = made(x.shape(), [&](float* to) {
      cuda::rotate(heads(in), c.data, s.data, cosine.dim(1), adjacent, to, device_->stream());
    });
    recorder_.rotate(out, x, c, s, adjacent);
    return out;
  }

 protected:
  std::shared_ptr<const PackedMatrix> pack(std::span<const Tensor> weights) override {
    return std::make_shared<Matrix>(weights, device_, precision_);
  }

 private:
  template <class Kernel>
  Tensor each(const Tensor& x, Kernel kernel) {
    const Operand in = on_card(x);
    return made(x.shape(), [&](float* out) { kernel(in.data, out); });
  }
  /// `bias` undefined: RMSNorm.
  Tensor normed(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon) {
    const Index width = x.dim(-1);
    if (!tape() && x.size() / width <= few_rows && gain.size() == width)
      return held_.norm(x, gain, bias, static_cast<float>(epsilon));
    const Operand in = on_card(x), by = on_card(gain), plus = bias.defined() ? on_card(bias) : Operand{};
    Tensor out = made(x.shape(), [&](float* to) {
      cuda::norm(in.data, by.data, plus.data, x.size() / width, width, gain.size() / width, static_cast<float>(epsilon),
                 to, device_->stream());
    });
    recorder_.norm(out, x, in, gain, by, bias, epsilon);
    return out;
  }

  const std::shared_ptr<Device> device_;
  const Precision precision_;
  HeldRows held_;
  Attention attention_;
  Recorder recorder_;
  Updates updates_;
  Looks looks_;
};

}  // namespace
}  // namespace cuda

std::unique_ptr<Backend> make_cuda_backend(int threads, int index, Precision precision) {
  return std::make_unique<cuda::CudaBackend>(threads, index, precision);
}

}  // namespace headscope
