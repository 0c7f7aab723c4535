#include "core/train/learner.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/random.h"

namespace headscope::learner_test {

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
  c.bias = BiasSet::none();
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

TEST_CASE("a learner that restores a state goes on bit for bit") {
  Backend backend(2);
  for (const ModelConfig& config : {small_gpt2(), small_llama()}) {
    CAPTURE(config.family);
    Learner unbroken(config, quick(), 4, backend);
    for (int i = 0; i < 5; ++i) unbroken.step(random_batch(3, 8, static_cast<std::uint64_t>(i)));
    const auto state = unbroken.state();
    Backend other(1);  // another number of threads changes nothing
    Learner resumed(config, quick(), 99, other);
    resumed.restore(state);
    CHECK(resumed.steps() == 5);
    for (int i = 5; i < 9; ++i) {
      const Batch batch = random_batch(3, 8, static_cast<std::uint64_t>(i));
      const StepReport a = unbroken.step(batch), b = resumed.step(batch);
      CHECK(a.step == b.step);
      CHECK(a.loss == b.loss);
      CHECK(a.gradient_norm == b.gradient_norm);
      CHECK(a.learning_rate == b.learning_rate);
    }
    const auto one = unbroken.state(), two = resumed.state();
    REQUIRE(one.size() == two.size());
    for (const auto& [name, tensor] : one) {
      CAPTURE(name);
      CHECK(std::ranges::equal(tensor.values(), two.at(name).values()));
    }
  }
}

TEST_CASE("a state that does not fit leaves the learner as it was") {
  Backend backend(1);
  Learner learner(small_gpt2(), quick(), 1, backend);
  learner.step(random_batch(3, 8, 1));
  const auto before = learner.state();
  auto broken = Learner(small_gpt2(), quick(), 2, backend).state();
  broken.erase("second_moment/transformer.wte.weight");
  CHECK_THROWS_WITH_AS(learner.restore(broken),
                       "optimizer state second_moment/transformer.wte.weight: expected a tensor of shape [20, 16], "
                       "found none",
                       Error);
  broken = before;
  broken["parameters/transformer.ln_f.bias"] = Tensor::zeros({15});
  CHECK_THROWS_WITH_AS(learner.restore(broken), "parameter transformer.ln_f.bias: expected shape [16], found [15]",
                       Error);
  for (const auto& [name, tensor] : learner.state())
    CHECK(std::ranges::equal(tensor.values(), before.at(name).values()));
}

TEST_CASE("infinity stops a learner, which stays as it was and says where") {
  Backend backend(1);
  Learner learner(small_gpt2(), quick(), 1, backend);
  learner.step(random_batch(3, 8, 1));
  auto state = learner.state();
  // Large enough that its square is none of float32's: the norm of the gradients overflows before the loss does.
  Tensor gain = state.at("parameters/transformer.ln_f.weight");
  gain.ref(3) = 1e38f;
  learner.restore(state);
  const auto before = learner.state();
  try {
    learner.step(random_batch(3, 8, 2));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.where.starts_with("step 2: "));
    CHECK(error.where.size() > std::string("step 2: ").size());  // and names a tensor
  }
  CHECK(learner.steps() == 1);
  for (const auto& [name, tensor] : learner.state())
    CHECK(std::ranges::equal(tensor.values(), before.at(name).values()));
}

TEST_CASE("batches that do not fit are refused") {
  Backend backend(1);
  Learner learner(small_gpt2(), quick(), 1, backend);
  Batch batch = random_batch(2, 4, 1);
  batch.targets.pop_back();
  CHECK_THROWS_AS(learner.step(batch), Error);
  batch = random_batch(2, 4, 1);
  batch.targets[0] = 20;
  CHECK_THROWS_AS(learner.step(batch), Error);
  batch.targets.assign(8, -1);
  CHECK_THROWS_AS(learner.loss(batch), Error);
  CHECK_THROWS_AS(learner.step(random_batch(1, 13, 1)), Error);  // longer than the context
  OptimizerSettings bad = quick();
  bad.beta2 = 1;
  CHECK_THROWS_AS(learner.set_settings(bad), Error);
  CHECK(learner.steps() == 0);
}

TEST_CASE("the schedule warms up, falls along a cosine and stays") {
  OptimizerSettings s;
  s.learning_rate = 1;
  s.final_learning_rate = 0.1;
  s.warmup_steps = 4;
  s.schedule_steps = 12;
  CHECK(s.rate_at(0) == doctest::Approx(0.25));
  CHECK(s.rate_at(3) == doctest::Approx(1));
  CHECK(s.rate_at(4) == doctest::Approx(1));
  CHECK(s.rate_at(8) == doctest::Approx(0.55));  // half way
  CHECK(s.rate_at(12) == doctest::Approx(0.1));
  CHECK(s.rate_at(1000) == doctest::Approx(0.1));
  s.schedule_steps = 0;
  CHECK(s.rate_at(1000) == doctest::Approx(1));
}

TEST_CASE("attention entropy is free at first, then its price rises evenly to the whole") {
  OptimizerSettings s;
  s.schedule_steps = 12;
  s.attention_entropy = 0.5;
  CHECK(s.entropy_price_at(0) == 0.5);  // where nothing else is said, it costs from the first step
  s.attention_entropy_from = 4;
  CHECK(s.entropy_price_at(3) == 0);
  CHECK(s.entropy_price_at(4) == 0);
  CHECK(s.entropy_price_at(8) == doctest::Approx(0.25));
  CHECK(s.entropy_price_at(12) == 0.5);
  CHECK(s.entropy_price_at(1000) == 0.5);
  s.attention_entropy_from = 12;
  CHECK_THROWS_AS(s.check(), Error);
}

TEST_CASE("the maps of a training step are those of the model on that text alone") {
  Backend backend(2);
  for (const ModelConfig& config : {small_gpt2(), small_gpt2(0), small_llama()}) {
    CAPTURE(config.family);
    Learner learner(config, quick(), 5, backend);
    for (int i = 0; i < 20; ++i) learner.step(random_batch(3, 8, 7));
    const auto model = learner.snapshot();
    const Batch batch = random_batch(3, 8, 8);
    const std::span<const std::int32_t> second = std::span(batch.tokens).subspan(8, 8);
    MapRequest maps;
    maps.storage = MapStorage::dense;
    const ForwardResult alone = model->forward(Ctx{.backend = backend}, second, nullptr, maps);
    maps.text = 1;
    const StepReport report = learner.step(batch, {}, maps);
    REQUIRE(report.maps.size() == alone.maps.size());
    for (std::size_t m = 0; m < alone.maps.size(); ++m) {
      CHECK(report.maps[m].layer() == alone.maps[m].layer());
      CHECK(report.maps[m].head() == alone.maps[m].head());
      for (Index i = 0; i < 8; ++i) {
        CHECK(report.maps[m].stats().entropy[static_cast<std::size_t>(i)] ==
              doctest::Approx(alone.maps[m].stats().entropy[static_cast<std::size_t>(i)]).epsilon(1e-4).scale(1));
        for (Index j = 0; j < 8; ++j)
          CHECK(report.maps[m].weight(i, j) == doctest::Approx(alone.maps[m].weight(i, j)).epsilon(1e-4).scale(1));
      }
    }
    maps.text = -1;
    CHECK(learner.step(batch, {}, maps).maps.size() == 3 * alone.maps.size());
  }
}

}  // namespace headscope::learner_test
