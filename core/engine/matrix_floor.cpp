#include "core/engine/matrix_floor.h"

#include <chrono>
#include <cmath>
#include <map>

#include "core/base/random.h"

namespace headscope {

namespace {
/// Uniform in ±1/√rows: products stay of order one, and filling a large model takes moments.
Tensor random_tensor(Index rows, Index columns, Random& random) {
  Tensor tensor = Tensor::uninitialized({rows, columns});
  const float scale = 2.0f / std::sqrt(static_cast<float>(rows));
  for (float& x : tensor.mutable_values()) x = (static_cast<float>(random.next() >> 40) * 0x1p-24f - 0.5f) * scale;
  return tensor;
}
}  // namespace

MatrixFloor::MatrixFloor(const ModelConfig& config, Backend& backend) : backend_(backend) {
  Random random(1);
  const auto matrix = [&](Index in, Index out) {
    Linear linear = backend.linear_weights({random_tensor(in, out, random)}, {Tensor()});
    linear.parts.clear();  // only the packed form multiplies
    return linear;
  };
  const ModelDims& d = config.dims;
  const Index heads = Index{d.heads} * d.d_head, kv_heads = Index{d.kv_heads} * d.d_head;
  for (int layer = 0; layer < d.layers; ++layer) {
    layers_.push_back(matrix(d.d_model, heads + 2 * kv_heads));
    layers_.push_back(matrix(heads, d.d_model));
    layers_.push_back(matrix(d.d_model, config.gated_mlp ? 2 * Index{d.d_mlp} : d.d_mlp));
    layers_.push_back(matrix(d.d_mlp, d.d_model));
  }
  unembedding_ = matrix(d.d_model, d.vocab);
}

double MatrixFloor::milliseconds(int n, int logit_rows) {
  std::map<std::pair<Index, Index>, Tensor> inputs;
  Random random(2);
  const auto input = [&](const Linear& w, int rows) -> const Tensor& {
    Tensor& x = inputs[std::pair<Index, Index>(rows, w.packed->in())];
    if (!x.defined()) x = random_tensor(rows, w.packed->in(), random);
    return x;
  };
  for (const Linear& w : layers_) input(w, n);
  input(unembedding_, logit_rows);
  const auto start = std::chrono::steady_clock::now();
  for (const Linear& w : layers_) backend_.linear(input(w, n), w);
  backend_.linear(input(unembedding_, logit_rows), unembedding_);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

double MatrixFloor::flops(int n, int logit_rows) const {
  double total = 0;
  const auto cells = [](const Linear& w) { return static_cast<double>(w.packed->in() * w.packed->out()); };
  for (const Linear& w : layers_) total += 2.0 * n * cells(w);
  return total + 2.0 * logit_rows * cells(unembedding_);
}

}  // namespace headscope
