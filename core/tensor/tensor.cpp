#include "core/tensor/tensor.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "core/base/aligned_memory.h"

namespace headscope {

Shape::Shape(std::initializer_list<Index> extents) : Shape(std::span<const Index>(extents.begin(), extents.size())) {}

Shape::Shape(std::span<const Index> extents) : rank_(static_cast<int>(extents.size())) {
  assert(extents.size() <= max_rank);
  std::copy(extents.begin(), extents.end(), extents_.begin());
}

Index Shape::size() const {
  Index product = 1;
  for (int axis = 0; axis < rank_; ++axis) product *= (*this)[axis];
  return product;
}

std::string Shape::str() const {
  std::string text = "[";
  for (int axis = 0; axis < rank_; ++axis) text += (axis ? ", " : "") + std::to_string((*this)[axis]);
  return text + "]";
}

namespace {

std::shared_ptr<std::byte> allocated(Index bytes) {
  const auto size = static_cast<std::size_t>(std::max<Index>(bytes, 1));
  return {static_cast<std::byte*>(allocate_aligned(size)), [size](std::byte* p) { deallocate_aligned(p, size); }};
}

/// Calls f(offset, run) for every innermost run of a strided tensor in row-major order.
template <class F>
void for_each_row(const Shape& shape, const Index* strides, F f) {
  const int rank = shape.rank();
  if (rank == 0) return f(Index{0});
  const Index rows = shape.size() / std::max<Index>(shape[rank - 1], 1);
  for (Index row = 0; row < rows; ++row) {
    Index rest = row, offset = 0;
    for (int axis = rank - 2; axis >= 0; --axis) {
      offset += (rest % shape[axis]) * strides[axis];
      rest /= shape[axis];
    }
    f(offset);
  }
}

}  // namespace

Tensor Tensor::borrow(Stored kind, const std::byte* data, Shape shape, std::shared_ptr<const void> owner) {
  assert(shape.rank() == 0 || stored::begins_at(kind, shape[shape.rank() - 1]));
  Tensor t;
  t.owner_ = std::move(owner);
  t.data_ = reinterpret_cast<const float*>(data);
  t.kind_ = kind;
  t.storage_ = {t.data_, shape.size()};
  t.lay(shape);
  return t;
}

Tensor Tensor::borrow(const float* data, Shape shape, std::shared_ptr<const void> owner) {
  return borrow(Stored::f32, reinterpret_cast<const std::byte*>(data), shape, std::move(owner));
}

Tensor Tensor::of(std::shared_ptr<Remote> remote, Shape shape) {
  Tensor t = borrow(remote->mirror(), shape, remote);
  t.remote_ = remote.get();
  return t;
}

Tensor Tensor::also_on(std::shared_ptr<Remote> remote) const {
  assert(kind_ == Stored::f32 && remote->mirror() == data_);
  Tensor t = *this;
  t.remote_ = remote.get();
  t.owner_ = std::move(remote);
  return t;
}

void Tensor::lay(const Shape& shape) {
  shape_ = shape;
  strides_ = {};
  Index stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    strides_[static_cast<std::size_t>(axis)] = stride;
    stride *= shape[axis];
  }
}

void Tensor::advance(Index numbers) {
  if (kind_ == Stored::f32)
    data_ += numbers;
  else
    first_ += numbers;
}

std::size_t Tensor::bytes() const {
  const stored::Layout& of = stored::layout(kind_);
  return static_cast<std::size_t>(of.bytes * size() / of.numbers);
}

std::optional<stored::Lines> Tensor::lines() const {
  if (kind_ == Stored::f32 || rank() != 2 || !stored::begins_at(kind_, first_)) return {};
  if (stride(0) == 1 && stored::begins_at(kind_, stride(1))) return stored::Lines{kind_, stored(), first_, stride(1)};
  if (stride(1) == 1 && stored::plain(kind_)) return stored::Lines{kind_, stored(), first_, stride(0), true};
  return {};
}

float Tensor::decoded(Index at) const {
  return stored::number(kind_, stored(), first_ + at);
}

void Tensor::decode(Index at, Index count, float* to) const {
  arrive();
  if (kind_ == Stored::f32)
    std::memcpy(to, data_ + at, static_cast<std::size_t>(count) * sizeof(float));
  else
    stored::decode(kind_, stored(), first_ + at, count, to);
}

Tensor Tensor::uninitialized(Shape shape) {
  return uninitialized(Stored::f32, shape);
}

Tensor Tensor::uninitialized(Stored kind, Shape shape) {
  const std::shared_ptr<std::byte> storage = allocated(stored::bytes_of(kind, shape.size()));
  return borrow(kind, storage.get(), shape, storage);
}

Tensor Tensor::zeros(Shape shape) {
  return full(shape, 0.0f);
}

Tensor Tensor::full(Shape shape, float value) {
  Tensor t = uninitialized(shape);
  std::ranges::fill(t.mutable_values(), value);
  return t;
}

Tensor Tensor::from(Shape shape, std::span<const float> values) {
  assert(static_cast<Index>(values.size()) == shape.size());
  Tensor t = uninitialized(shape);
  std::ranges::copy(values, t.mutable_values().begin());
  return t;
}

bool Tensor::contiguous() const {
  Index stride = 1;
  for (int axis = rank() - 1; axis >= 0; --axis) {
    if (shape_[axis] != 1 && strides_[static_cast<std::size_t>(axis)] != stride) return false;
    stride *= shape_[axis];
  }
  return true;
}

