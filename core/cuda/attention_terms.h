#pragma once
// The rules of a layer's heads as the kernels of attention read them. Private to core/cuda.

#include <memory>
#include <vector>

#include "core/cuda/cuda_attention.h"

namespace headscope::cuda {

struct Attention::Terms {
  /// Texts one behind the other, each with keys of its own: where each begins, and where all end.
  struct Texts {
    explicit Texts(const AttentionInput& in);
    std::size_t count() const { return begin.size() - 1; }
    bool operator==(const Texts&) const = default;
    std::vector<Index> begin, key_begin;
    Index offset;
  };

  Terms(const AttentionInput& in, std::span<const Head> own) : of(own.begin(), own.end()), texts(in) {}
  std::vector<Head> of;  // keeps the rules
  Texts texts;
  bool simple = false;  // all of them
  std::shared_ptr<float> heads, ranges, rows, biases;
  std::vector<int2> ranges_here;  // by rule and query: `ranges` before it was sent

  /// What the way back needs besides: which queries may see a key, [x, y) by rule and key, and no others; and by query
  /// the key that its text begins with.
  struct SeenBy {
    SeenBy(const Terms& terms, Device& device);
    std::shared_ptr<float> queries, first_key;
  };
  mutable std::shared_ptr<const SeenBy> seen_by;  // once somebody asked

  bool same(const AttentionInput& in, std::span<const Head> heads_) const;
};

}  // namespace headscope::cuda
