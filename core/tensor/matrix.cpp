#include "core/tensor/matrix.h"

#include <algorithm>
#include <cassert>
#include <stdexcept>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/tensor/over_rows.h"
#include "core/tensor/panels.h"
#include "core/tensor/stored_matrix.h"

namespace headscope {
namespace {

// Rows of a task: enough to pay for streaming the weights past them, few enough to stay in cache.
constexpr Index most_tile_rows = 64;

class PanelMatrix final : public PackedMatrix {
 public:
  explicit PanelMatrix(std::span<const Tensor> parts) : in_(parts[0].dim(0)) {
    for (const Tensor& part : parts) out_ += part.dim(1);
    Tensor whole = Tensor::uninitialized({in_, out_});
    Index column = 0;
    for (const Tensor& each : parts) {
      const Tensor part = each.floats();
      for (Index i = 0; i < in_; ++i)
        for (Index j = 0; j < part.dim(1); ++j) whole.ref(i, column + j) = part.at(i, j);
      column += part.dim(1);
    }
    panels_ = Tensor::uninitialized({panels::packed_size(in_, out_)});
    panels::pack(whole, panels_.mutable_data());
  }

  std::size_t bytes() const override { return panels_.bytes(); }
  Index in() const override { return in_; }
  Index out() const override { return out_; }

  bool by_rows() const override { return true; }
  void multiply_rows(const Tensor& x, const float* bias, Tensor& out, Index begin, Index end) const override {
    panels::multiply(x.data() + begin * x.stride(0), x.stride(0), end - begin, in_, panels_.data(),
                     panels::width() * in_, out_, 1.0f, bias, out.mutable_data() + begin * out.stride(0),
                     out.stride(0));
  }

  void multiply(const Tensor& x, const float* bias, Tensor& out, ThreadPool& pool) const override {
    const Index rows = x.dim(0), panel = panels::width(), panel_count = panels::padded(out_) / panel;
    // As many tasks as the work is worth, at most a few per thread. Rows are split among the threads first, so that
    // each goes on with the rows that the op before left in its cache; then the columns, for threads that are held up.
    const Index wanted = std::clamp<Index>(rows * in_ * out_ / product_task_grain, 1, 4 * pool.threads());
    const Index shared = std::min<Index>(wanted, pool.threads());
    const Index tile_rows = std::min(most_tile_rows, ((rows + shared - 1) / shared + 7) / 8 * 8);
    const Index across = std::clamp<Index>(wanted * std::min(tile_rows, rows) / rows, 1, panel_count);
    const Index tile_panels = (panel_count + across - 1) / across;
    const Index row_tiles = (rows + tile_rows - 1) / tile_rows,
                panel_tiles = (panel_count + tile_panels - 1) / tile_panels;
    pool.parallel(static_cast<int>(row_tiles * panel_tiles), [&](int task, int) {
      const Index r = task / panel_tiles * tile_rows, p = task % panel_tiles * tile_panels, column = p * panel;
      panels::multiply(x.data() + r * x.stride(0), x.stride(0), std::min(tile_rows, rows - r), in_,
                       panels_.data() + p * panel * in_, panel * in_, std::min(tile_panels * panel, out_ - column),
                       1.0f, bias ? bias + column : nullptr, out.mutable_data() + r * out.stride(0) + column,
                       out.stride(0));
    });
  }

 private:
  Index in_, out_ = 0;
  Tensor panels_;
};

}  // namespace

void PackedMatrix::multiply_rows(const Tensor&, const float*, Tensor&, Index, Index) const {
  throw std::logic_error("multiply_rows of a matrix that is not multiplied by rows");
}

std::shared_ptr<const PackedMatrix> PackedMatrix::pack(std::span<const Tensor> parts, ThreadPool& pool,
                                                       std::size_t small) {
  assert(!parts.empty());
  Index out = 0;
  for (const Tensor& part : parts) {
    assert(part.rank() == 2 && part.dim(0) == parts[0].dim(0));
    out += part.dim(1);
  }
  if (static_cast<std::size_t>(parts[0].dim(0) * out) * sizeof(float) <= small)
    return std::make_shared<PanelMatrix>(parts);
  if (std::ranges::all_of(parts, multiplied_as_stored)) return pack_stored(parts);
  std::vector<Tensor> floats;
  for (const Tensor& part : parts) floats.push_back(part.floats());
  return pack_large(floats, pool);
}

}  // namespace headscope