std::span<const float> Tensor::values() const {
  assert(contiguous());
  return {data(), defined() ? static_cast<std::size_t>(size()) : 0};
}

std::span<float> Tensor::mutable_values() {
  assert(contiguous());
  return {mutable_data(), defined() ? static_cast<std::size_t>(size()) : 0};
}

Tensor Tensor::slice(int axis, Index begin, Index end) const {
  assert(axis < rank() && 0 <= begin && begin <= end && end <= shape_[axis]);
  Tensor t = *this;
  t.advance(begin * stride(axis));
  t.shape_[axis] = end - begin;
  return t;
}

Tensor Tensor::select(int axis, Index index) const {
  assert(axis < rank() && 0 <= index && index < shape_[axis]);
  Tensor t = *this;
  t.advance(index * stride(axis));
  std::array<Index, Shape::max_rank> extents{}, strides{};
  std::size_t count = 0;
  for (int a = 0; a < rank(); ++a) {
    if (a == axis) continue;
    extents[count] = shape_[a];
    strides[count++] = stride(a);
  }
  t.shape_ = Shape(std::span<const Index>(extents.data(), count));
  t.strides_ = strides;
  return t;
}

Tensor Tensor::transpose(int a, int b) const {
  Tensor t = *this;
  std::swap(t.shape_[a], t.shape_[b]);
  std::swap(t.strides_[static_cast<std::size_t>(a)], t.strides_[static_cast<std::size_t>(b)]);
  return t;
}

Tensor Tensor::reshape(Shape shape) const {
  assert(shape.size() == size());
  if (contiguous()) {
    Tensor t = *this;
    t.lay(shape);
    return t;
  }
  // Splitting the last axis, or merging axes that lie back to back, keeps the view: (n, h·d) with a row stride ↔ (n, h,
  // d).
  if (rank() >= 1 && shape.rank() == rank() + 1 && stride(-1) == 1 && dim(-1) == shape[rank() - 1] * shape[rank()]) {
    bool same = true;
    for (int a = 0; a + 1 < rank(); ++a) same = same && shape[a] == shape_[a];
    if (same) {
      Tensor t = *this;
      t.shape_ = shape;
      t.strides_[static_cast<std::size_t>(rank() - 1)] = shape[rank()];
      t.strides_[static_cast<std::size_t>(rank())] = 1;
      return t;
    }
  }
  if (rank() >= 2 && shape.rank() == rank() - 1 && stride(-1) == 1 && stride(-2) == dim(-1)) {
    bool same = true;
    for (int a = 0; a + 2 < rank(); ++a) same = same && shape[a] == shape_[a];
    if (same) {
      Tensor t = *this;
      t.shape_ = shape;
      t.strides_[static_cast<std::size_t>(shape.rank() - 1)] = 1;
      return t;
    }
  }
  const Tensor fresh = copy();
  return borrow(fresh.data_, shape, fresh.owner_);
}

Tensor Tensor::joined(const Tensor& a, const Tensor& b, int axis) {
  Tensor behind = a;
  behind.advance(a.dim(axis) * a.stride(axis));
  if (!(a.storage_ == b.storage_) || a.rank() != b.rank() || a.strides_ != b.strides_ || b.data_ != behind.data_ ||
      b.first_ != behind.first_)
    return {};
  for (int other = 0; other < a.rank(); ++other)
    if (other != axis && a.dim(other) != b.dim(other)) return {};
  Tensor t = a;
  t.shape_[axis] += b.dim(axis);
  return t;
}

Tensor Tensor::same_view_of(const Tensor& flat) const {
  assert(flat.contiguous() && flat.size() == storage_.size);
  Tensor t = *this;
  t.owner_ = flat.owner_;
  t.remote_ = flat.remote_;
  t.storage_ = flat.storage_;
  t.data_ = flat.data_ + (data_ - storage_.first);
  return t;
}

Tensor Tensor::copy() const {
  Tensor t = uninitialized(shape_);
  float* out = t.mutable_data();
  const Index inner = rank() == 0 ? 1 : shape_[rank() - 1];
  const Index step = rank() == 0 ? 1 : stride(-1);
  if (size() == 0) return t;
  // Numbers that lie one behind the other are decoded together: first along what is stored as a row, then turned.
  if (kind_ != Stored::f32 && rank() == 2 && step != 1 && stride(0) == 1)
    return transpose(0, 1).copy().transpose(0, 1).copy();
  for_each_row(shape_, strides_.data(), [&](Index offset) {
    if (step == 1)
      decode(offset, inner, out);
    else
      for (Index i = 0; i < inner; ++i) out[i] = item(offset + i * step);
    out += inner;
  });
  return t;
}

Tensor Tensor::rows(std::span<const Index> which) const {
  const Index width = select(0, 0).size();
  const Stored kind = stored::begins_at(kind_, first_) && stored::begins_at(kind_, width) ? kind_ : Stored::f32;
  const Tensor from = contiguous() && kind == kind_ ? *this : copy();
  const auto bytes = static_cast<std::size_t>(stored::bytes_of(from.kind_, width));
  Shape shape = shape_;
  shape[0] = static_cast<Index>(which.size());
  Tensor out = uninitialized(from.kind_, shape);
  std::byte* to = out.mutable_stored();
  for (const Index row : which) {
    std::memcpy(to, from.stored() + stored::bytes_of(from.kind_, from.first_ + row * width), bytes);
    to += bytes;
  }
  return out;
}

}  // namespace headscope
