// Large matrix products by oneDNN. Debian's oneDNN brings OpenMP's thread pool; two pools on the same cores cost
// several times what they give, so oneDNN runs single-threaded here, one tile at a time, on the threads of our own
// pool.

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstring>
#include <dnnl.hpp>
#include <map>
#include <mutex>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/tensor/matrix.h"

namespace headscope {
namespace {

using F32 = dnnl::memory::data_type;
using Tag = dnnl::memory::format_tag;

/// A product (rows, in) × (in, columns) compiled for one thread.
struct Product {
  dnnl::matmul primitive;
  dnnl::memory::desc source, weights, result, scratch;
};

Product compile(const dnnl::engine& engine, Index rows, Index in, Index columns, const dnnl::memory::desc* weights) {
  const int threads = omp_get_max_threads();
  omp_set_num_threads(1);  // oneDNN plans for the number of OpenMP threads of the thread that asks
  const dnnl::memory::desc source({rows, in}, F32::f32, Tag::ab), result({rows, columns}, F32::f32, Tag::ab);
  const dnnl::memory::desc any({in, columns}, F32::f32, Tag::any);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);  // several threads run one primitive at once
  const dnnl::matmul::primitive_desc plan(dnnl::matmul::desc(source, weights ? *weights : any, result), attributes,
                                          engine);
  Product product{dnnl::matmul(plan), plan.src_desc(), plan.weights_desc(), plan.dst_desc(), plan.scratchpad_desc()};
  omp_set_num_threads(threads);
  return product;
}

// A tile's result (128 × 384 floats, 192 KB) stays in the second-level cache until bias is added and it is written out.
constexpr Index tile_rows = 128;
constexpr Index wide_tile = 384, narrow_tile = 192;

class OneDnnMatrix final : public PackedMatrix {
 public:
  OneDnnMatrix(std::span<const Tensor> parts, ThreadPool& pool)
      : engine_(dnnl::engine::kind::cpu, 0), in_(parts[0].dim(0)) {
    std::vector<Index> begin{0};
    for (const Tensor& part : parts) begin.push_back(begin.back() + part.dim(1));
    out_ = begin.back();
    tile_columns_ = out_ <= 2 * wide_tile ? narrow_tile : wide_tile;
    const int across = static_cast<int>((out_ + tile_columns_ - 1) / tile_columns_);
    for (const Index columns : {tile_columns_, last_columns()})
      if (!layout_.contains(columns))
        layout_.emplace(columns, compile(engine_, tile_rows, in_, columns, nullptr).weights);
    tiles_.resize(static_cast<std::size_t>(across));
    pool.parallel(across, [&](int tile, int) {
      const Index first = tile * tile_columns_, columns = std::min(tile_columns_, out_ - first);
      Tensor plain = Tensor::uninitialized({in_, columns});
      for (std::size_t p = 0; p + 1 < begin.size(); ++p) {  // the parts that reach into this tile
        const Index from = std::max(first, begin[p]), to = std::min(first + columns, begin[p + 1]);
        if (from >= to) continue;
        const Tensor source = parts[p].slice(1, from - begin[p], to - begin[p]);
        if (source.stride(1) == 1) {
          for (Index i = 0; i < in_; ++i)
            std::memcpy(&plain.ref(i, from - first), source.data() + i * source.stride(0),
                        static_cast<std::size_t>(to - from) * sizeof(float));
        } else {
          for (Index j = 0; j < to - from; ++j)
            for (Index i = 0; i < in_; ++i) plain.ref(i, from - first + j) = source.at(i, j);
        }
      }
      const int threads = omp_get_max_threads();
      omp_set_num_threads(1);
      const dnnl::memory::desc& layout = layout_.at(columns);
      Tensor storage =
          Tensor::uninitialized({static_cast<Index>((layout.get_size() + sizeof(float) - 1) / sizeof(float))});
      dnnl::memory from({{in_, columns}, F32::f32, Tag::ab}, engine_, plain.mutable_data());
      dnnl::memory to(layout, engine_, storage.mutable_data());
      dnnl::stream stream(engine_);
      dnnl::reorder(from, to).execute(stream, from, to);
      stream.wait();
      omp_set_num_threads(threads);
      tiles_[static_cast<std::size_t>(tile)] = storage;
    });
  }

