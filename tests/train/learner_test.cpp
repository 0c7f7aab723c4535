#include "core/train/learner.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/base/random.h"

using namespace headscope;

namespace {

ModelConfig small_gpt2(int d_mlp = 64) {
  ModelConfig c;
  c.name = "small";
  c.family = "gpt2";
  c.dims = {.layers = 2, .heads = 2, .kv_heads = 2, .d_head = 8, .d_model = 16, .d_mlp = d_mlp, .vocab = 20};
  c.context = 12;
  return c;
}

ModelConfig small_llama() {
  ModelConfig c;
  c.name = "small";
  c.family = "llama";
  c.dims = {.layers = 2, .heads = 4, .kv_heads = 2, .d_head = 6, .d_model = 20, .d_mlp = 40, .vocab = 20};
  c.context = 12;
  c.norm = NormKind::rms_norm;
  c.norm_epsilon = 1e-6;
  c.position = PositionKind::rotary;
  c.activation = Activation::silu;
  c.gated_mlp = true;
  c.attention_bias = c.mlp_bias = false;
  c.tied_embeddings = false;
  return c;
}

Batch random_batch(int sequences, int length, std::uint64_t seed) {
  Random random(seed);
  Batch batch{sequences, length, {}, {}};
  for (int i = 0; i < sequences * length; ++i) {
    batch.tokens.push_back(static_cast<std::int32_t>(random.below(20)));
    batch.targets.push_back(static_cast<std::int32_t>(random.below(20)));
  }
  // What begins alike could not be told apart.
  for (int i = 0; i < sequences; ++i) batch.tokens[static_cast<std::size_t>(i * length)] = i;
  batch.targets[1] = -1;
  return batch;
}

OptimizerSettings quick() {
  OptimizerSettings s;
  s.learning_rate = 1e-2;
  s.warmup_steps = 5;
  s.weight_decay = 0.01;
  return s;
}

}  // namespace

TEST_CASE("a learner learns one batch by heart") {
  for (const ModelConfig& config : {small_gpt2(), small_gpt2(0), small_llama()}) {
    CAPTURE(config.family);
    CAPTURE(config.dims.d_mlp);
    Backend backend(2);
    Learner learner(config, quick(), 1, backend);
    const Batch batch = random_batch(3, 8, 7);
    const double before = learner.loss(batch);
    CHECK(before == doctest::Approx(std::log(20.0)).epsilon(0.02));  // knows nothing yet
    double last = 0;
    for (int i = 0; i < 300; ++i) last = learner.step(batch).loss;
    CHECK(last < 0.02);
    CHECK(learner.steps() == 300);
  }
}
