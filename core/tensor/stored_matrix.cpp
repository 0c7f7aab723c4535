#include "core/tensor/stored_matrix.h"

#include <algorithm>
#include <cassert>
#include <memory>
#include <vector>

#include "core/base/nth.h"
#include "core/base/thread_pool.h"
#include "core/tensor/block_product.h"
#include "core/tensor/panels.h"

namespace headscope {
namespace {

// So few rows wait for memory, which gives up long runs soonest: of the columns of a panel so much is asked for at a
// time, or tasks have so many columns where rows lie one behind the other.
constexpr Index few_rows = 64, long_depth = 2048, long_columns = 512;
// Each task decodes anew; its rows of x and of the result still stay in the second-level cache beside a block.
constexpr Index most_rows = 512;
// Rows that lie one behind the other are decoded so many at a time, the chunks that panels::multiply adds up, with so
// many columns that they stay in the first-level cache.
constexpr Index run_depth = panels::chunk, run_columns = 256;

class StoredMatrix final : public PackedMatrix {
 public:
  explicit StoredMatrix(std::span<const Tensor> parts) : parts_(parts.begin(), parts.end()) {
    for (const Tensor& part : parts_) {
      begin_.push_back(out_);
      columns_.push_back(part.dim(1));
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
    const std::vector<BlockTask> tasks =
        block_tasks(x.dim(0), in(), columns_, x.dim(0) <= few_rows ? long_columns : block_columns, most_rows, pool);
    pool.parallel(static_cast<int>(tasks.size()), [&](int number, int) {
      const BlockTask& task = nth(tasks, number);
      const Tensor source = x.slice(0, task.row, task.row + task.rows);
      const stored::Lines lines = nth(parts_, task.part).lines()->from(0, task.column);
      const Index column = nth(begin_, task.part) + task.column, after = nth(columns_, task.part) - task.column;
      const float* const own = bias ? bias + column : nullptr;
      float* const to = out.mutable_data() + task.row * out.stride(0) + column;
      const Index done = x.dim(0) == 1 ? one_row(source, lines, task.columns, own, to) : 0;
      if (done == task.columns) return;
      const Index columns = task.columns - done;
      const float* const rest = own ? own + done : nullptr;
      if (lines.rows && x.dim(0) <= few_rows)
        by_runs(source, lines.from(0, done), columns, rest, to + done, out.stride(0));
      else
        by_blocks(source, lines.from(0, done), columns, std::min(2 * columns, after - done), rest, to + done,
                  out.stride(0));
    });
  }

 private:
  /// One row, whose numbers are decoded in registers. Returns of how many columns, from the first on.
  static Index one_row(const Tensor& x, const stored::Lines& w, Index columns, const float* bias, float* out) {
    const Index in = x.dim(1), whole = stored::whole_columns(w.kind, columns);
    if (whole == 0 || (!w.rows && in % panels::chunk != 0)) return 0;
    const auto bytes = [&](Index numbers) { return stored::bytes_of(w.kind, numbers); };
    if (!w.rows) {
      for (Index k = 0; k < in; k += long_depth) {
        const Index down = std::min(long_depth, in - k);
        const bool last = k + down == in;  // then the next columns come, of another task
        const Index group = bytes(stored::columns_beside(w.kind) * w.stride);
        stored::multiply_columns(w.from(k, 0), x.data() + k, down, whole, block_depth, k > 0 ? out : bias, out,
                                 last ? group - bytes(k) : bytes(down) - bytes(whole * w.stride) + group);
      }
      return whole;
    }
    float sums[long_columns];
    for (Index k = 0; k < in; k += panels::chunk) {
      const Index depth = std::min(panels::chunk, in - k), next = k + depth;
      stored::multiply_chunk(w.from(k, 0), x.data() + k, depth, whole, k % block_depth > 0, sums,
                             next < in ? bytes(panels::chunk * w.stride) : bytes(columns) - bytes(k * w.stride));
      if (next % block_depth > 0 && next < in) continue;
      const float* const added = next > block_depth ? out : bias;
      for (Index j = 0; j < whole; ++j) out[j] = sums[j] + (added ? added[j] : 0.0f);
    }
    return whole;
  }

  /// The bytes of (depth, columns) numbers.
  static Ahead ahead(const stored::Lines& from, Index depth, Index columns) {
    const Index runs = from.rows ? depth : columns, length = from.rows ? columns : depth;
    return {from.data + stored::bytes_of(from.kind, from.first), runs, stored::bytes_of(from.kind, length),
            stored::bytes_of(from.kind, from.stride)};
  }

  static void decode(const stored::Lines& from, Index depth, Index columns, float* panel, const Ahead& ahead) {
    const Index width = panels::width();
    if (columns < width) std::fill(panel, panel + depth * width, 0.0f);
    stored::unpack(from, depth, columns, panel, width, ahead);
  }

  /// Some columns, by one thread: for few rows a panel at a time, which stays in the first-level cache, for many a
  /// block. What is read next are those up to column `all`.
  static void by_blocks(const Tensor& x, const stored::Lines& w, Index columns, Index all, const float* bias,
                        float* out, Index out_stride) {
    const Index in = x.dim(1), rows = x.dim(0), width = panels::width();
    const bool few = rows <= few_rows && !w.rows;
    const Index deep = few ? long_depth : block_depth, wide = few ? width : block_columns;
    alignas(64) float block[static_cast<std::size_t>(block_depth * block_columns)];
    for (Index column = 0; column < columns; column += wide)
      for (Index k = 0; k < in; k += deep) {
        const Index across = std::min(wide, columns - column), down = std::min(deep, in - k);
        const bool last = k + deep >= in;  // then the next columns come
        const Index next_k = last ? 0 : k + deep, next = last ? column + across : column;
        const Ahead coming =
            next < all ? ahead(w.from(next_k, next), std::min(deep, in - next_k), std::min(across, all - next))
                       : Ahead{};
        Index step = 0;
        const Index steps = (down + block_depth - 1) / block_depth;
        for (Index i = k; i < k + down; i += block_depth, ++step) {
          const Index depth = std::min(block_depth, k + down - i);
          // Asked for in both, in as many pieces as they take time.
          const Ahead own = coming.part(step, step + 1, steps);
          for (Index j = 0; j < across; j += width)
            decode(w.from(i, column + j), depth, std::min(width, across - j), block + j * depth,
                   j == 0 ? own.share(0, 1, rows + 1) : Ahead{});
          multiply_block(x, i, depth, block, across, bias ? bias + column : nullptr, out + column, out_stride,
                         own.share(1, rows + 1, rows + 1));
        }
      }
  }

  /// The same where rows lie one behind the other, in the order in which they do. An element's sum is that of
  /// by_blocks(): the runs of a block are added up before they are added to those before.
  static void by_runs(const Tensor& x, const stored::Lines& w, Index columns, const float* bias, float* out,
                      Index out_stride) {
    const Index in = x.dim(1), rows = x.dim(0), width = panels::width();
    alignas(64) float run[static_cast<std::size_t>(run_depth * run_columns)];
    const auto sums = std::make_unique_for_overwrite<float[]>(static_cast<std::size_t>(rows * columns));
    for (Index k = 0; k < in; k += run_depth) {
      const Index depth = std::min(run_depth, in - k), next = k + depth;
      const Ahead coming = next < in ? ahead(w.from(next, 0), std::min(run_depth, in - next), columns) : Ahead{};
      for (Index j = 0; j < columns; j += run_columns) {
        const Index beside = std::min(run_columns, columns - j);
        for (Index i = 0; i < beside; i += width)
          decode(w.from(k, j + i), depth, std::min(width, beside - i), run + i * depth, {});
        float* const sum = sums.get() + j;
        panels::multiply({x.data() + k, x.stride(0)}, rows, depth, run, depth * width, beside, 1.0f,
                         k % block_depth > 0 ? panels::Addend{sum, columns} : panels::Addend{}, sum, columns,
                         coming.part(j, j + beside, columns));
      }
      if (next % block_depth > 0 && next < in) continue;
      for (Index r = 0; r < rows; ++r, out += out_stride) {
        const float* const added = next > block_depth ? out : bias;
        for (Index j = 0; j < columns; ++j) out[j] = sums[r * columns + j] + (added ? added[j] : 0.0f);
      }
      out -= rows * out_stride;
    }
  }

  std::vector<Tensor> parts_;
  std::vector<Index> begin_, columns_;  // columns before each, and its own
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
