#pragma once
// Keys (rotated) and values of the tokens already read, per layer, so that the next token costs one row instead of a
// whole pass (Pope et al., Efficiently Scaling Transformer Inference, 2022). One per running text; not thread-safe.
// Memory: 2 · layers · capacity · kv_heads · d_head · 4 bytes, allocated at once.

#include <vector>

#include "core/tensor/tensor.h"
#include "core/trace/capture.h"

namespace headscope {

class KvCache {
 public:
  KvCache(const ModelDims& dims, int capacity);
  int length() const { return length_; }
  int capacity() const { return capacity_; }
  std::size_t bytes() const;
  /// Forgets everything after the first `length` tokens. REQUIRES 0 ≤ length ≤ length().
  void truncate(int length);

  /// Puts k and v (token, kv_head, d_head) of one layer behind the tokens that are there, and returns all keys and
  /// values, (length() + tokens, kv_head, d_head). REQUIRES length() + tokens ≤ capacity(). Length grows only by
  /// advance().
  struct Both {
    Tensor k, v;
  };
  Both append(int layer, const Tensor& k, const Tensor& v);
  void advance(int tokens);

 private:
  std::vector<Tensor> k_, v_;  // per layer (capacity, kv_head, d_head)
  int length_ = 0, capacity_ = 0;
};

}  // namespace headscope
