#pragma once
// Keys (rotated) and values of the tokens already read, per layer, so that the next token costs one row instead of a
// whole pass (Pope et al., Efficiently Scaling Transformer Inference, 2022). One per running text; not thread-safe.
// Memory: layers · capacity · kv_heads · (d_head + d_value) · 4 bytes, allocated at once. Of a model with latents too,
// whose own cache could be smaller: what an edit made of a key or a value has to stay.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/model/config.h"
#include "core/tensor/tensor.h"
#include "core/trace/capture.h"

namespace headscope {

/// What one token's keys and values take in a layer, and how that comes about.
struct CachedNumbers {
  std::uint64_t numbers = 0;
  std::string words;  ///< "2 · key heads · d_head", "latent + turning dimensions"
  std::string sum;    ///< "2 · 4 · 64"
};
/// Of this program's cache.
CachedNumbers kept_numbers(const ModelDims& dims);
/// Of a cache that keeps no more than it must: the latent where there is one, and the part of a key beside it.
CachedNumbers needed_numbers(const ModelConfig& config);

class KvCache {
 public:
  KvCache(const ModelDims& dims, int capacity);
  int length() const { return length_; }
  int capacity() const { return capacity_; }
  int text() const { return text_; }  ///< how long the text was whose pass last put something here
  std::size_t bytes() const;
  /// Forgets everything after the first `length` tokens. REQUIRES 0 ≤ length ≤ length().
  void truncate(int length);

  /// Another of the same tokens, which grows by itself; what stays the same, of a source, is shared.
  KvCache copy() const;

  /// Puts k and v (token, kv_head, width) of one layer behind the tokens that are there, and returns all keys and
  /// values, (length() + tokens, kv_head, width). REQUIRES length() + tokens ≤ capacity(). Length grows only by
  /// advance().
  struct Both {
    Tensor k, v;
  };
  Both append(int layer, const Tensor& k, const Tensor& v);
  /// Keys and values of a source, (source, kv_head, width), which stay the same for every token of the target.
  const Both* source(int layer) const {
    return source_[static_cast<std::size_t>(layer)].k.defined() ? &source_[static_cast<std::size_t>(layer)] : nullptr;
  }
  void keep_source(int layer, Both keys_and_values) {
    source_[static_cast<std::size_t>(layer)] = std::move(keys_and_values);
  }
  void advance(int tokens);

 private:
  std::vector<Tensor> k_, v_;  // per layer (capacity, kv_head, width)
  std::vector<Both> source_;
  int length_ = 0, capacity_ = 0, text_ = 0;
};

}  // namespace headscope
