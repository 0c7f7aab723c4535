#include "core/tensor/backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstring>

#include "core/tensor/buffer_pool.h"
#include "core/tensor/row_ops.h"

namespace headscope {
namespace {

// Handing out a task costs about as much as this many elements of simple arithmetic.
constexpr Index task_grain = 4096;

}  // namespace

Backend::Backend(int threads) : pool_(threads), buffers_(BufferPool::create()) {}
Backend::~Backend() = default;

std::string Backend::name() const {
  return fmt::format("CPU f32, {}, {} threads", matrix_library(), pool_.threads());
}

Tensor Backend::empty(Shape shape) {
  return buffers_->empty(shape);
}

template <class Body>
void Backend::over_rows(Index rows, Index width, Index cost, Body body) {
  const Index wanted = std::clamp<Index>(rows * width * cost / task_grain, 1, 4 * pool_.threads());
  const Index step = (rows + wanted - 1) / wanted;
  pool_.parallel(static_cast<int>((rows + step - 1) / std::max<Index>(step, 1)),
                 [&](int task, int) { body(task * step, std::min(rows, (task + 1) * step)); });
}

std::shared_ptr<const PackedMatrix> Backend::pack(std::span<const Tensor> weights) {
  return PackedMatrix::pack(weights, pool_);
}

Linear Backend::linear_weights(std::vector<Tensor> weights, const std::vector<Tensor>& biases) {
  Linear linear;
  linear.packed = pack(weights);
  if (std::ranges::any_of(biases, [](const Tensor& b) { return b.defined(); })) {
    linear.bias = Tensor::zeros({linear.packed->out()});
    Index column = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (i < biases.size() && biases[i].defined())
        for (Index j = 0; j < biases[i].dim(0); ++j) linear.bias.ref(column + j) = biases[i].at(j);
      column += weights[i].dim(1);
    }
  }
  linear.parts = std::move(weights);
  return linear;
}

Tensor Backend::linear(const Tensor& x, const Linear& w) {
  assert(x.rank() == 2 && x.dim(1) == w.packed->in());
  const Tensor rows = x.stride(1) == 1 ? x : x.copy();
  Tensor out = empty({x.dim(0), w.packed->out()});
  w.packed->multiply(rows, w.bias.defined() ? w.bias.data() : nullptr, out, pool_);
  return out;
}

Tensor Backend::gather(const Tensor& table, std::span<const std::int32_t> ids) {
  const Index width = table.dim(1);
  Tensor out = empty({static_cast<Index>(ids.size()), width});
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const Index id = ids[i];
    assert(id >= 0 && id < table.dim(0) && table.stride(1) == 1);
    std::memcpy(&out.ref(static_cast<Index>(i), 0), table.data() + id * table.stride(0),
                static_cast<std::size_t>(width) * sizeof(float));
  }
  return out;
}

Tensor Backend::add(const Tensor& a, const Tensor& b) {
  assert(a.shape() == b.shape());
  const Tensor left = a.packed(), right = b.packed();
  Tensor out = empty(a.shape());
  over_rows(a.size(), 1, 1, [&](Index begin, Index end) {
    row_ops::add(left.data() + begin, right.data() + begin, end - begin, out.mutable_data() + begin);
  });
  return out;
}

Tensor Backend::multiply(const Tensor& a, const Tensor& b) {
  assert(a.shape() == b.shape());
  const Tensor left = a.packed(), right = b.packed();
  Tensor out = empty(a.shape());
  over_rows(a.size(), 1, 1, [&](Index begin, Index end) {
    row_ops::multiply(left.data() + begin, right.data() + begin, end - begin, out.mutable_data() + begin);
  });
  return out;
}

Tensor Backend::layer_norm(const Tensor& x, const Tensor& gain, const Tensor& bias, double epsilon) {
  const Tensor in = x.packed();
  const Index width = x.dim(-1);
  assert(gain.contiguous() && gain.size() == width && bias.contiguous() && bias.size() == width);
  Tensor out = empty(x.shape());
  over_rows(x.size() / width, width, 2, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r)
      row_ops::layer_norm(in.data() + r * width, gain.data(), bias.data(), width, static_cast<float>(epsilon),
                          out.mutable_data() + r * width);
  });
  return out;
}

Tensor Backend::rms_norm(const Tensor& x, const Tensor& gain, double epsilon) {
  const Tensor in = x.packed();
  const Index width = x.dim(-1);
  assert(gain.contiguous() && gain.size() == width);
  Tensor out = empty(x.shape());
  over_rows(x.size() / width, width, 2, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r)
      row_ops::rms_norm(in.data() + r * width, gain.data(), width, static_cast<float>(epsilon),
                        out.mutable_data() + r * width);
  });
  return out;
}

Tensor Backend::activate(Unary f, const Tensor& x) {
  const Tensor in = x.packed();
  Tensor out = empty(x.shape());
  over_rows(x.size(), 1, 4, [&](Index begin, Index end) {
    const float* const from = in.data() + begin;
    float* const to = out.mutable_data() + begin;
    switch (f) {
      case Unary::relu:
        row_ops::relu(from, end - begin, to);
        break;
      case Unary::gelu:
        row_ops::gelu(from, end - begin, to);
        break;
      case Unary::gelu_tanh:
        row_ops::gelu_tanh(from, end - begin, to);
        break;
      case Unary::silu:
        row_ops::silu(from, end - begin, to);
        break;
    }
  });
  return out;
}

Tensor Backend::rotate(const Tensor& x, const Tensor& cosine, const Tensor& sine) {
  const Index rows = x.dim(0), heads = x.dim(1), width = x.dim(2), half = width / 2;
  assert(x.rank() == 3 && x.stride(2) == 1 && cosine.shape() == Shape({rows, half}) && cosine.contiguous() &&
         sine.contiguous());
  Tensor out = empty(x.shape());
  over_rows(rows, heads * width, 2, [&](Index begin, Index end) {
    for (Index r = begin; r < end; ++r)
      for (Index h = 0; h < heads; ++h)
        row_ops::rotate(
            x.data() + r * x.stride(0) + h * x.stride(1), &cosine.values()[static_cast<std::size_t>(r * half)],
            &sine.values()[static_cast<std::size_t>(r * half)], half, out.mutable_data() + (r * heads + h) * width);
  });
  return out;
}

bool Backend::finite(const Tensor& x) {
  const Tensor in =
      x.contiguous() || !(x.rank() == 2 && x.transpose(0, 1).contiguous()) ? x.packed() : x.transpose(0, 1);
  std::atomic<bool> all{true};
  over_rows(in.size(), 1, 1, [&](Index begin, Index end) {
    if (!row_ops::finite(in.data() + begin, end - begin)) all = false;
  });
  return all;
}

}  // namespace headscope
