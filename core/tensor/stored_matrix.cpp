#include "core/tensor/stored_matrix.h"

#include <algorithm>
#include <cassert>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/tensor/block_product.h"
#include "core/tensor/over_rows.h"
#include "core/tensor/panels.h"

namespace headscope {
namespace {

// Up to so many rows, decoding numbers where they are multiplied costs less than packing them.
constexpr Index few_rows = 8;
// A task takes at least so many rows, or it would decode more than it multiplies.
constexpr Index least_rows = 64;

class StoredMatrix final : public PackedMatrix {
 public:
  explicit StoredMatrix(std::span<const Tensor> parts) : parts_(parts.begin(), parts.end()) {
    for (const Tensor& part : parts_) {
      begin_.push_back(out_);
      out_ += part.dim(1);
    }
  }

  std::size_t bytes() const override {
    std::size_t sum = 0;
    for (const Tensor& part : parts_) sum += part.bytes();
    return sum;
  }
  Index in() const override { return parts_[0].dim(0); }
  Index out() const override { return out_; }

  void multiply(const Tensor& x, const float* bias, Tensor& out, ThreadPool& pool) const override {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      Tensor into = out.slice(1, begin_[i], begin_[i] + parts_[i].dim(1));
      const float* const own = bias ? bias + begin_[i] : nullptr;
      if (x.dim(0) <= few_rows)
        few(parts_[i], x, own, into, pool);
      else
        many(parts_[i], x, own, into, pool);
    }
  }

 private:
  static void few(const Tensor& w, const Tensor& x, const float* bias, Tensor& out, ThreadPool& pool) {
    const Index rows = x.dim(0), in = w.dim(0), columns = w.dim(1);
    const stored::Lines lines = *w.lines();
    // Eight columns side by side are read at once, or eight registers of them.
    const Index wanted = std::clamp<Index>(rows * in * columns / product_task_grain, 1, 4 * pool.threads()),
                beside = lines.rows ? 128 : 8, step = ((columns + wanted - 1) / wanted + beside - 1) / beside * beside;
    pool.parallel(static_cast<int>((columns + step - 1) / step), [&](int task, int) {
      const Index begin = task * step;
      stored::multiply(x.data(), x.stride(0), rows, in, lines.from_column(begin), std::min(step, columns - begin),
                       bias ? bias + begin : nullptr, out.mutable_data() + begin, out.stride(0));
    });
  }

  static void many(const Tensor& w, const Tensor& x, const float* bias, Tensor& out, ThreadPool& pool) {
    const Index rows = x.dim(0), columns = w.dim(1), width = panels::width();
    // Columns first: a task that has all rows decodes its part of the matrix once.
    const Index wanted = 4 * pool.threads();
    const Index step = std::clamp((columns / wanted + width - 1) / width * width, width, block_columns);
    const Index across = (columns + step - 1) / step;
    const Index down = std::clamp<Index>(rows / least_rows, 1, std::max<Index>(wanted / across, 1));
    const Index tall = ((rows + down - 1) / down + strip_rows - 1) / strip_rows * strip_rows;
    std::vector<Tensor> scratch(static_cast<std::size_t>(pool.threads()));
    pool.parallel(static_cast<int>(across * ((rows + tall - 1) / tall)), [&](int task, int thread) {
      Tensor& panel = scratch[static_cast<std::size_t>(thread)];
      if (!panel.defined()) panel = Tensor::uninitialized({panels::packed_size(block_depth, step)});
      const Index row = task / across * tall, column = task % across * step;
      block(w.slice(1, column, std::min(columns, column + step)), x.slice(0, row, std::min(rows, row + tall)),
            bias ? bias + column : nullptr, panel, out.mutable_data() + row * out.stride(0) + column, out.stride(0));
    });
  }

  /// Some columns of the product of some rows, by one thread.
  static void block(const Tensor& w, const Tensor& x, const float* bias, Tensor& panel, float* out, Index out_stride) {
    const Index in = w.dim(0);
    for (Index k = 0; k < in; k += block_depth) {
      const Index depth = std::min(block_depth, in - k);
      panels::pack(w.slice(0, k, k + depth), panel.mutable_data());
      multiply_block(x, k, depth, panel.data(), w.dim(1), bias, out, out_stride);
    }
  }

  std::vector<Tensor> parts_;
  std::vector<Index> begin_;  // columns before each
  Index out_ = 0;
};

}  // namespace

bool multiplied_as_stored(const Tensor& matrix) {
  return matrix.rank() == 2 && matrix.lines() && stored::begins_at(matrix.kind(), matrix.dim(0));
}

std::shared_ptr<const PackedMatrix> pack_stored(std::span<const Tensor> parts) {
  assert(std::ranges::all_of(parts, multiplied_as_stored));
  return std::make_shared<StoredMatrix>(parts);
}

}  // namespace headscope
