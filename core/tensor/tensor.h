#pragma once
// An array of float32 numbers of rank 0…4 with shape and strides over shared, reference-counted storage. Weights may
// lie there as their file has them (core/tensor/stored.h): then at() and whatever copies decode, products read them as
// they are, and data(), values() and ref() must not be asked for. Copying a Tensor copies a pointer. After an op has
// returned a tensor (or the RowQueue that it was put off to has run) nobody writes to it again, which is why recording
// an activation costs nothing but memory. Views (slice, select, transpose) share storage. What another device made
// (core/tensor/remote.h) comes here when it is first looked at. Thread rule: const access from any thread;
// mutable_data() only by the one who just made the tensor.

#include <array>
#include <cassert>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/tensor/remote.h"
#include "core/tensor/stored.h"

namespace headscope {

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
  static Tensor uninitialized(Stored kind, Shape shape);
  static Tensor zeros(Shape shape);
  static Tensor full(Shape shape, float value);
  static Tensor from(Shape shape, std::span<const float> values);
  /// Points at memory kept alive by `owner` (a recycled buffer). Contiguous.
  static Tensor borrow(const float* data, Shape shape, std::shared_ptr<const void> owner);
  /// The same of numbers as they are stored. REQUIRES rows of whole blocks.
  static Tensor borrow(Stored kind, const std::byte* data, Shape shape, std::shared_ptr<const void> owner);
  /// Numbers of another device, whose place here is remote->mirror(). Contiguous, f32.
  static Tensor of(std::shared_ptr<Remote> remote, Shape shape);
  /// The same tensor, whose numbers a device has too: `remote` has data() as its mirror and keeps this one alive.
  Tensor also_on(std::shared_ptr<Remote> remote) const;
  /// The device that the numbers lie on too, or null. `at_device`: how many floats behind its mirror this view begins.
  Remote* remote() const { return remote_; }
  Index at_device() const { return data_ - remote_->mirror(); }

  bool defined() const { return data_ != nullptr; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  Index dim(int axis) const { return shape_[axis < 0 ? axis + rank() : axis]; }
  Index stride(int axis) const { return strides_[static_cast<std::size_t>(axis < 0 ? axis + rank() : axis)]; }
  Index size() const { return shape_.size(); }
  std::size_t bytes() const;  ///< as they are stored
  bool contiguous() const;

  Stored kind() const { return kind_; }
  /// Where numbers that are not f32 lie: element (i, j, …) is number first() + Σ index · stride of those at stored().
  const std::byte* stored() const {
    arrive();
    return reinterpret_cast<const std::byte*>(data_);
  }
  std::byte* mutable_stored() { return const_cast<std::byte*>(stored()); }
  Index first() const { return first_; }
  /// A matrix of such numbers as the right factor of a product reads it; nothing where they lie in another way.
  std::optional<stored::Lines> lines() const;

  const float* data() const {  ///< REQUIRES kind() f32, as all that follow to at()
    assert(kind_ == Stored::f32);
    arrive();
    return data_;
  }
  float* mutable_data() {
    assert(kind_ == Stored::f32);
    return writable();
  }
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

  float at(Index i) const { return item(i * strides_[0]); }
  float at(Index i, Index j) const { return item(i * strides_[0] + j * strides_[1]); }
  float at(Index i, Index j, Index k) const { return item(i * strides_[0] + j * strides_[1] + k * strides_[2]); }
  float& ref(Index i) { return writable()[i * strides_[0]]; }
  float& ref(Index i, Index j) { return writable()[i * strides_[0] + j * strides_[1]]; }
  float& ref(Index i, Index j, Index k) { return writable()[i * strides_[0] + j * strides_[1] + k * strides_[2]]; }

  Tensor slice(int axis, Index begin, Index end) const;  ///< view of [begin, end) along axis
  Tensor select(int axis, Index index) const;            ///< view with that axis removed
  Tensor transpose(int a, int b) const;                  ///< view with two axes exchanged
  Tensor reshape(Shape shape) const;                     ///< view where the strides allow it, else a copy
  /// The view of both where b lies right behind a along `axis` in one storage (two slices of one tensor); else
  /// undefined.
  static Tensor joined(const Tensor& a, const Tensor& b, int axis);
  Tensor copy() const;  ///< fresh contiguous storage, f32
  Tensor packed() const { return contiguous() && kind_ == Stored::f32 ? *this : copy(); }  ///< f32
  Tensor floats() const { return kind_ == Stored::f32 ? *this : copy(); }                  ///< f32, any strides
  /// Rows (along the first axis) `which` one behind the other in fresh storage, of this kind where they are whole
  /// blocks, else f32.
  Tensor rows(std::span<const Index> which) const;

 private:
  void arrive() const {
    if (remote_) [[unlikely]]
      remote_->arrive();
  }
  float* writable() {
    if (remote_) [[unlikely]]
      remote_->arrive_to_be_written();
    return const_cast<float*>(data_);
  }
  float item(Index at) const {
    arrive();
    return kind_ == Stored::f32 ? data_[at] : decoded(at);
  }
  [[gnu::pure, gnu::cold]] float decoded(Index at) const;
  /// Numbers one behind the other from there on.
  void decode(Index at, Index count, float* to) const;
  void lay(const Shape& shape);
  /// The view begins so many numbers later.
  void advance(Index numbers);

  std::shared_ptr<const void> owner_;
  Remote* remote_ = nullptr;     // kept alive by owner_
  const float* data_ = nullptr;  // f32: where the view begins; else where its storage does
  Storage storage_;
  Index first_ = 0;  // number at data_ that the view begins at, where it is not f32
  Stored kind_ = Stored::f32;
  Shape shape_;
  std::array<Index, Shape::max_rank> strides_{};
};

}  // namespace headscope
