#include "tests/bench/random_model.h"

#include "core/base/random.h"
#include "core/model/family.h"

namespace headscope::bench {

std::shared_ptr<const Model> random_gpt2(int layers, int heads, int d_model, int vocab, int context, Backend& backend) {
  ModelConfig c;
  c.name = "random";
  c.family = "gpt2";
  c.dims = {layers, heads, heads, d_model / heads, d_model, 4 * d_model, vocab};
  c.context = context;
  Random random(1);
  const auto weight = [&](Index rows, Index columns) {
    Tensor t = Tensor::uninitialized({rows, columns});
    // Uniform with the standard deviation of the usual initialisation: quicker to draw, as good for timing.
    for (float& v : t.mutable_values()) v = static_cast<float>(random.uniform() - 0.5) * 0.069f;
    return t;
  };
  const Tensor ones = Tensor::full({d_model}, 1.0f), zeros = Tensor::zeros({d_model}),
               wide = Tensor::zeros({4 * d_model});
  RawWeights raw;
  raw.token_embedding = weight(vocab, d_model);
  raw.position_embedding = weight(context, d_model);
  raw.unembedding = raw.token_embedding.transpose(0, 1);
  raw.final_gain = ones;
  raw.final_bias = zeros;
  for (int i = 0; i < layers; ++i) {
    RawLayer l;
    l.ln1_gain = l.ln2_gain = ones;
    l.ln1_bias = l.ln2_bias = zeros;
    for (Tensor* w : {&l.q_weight, &l.k_weight, &l.v_weight, &l.o_weight}) *w = weight(d_model, d_model);
    for (Tensor* b : {&l.q_bias, &l.k_bias, &l.v_bias, &l.o_bias, &l.down_bias}) *b = zeros;
    l.up_weight = weight(d_model, 4 * d_model);
    l.up_bias = wide;
    l.down_weight = weight(4 * d_model, d_model);
    raw.layers.push_back(l);
  }
  return Model::build(c, raw, "random weights", backend);
}

}  // namespace headscope::bench
