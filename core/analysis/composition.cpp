#include "core/analysis/composition.h"

#include <atomic>
#include <cmath>
#include <limits>

#include "core/analysis/need.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/model/weights.h"
#include "core/tensor/matrices.h"

namespace headscope {

namespace {
using Eigen::MatrixXd;

/// left · rightᵀ, of rank d_head, by its factors (d_model, d_head), with what its norm needs.
struct LowRank {
  MatrixXd left, right;
  MatrixXd left_gram, right_gram;  // (d_head, d_head)
  double norm = 0;
};

LowRank low_rank(MatrixXd left, MatrixXd right) {
  LowRank out{std::move(left), std::move(right), {}, {}, 0};
  out.left_gram = out.left.transpose() * out.left;
  out.right_gram = out.right.transpose() * out.right;
  out.norm = std::sqrt(std::max(0.0, out.left_gram.cwiseProduct(out.right_gram).sum()));
  return out;
}

/// ‖A B‖ / (‖A‖ ‖B‖) for A = X Oᵀ, B = R Yᵀ: ‖X (Oᵀ R) Yᵀ‖² = tr((Oᵀ R)ᵀ XᵀX (Oᵀ R) YᵀY).
double score(const LowRank& a, const MatrixXd& read, const MatrixXd& other_gram, double b_norm) {
  const MatrixXd middle = a.right.transpose() * read;
  const double square = (a.left_gram * middle).cwiseProduct(middle * other_gram).sum();
  const double norms = a.norm * b_norm;
  return norms > 0 ? std::sqrt(std::max(0.0, square)) / norms : std::numeric_limits<double>::quiet_NaN();
}

/// Rows of a matrix that reads the residual stream through a norm.
MatrixXd reading(const Tensor& weight, const NormWeights& norm) {
  MatrixXd w = matrix_of(weight);
  for (Index i = 0; i < w.rows(); ++i) w.row(i) *= static_cast<double>(norm.gain.at(i));
  if (norm.kind == NormKind::layer_norm) w.rowwise() -= w.colwise().mean().eval();
  return w;
}

MatrixXd normal(Random& random, Index rows, Index columns) {
  MatrixXd m(rows, columns);
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) m(i, j) = static_cast<double>(random.normal());
  return m;
}
}  // namespace

Composition head_composition(const Model& model, const Ctx& ctx, int samples, std::uint64_t seed) {
  const ModelConfig& config = model.config();
  const ModelDims& dims = config.dims;
  need_attention(config, "composition");
  if (config.norm_place != NormPlace::before)
    throw Error("composition", "a model whose heads read through a norm and write as they are", config.name,
                "with norms behind attention, what a head writes depends on what the others do");
  if (config.qk_norm != QkNorm::none)
    throw Error("composition", "a model whose scores are queries times keys", config.name,
                "its queries and keys have a norm of their own, so that there is no single matrix W_QK");
  if (config.clip_qkv > 0)
    throw Error("composition", "a model whose queries, keys and values are used as they are", config.name,
                "they are cut off, so that there is no single matrix W_QK or W_OV");
  if (config.z_norm || config.input_bits > 0)
    throw Error("composition", "a model whose heads write what they read", config.name,
                "a norm of what all heads put out, or steps of whole rows, stand between, so that there is no single "
                "matrix W_OV");
  if (config.output_gate)
    throw Error("composition", "a model whose heads write what they read", config.name,
                "a gate that the reading token makes stands between, so that there is no single matrix W_OV");
  if (config.latent())
    throw Error("composition", "a model whose queries, keys and values are products of the stream", config.name,
                "keys and values go through the norm of a latent, so that there is no single matrix W_QK or W_OV");
  const ModelWeights weights = model.weights();
  Composition out;
  std::vector<LowRank> ov, qk;
  for (int layer = 0; layer < dims.layers; ++layer) {
    if (!dims.attends(layer)) continue;  // which has no W_QK and no W_OV
    const BlockWeights& block = nth(weights.blocks, layer);
    for (int head = 0; head < dims.heads; ++head) {
      const HeadWeights& h = nth(block.heads, head);
      out.heads.push_back({layer, head});
      ov.push_back(low_rank(reading(h.v, block.ln1), matrix_of(h.o).transpose()));
      qk.push_back(low_rank(reading(h.q, block.ln1), reading(h.k, block.ln1)));
    }
  }
  const auto n = static_cast<Index>(out.heads.size());
  out.q = Tensor::full({n, n}, std::numeric_limits<float>::quiet_NaN());
  out.k = out.q.copy();
  out.v = out.q.copy();
  std::atomic<int> done = 0;
  ctx.backend.pool().parallel(static_cast<int>(n), [&](int a, int) {
    if (ctx.stop.stop_requested()) throw Cancelled();
    const LowRank& writer = nth(ov, a);
    for (Index b = (a / dims.heads + 1) * dims.heads; b < n; ++b) {
      const LowRank &scores = nth(qk, b), &values = nth(ov, b);
      out.q.ref(a, b) = static_cast<float>(score(writer, scores.left, scores.right_gram, scores.norm));
      out.k.ref(a, b) = static_cast<float>(score(writer, scores.right, scores.left_gram, scores.norm));
      out.v.ref(a, b) = static_cast<float>(score(writer, values.left, values.right_gram, values.norm));
    }
    if (ctx.progress) *ctx.progress = static_cast<float>(++done) / static_cast<float>(n);
  });

  Random random(seed);
  double sum = 0, squares = 0;
  const auto draw = [&] { return normal(random, dims.d_model, dims.d_head); };
  for (int i = 0; i < samples; ++i) {
    if (ctx.stop.stop_requested()) throw Cancelled();
    const LowRank a = low_rank(draw(), draw()), b = low_rank(draw(), draw());
    const double value = score(a, b.left, b.right_gram, b.norm);
    sum += value;
    squares += value * value;
  }
  out.chance.samples = samples;
  out.chance.seed = seed;
  if (samples > 0) {
    out.chance.mean = sum / samples;
    out.chance.deviation = std::sqrt(std::max(0.0, squares / samples - out.chance.mean * out.chance.mean));
  }
  return out;
}

}  // namespace headscope
