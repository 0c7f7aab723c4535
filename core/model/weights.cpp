#include "core/model/weights.h"

#include <cassert>
#include <cmath>

#include "core/model/model_parts.h"

namespace headscope {

namespace {
struct Part {
  Tensor weight, bias;
};

/// Columns [begin, begin + width) of the products side by side. They lie in one part: parts may have been joined, never
/// cut.
Part columns(const std::vector<Linear>& products, Index begin, Index width) {
  for (const Linear& product : products)
    for (std::size_t i = 0; i < product.parts.size(); ++i) {
      const Index here = product.parts[i].dim(1);
      if (begin >= here) {
        begin -= here;
        continue;
      }
      assert(begin + width <= here);
      const Tensor bias = i < product.biases.size() ? product.biases[i] : Tensor();
      return {product.parts[i].slice(1, begin, begin + width),
              bias.defined() ? bias.slice(0, begin, begin + width) : Tensor()};
    }
  assert(false);
  return {};
}
}  // namespace

Tensor normalized(const ModelConfig& config, const NormWeights& norm, Backend& backend, const Tensor& x) {
  return config.norm == NormKind::rms_norm ? backend.rms_norm(x, norm.gain, config.norm_epsilon)
                                           : backend.layer_norm(x, norm.gain, norm.bias, config.norm_epsilon);
}

float score_scale(const ModelConfig& config, int layer) {
  double s = 1;
  if (config.scale_by_inverse_sqrt_d) s /= std::sqrt(static_cast<double>(config.dims.d_head));
  if (config.scale_by_inverse_layer) s /= layer + 1;
  return static_cast<float>(s);
}

ModelWeights Model::weights() const {
  const Parts& m = *parts_;
  const ModelDims& d = m.config.dims;
  ModelWeights out{m.token_embedding, m.position_embedding, {}, m.final_norm, m.unembedding.parts[0]};
  for (const Layer& layer : m.layers) {
    BlockWeights& block = out.blocks.emplace_back();
    block.ln1 = layer.ln1;
    if (!layer.o.biases.empty()) block.o_bias = layer.o.biases[0];
    const Index width = d.d_head, keys = Index{d.heads} * width, values = keys + Index{d.kv_heads} * width;
    for (Index head = 0; head < d.heads; ++head) {
      const Index group = head / (d.heads / d.kv_heads);
      const Part q = columns(layer.qkv, head * width, width), k = columns(layer.qkv, keys + group * width, width),
                 v = columns(layer.qkv, values + group * width, width);
      block.heads.push_back({q.weight, q.bias, k.weight, k.bias, v.weight, v.bias,
                             layer.o.parts[0].slice(0, head * width, (head + 1) * width)});
    }
  }
  return out;
}

}  // namespace headscope
