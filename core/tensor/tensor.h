#pragma once
// A float32 array of rank 0…4 with shape and strides over shared, reference-counted storage.
// Copying a Tensor copies a pointer. After an op has returned a tensor (or the RowQueue that it was put off to has
// run) nobody writes to it again, which is why recording an activation costs nothing but memory. Views (slice, select,
// transpose) share storage. Thread rule: const access from any thread; mutable_data() only by the one who just made the
// tensor.

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace headscope {

using Index = std::int64_t;

/// Extents of a tensor, outermost first.
class Shape {
 public:
  static constexpr int max_rank = 4;
  Shape() = default;
  Shape(std::initializer_list<Index> extents);
  explicit Shape(std::span<const Index> extents);
  int rank() const { return rank_; }
  Index operator[](int axis) const { return extents_[static_cast<std::size_t>(axis)]; }
  Index& operator[](int axis) { return extents_[static_cast<std::size_t>(axis)]; }
  Index size() const;  ///< product of extents; 1 for rank 0
  bool operator==(const Shape&) const = default;
  std::string str() const;  ///< "[12, 64, 64]"

 private:
  std::array<Index, max_rank> extents_{};
  int rank_ = 0;
};

class Tensor {
 public:
  Tensor() = default;                        ///< empty: no storage, defined() == false
  static Tensor uninitialized(Shape shape);  ///< 64-byte aligned
  static Tensor zeros(Shape shape);
  static Tensor full(Shape shape, float value);
  static Tensor from(Shape shape, std::span<const float> values);
  /// Points at memory kept alive by `owner` (a recycled buffer). Contiguous.
  static Tensor borrow(const float* data, Shape shape, std::shared_ptr<const void> owner);

  bool defined() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  Index dim(int axis) const { return shape_[axis < 0 ? axis + rank() : axis]; }
  Index stride(int axis) const { return strides_[static_cast<std::size_t>(axis < 0 ? axis + rank() : axis)]; }
  Index size() const { return shape_.size(); }
  std::size_t bytes() const { return static_cast<std::size_t>(size()) * sizeof(float); }
  bool contiguous() const;

  const float* data() const { return data_; }
  float* mutable_data() { return const_cast<float*>(data_); }
  std::span<const float> values() const;  ///< REQUIRES contiguous()
  std::span<float> mutable_values();      ///< REQUIRES contiguous()

  /// Which memory this is a view of: views (slice, select, transpose, reshape without a copy) have that of what they
  /// are views of. `first` and `size` are the floats that the tensor had when it was made.
  struct Storage {
    const float* first = nullptr;
    Index size = 0;
    bool operator==(const Storage&) const = default;
  };
  Storage storage() const { return storage_; }
  /// The same view of another storage of the same size, `flat` (contiguous): what a gradient of a view is.
  Tensor same_view_of(const Tensor& flat) const;

  float at(Index i) const { return data_[i * strides_[0]]; }
  float at(Index i, Index j) const { return data_[i * strides_[0] + j * strides_[1]]; }
  float at(Index i, Index j, Index k) const { return data_[i * strides_[0] + j * strides_[1] + k * strides_[2]]; }
  float& ref(Index i) { return const_cast<float&>(data_[i * strides_[0]]); }
  float& ref(Index i, Index j) { return const_cast<float&>(data_[i * strides_[0] + j * strides_[1]]); }
  float& ref(Index i, Index j, Index k) {
    return const_cast<float&>(data_[i * strides_[0] + j * strides_[1] + k * strides_[2]]);
  }

  Tensor slice(int axis, Index begin, Index end) const;  ///< view of [begin, end) along axis
  Tensor select(int axis, Index index) const;            ///< view with that axis removed
  Tensor transpose(int a, int b) const;                  ///< view with two axes exchanged
  Tensor reshape(Shape shape) const;                     ///< view where the strides allow it, else a copy
  /// The view of both where b lies right behind a along `axis` in one storage (two slices of one tensor); else
  /// undefined.
  static Tensor joined(const Tensor& a, const Tensor& b, int axis);
  Tensor copy() const;  ///< fresh contiguous storage
  Tensor packed() const { return contiguous() ? *this : copy(); }

 private:
  std::shared_ptr<const void> owner_;
  const float* data_ = nullptr;
  Storage storage_;
  Shape shape_;
  std::array<Index, Shape::max_rank> strides_{};
};

}  // namespace headscope
