#pragma once
// What no forward pass can beat: the products with the model's weight matrices alone, in the same library, on the same
// threads. Benchmarks divide by it, because a ratio says more than milliseconds on somebody's machine.

#include <vector>

#include "core/model/config.h"
#include "core/tensor/backend.h"

namespace headscope {

class MatrixFloor {
 public:
  /// Random matrices of the shapes of `config`, as many as the model has, so that caches are as cold as in a pass
  /// (memory:
  /// as much as the model, packed). q, k and v are one product; so are the branches of a
  /// gated MLP.
  MatrixFloor(const ModelConfig& config, Backend& backend);

  /// Wall time of one product each, with n rows; the unembedding with `logit_rows`.
  double milliseconds(int n, int logit_rows);
  /// Multiply-adds, times two, of these products.
  double flops(int n, int logit_rows) const;

 private:
  Backend& backend_;
  std::vector<Linear> layers_;  // qkv, out, up, down of each layer
  Linear unembedding_;
};

}  // namespace headscope