  Index in() const override { return in_; }
  Index out() const override { return out_; }

  void multiply(const Tensor& x, const float* bias, Tensor& out, ThreadPool& pool) const override {
    const Index rows = x.dim(0);
    const int across = static_cast<int>(tiles_.size()), down = static_cast<int>((rows + tile_rows - 1) / tile_rows);
    const Tensor source = x.packed();
    // Compiled before the parallel part: [rows of a full tile, of the last] × [columns of a full tile, of the last].
    const Index last_rows = rows - (down - 1) * tile_rows;
    std::map<std::pair<Index, Index>, const Product*> products;
    for (const Index r : {std::min(rows, tile_rows), last_rows})
      for (const Index c : {tile_columns_, last_columns()}) products[{r, c}] = &product(r, c);
    struct Scratch {
      Tensor result, work;
    };
    std::vector<Scratch> scratch(static_cast<std::size_t>(pool.threads()));
    // Neighbouring tasks share a block of weights, the larger operand.
    pool.parallel(across * down, [&](int task, int thread) {
      const Index column = task / down * tile_columns_, columns = std::min(tile_columns_, out_ - column);
      const Index row = task % down * tile_rows, count = std::min(tile_rows, rows - row);
      const Product& p = *products.at({count, columns});
      Scratch& s = scratch[static_cast<std::size_t>(thread)];
      if (!s.result.defined()) s.result = Tensor::uninitialized({tile_rows, tile_columns_});
      const Index work = static_cast<Index>(p.scratch.get_size() / sizeof(float)) + 1;
      if (!s.work.defined() || s.work.size() < work) s.work = Tensor::uninitialized({work});
      dnnl::stream stream(engine_);
      // oneDNN's handles are not const-correct; sources and weights are only read.
      const auto memory = [&](const dnnl::memory::desc& desc, const float* data) {
        return dnnl::memory(desc, engine_, const_cast<float*>(data));
      };
      p.primitive.execute(stream,
                          {{DNNL_ARG_SRC, memory(p.source, source.data() + row * in_)},
                           {DNNL_ARG_WEIGHTS, memory(p.weights, tiles_[static_cast<std::size_t>(task / down)].data())},
                           {DNNL_ARG_DST, memory(p.result, s.result.data())},
                           {DNNL_ARG_SCRATCHPAD, memory(p.scratch, s.work.data())}});
      stream.wait();
      for (Index i = 0; i < count; ++i) {
        const float* const from = s.result.data() + i * columns;
        float* const to = out.mutable_data() + (row + i) * out.stride(0) + column;
        if (bias)
          for (Index j = 0; j < columns; ++j) to[j] = from[j] + bias[column + j];
        else
          std::memcpy(to, from, static_cast<std::size_t>(columns) * sizeof(float));
      }
    });
  }

 private:
  Index last_columns() const { return out_ - (out_ - 1) / tile_columns_ * tile_columns_; }

  const Product& product(Index rows, Index columns) const {
    const std::lock_guard lock(compiling_);
    const auto found = products_.find({rows, columns});
    if (found != products_.end()) return found->second;
    return products_.emplace(std::pair(rows, columns), compile(engine_, rows, in_, columns, &layout_.at(columns)))
        .first->second;
  }

  dnnl::engine engine_;
  Index in_, out_ = 0, tile_columns_ = 0;
  std::map<Index, dnnl::memory::desc> layout_;  // by columns of the tile
  std::vector<Tensor> tiles_;                   // in oneDNN's layout, one block of columns each
  mutable std::mutex compiling_;
  mutable std::map<std::pair<Index, Index>, Product> products_;
};

}  // namespace

std::shared_ptr<const PackedMatrix> pack_large(std::span<const Tensor> parts, ThreadPool& pool) {
  return std::make_shared<OneDnnMatrix>(parts, pool);
}

const char* matrix_library() {
  static const std::string name =
      fmt::format("oneDNN {}.{}.{}", dnnl::version()->major, dnnl::version()->minor, dnnl::version()->patch);
  return name.c_str();
}

}  // namespace headscope
