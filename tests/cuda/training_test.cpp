// Training on the card beside the processor's: every gradient, steps of AdamW, ops that the processor does in between.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/attention/softmax_attention.h"
#include "core/base/error.h"
#include "core/base/random.h"
#include "core/train/gradients.h"
#include "core/train/learner.h"
#include "tests/cuda/card.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"
#include "tests/support/random_tensor.h"

namespace headscope::training_test {

using testing::largest_difference;
using testing::random_tensor;

namespace {

ModelConfig gpt2() {
  ModelConfig c;
  c.name = "small";
  c.family = "gpt2";
  c.dims = {.layers = 2, .heads = 2, .kv_heads = 2, .d_head = 8, .d_model = 16, .d_mlp = 40, .vocab = 23};
  c.context = 40;
  return c;
}

ModelConfig llama(bool tied) {
  ModelConfig c;
  c.name = "small";
  c.family = "llama";
  c.dims = {.layers = 2, .heads = 4, .kv_heads = 2, .d_head = 6, .d_model = 20, .d_mlp = 36, .vocab = 23};
  c.context = 40;
  c.norm = NormKind::rms_norm;
  c.norm_epsilon = 1e-6;
  c.position = PositionKind::rotary;
  c.activation = Activation::silu;
  c.gated_mlp = true;
  c.bias = BiasSet::none();
  c.tied_embeddings = tied;
  return c;
}

struct Case {
  std::string name;
  ModelConfig config;
};
std::vector<Case> cases() {
  ModelConfig untied = gpt2(), erf = gpt2(), wide = llama(true);
  untied.tied_embeddings = false;
  erf.activation = Activation::gelu;
  wide.dims.d_head = 40;  // two numbers of a head for every lane
  return {{"gpt2", gpt2()},        {"gpt2, untied", untied},     {"gpt2, erf", erf},
          {"llama", llama(false)}, {"llama, tied", llama(true)}, {"llama, wide heads", wide}};
}

Batch batch_of(int sequences, int length, std::uint64_t seed) {
  Random random(seed);
  Batch batch{sequences, length, {}, {}};
  for (int i = 0; i < sequences * length; ++i) {
    batch.tokens.push_back(static_cast<std::int32_t>(random.below(23)));
    batch.targets.push_back(static_cast<std::int32_t>(random.below(24)) - 1);  // −1: not counted
  }
  batch.targets[0] = 3;
  return batch;
}

double size_of(const Tensor& x) {
  double most = 0;
  for (const float v : x.packed().values()) most = std::max(most, std::abs(static_cast<double>(v)));
  return most;
}

struct Gradients {
  double loss = 0;
  std::map<std::string, Tensor> of;
};

/// Weights that are not as small as at a start, so that every part counts.
Parameters random_parameters(const ModelConfig& config) {
  Parameters parameters = Parameters::initial(config, Parameters::Initial{.seed = 5, .deviation = 0.3});
  std::uint64_t seed = 100;
  for (Parameter& each : parameters.all())
    if (!each.matrix())
      for (float& v : each.value.mutable_values()) v += 0.1f * Random(++seed).normal();
  return parameters;
}

Gradients gradients_of(const Parameters& from, const Batch& batch, Backend& backend, double price = 0) {
  Parameters parameters = from.clone();
  for (Parameter& each : parameters.all()) each.value = backend.resident(std::move(each.value));
  const auto model = parameters.trainable_model(backend);
  Tape tape(backend);
  for (const Parameter& each : parameters.all()) tape.watch(each.value);
  const ForwardResult result = run_batch(*model, batch, Ctx{.backend = backend, .tape = &tape, .entropy_price = price});
  const Backend::Recording recording(backend, &tape);
  const Backend::Loss loss = backend.cross_entropy(result.logits, batch.targets);
  tape.backward(loss.mean, Tensor::full({1}, 1.0f));
  Gradients out{loss.nats, {}};
  for (const Parameter& each : parameters.all()) out.of.emplace(each.name, tape.gradient(each.value).copy());
  return out;
}

Gradients gradients_of(const ModelConfig& config, const Batch& batch, Backend& backend, double price = 0) {
  return gradients_of(random_parameters(config), batch, backend, price);
}

void compare(const Gradients& expected, const Gradients& got) {
  CHECK(got.loss == doctest::Approx(expected.loss).epsilon(1e-5));
  double largest = 0;
  for (const auto& [name, tensor] : expected.of) largest = std::max(largest, size_of(tensor));
  for (const auto& [name, tensor] : expected.of) {
    CAPTURE(name);
    // A bias of keys moves nothing: its gradient is what rounding leaves.
    CHECK(largest_difference(tensor, got.of.at(name)) <= 1e-4 * size_of(tensor) + 1e-6 * largest);
  }
}

OptimizerSettings quick() {
  OptimizerSettings s;
  s.learning_rate = 1e-2;
  s.warmup_steps = 3;
  s.weight_decay = 0.1;
  s.clip_norm = 0.5;
  return s;
}

}  // namespace

TEST_CASE("gradients of a training step on the card are the processor's") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  for (const Case& each : cases())
    for (const auto& [sequences, length] : {std::pair(1, 7), std::pair(3, 12), std::pair(2, 37)}) {
      CAPTURE(each.name);
      CAPTURE(sequences);
      const Batch batch = batch_of(sequences, length, 3);
      compare(gradients_of(each.config, batch, here), gradients_of(each.config, batch, *card));
    }
}

TEST_CASE("gradients of every family that can be trained, wherever its ops are computed") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  int compared = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testing::reference("families"))) {
    CAPTURE(entry.path().filename().string());
    const ModelConfig config = load_config(entry.path());
    if (config.vision || !config.predicts) continue;
    Batch batch = batch_of(2, 6, 8);
    for (std::int32_t& token : batch.tokens) token = token % config.dims.vocab;
    if (config.cross()) {
      batch.source = {3, 1, 4, 1, 5, 9, 2};
      batch.source_lengths = {4, 3};
    }
    Gradients expected;
    try {
      const Parameters parameters = Parameters::load(entry.path());
      expected = gradients_of(parameters, batch, here);
      compare(expected, gradients_of(parameters, batch, *card));
      ++compared;
    } catch (const Error& error) {  // no family that is trained
      if (!expected.of.empty()) FAIL_CHECK(error.what());
    }
  }
  CHECK(compared > 10);
}

TEST_CASE("gradients of coarser products are coarser, not others") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  const Batch batch = batch_of(3, 12, 3);
  for (const Precision precision : {Precision::tf32, Precision::bf16}) {
    const auto coarse = testing::card(precision);
    for (const Case& each : {cases()[1], cases()[4]}) {
      CAPTURE(each.name);
      const Gradients expected = gradients_of(each.config, batch, here),
                      got = gradients_of(each.config, batch, *coarse);
      for (const auto& [name, tensor] : expected.of) {
        CAPTURE(name);
        CHECK(largest_difference(tensor, got.of.at(name)) <=
              (precision == Precision::tf32 ? 1e-2 : 8e-2) * size_of(tensor) + 1e-9);
      }
    }
  }
}

TEST_CASE("gradients with a price of entropy, and of ops that the processor does in between") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  const Batch batch = batch_of(3, 12, 4);
  compare(gradients_of(gpt2(), batch, here, 0.5), gradients_of(gpt2(), batch, *card, 0.5));
  ModelConfig solu = gpt2(), capped = llama(true);
  solu.activation = Activation::solu;
  capped.logit_cap = 3;
  capped.embedding_scale = 2.5;
  for (const ModelConfig& config : {solu, capped})
    compare(gradients_of(config, batch, here), gradients_of(config, batch, *card));
}

TEST_CASE("gradients of an ordinary model's input and patterns on the card are the processor's") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  const std::vector<std::int32_t> tokens{5, 9, 5, 30, 9, 5};
  for (const char* folder : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(folder);
    const auto of = [&](Backend& backend) {
      const auto model = Model::load(testing::reference(folder), backend);
      return input_gradients(*model, Ctx{.backend = backend}, tokens, {.kind = GradientOf::Kind::loss});
    };
    const InputGradients expected = of(here), got = of(*card);
    CHECK(got.value == doctest::Approx(expected.value).epsilon(1e-5));
    CHECK(largest_difference(expected.embedding, got.embedding) <= 1e-4 * size_of(expected.embedding));
    REQUIRE(expected.patterns.size() == got.patterns.size());
    for (std::size_t i = 0; i < got.patterns.size(); ++i)
      CHECK(largest_difference(expected.patterns[i], got.patterns[i]) <= 1e-4 * size_of(expected.patterns[i]));
  }
}

TEST_CASE("the way back through attention: windows, slopes, shared keys, texts of several lengths, one text") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  const std::vector<Index> lengths{5, 33, 1, 40}, one{79}, key_lengths{3, 50, 7, 9};
  const std::vector<double> slopes{0.5, 0.25, 0.125, 0.0625};
  struct Form {
    std::string name;
    std::vector<Index> lengths, key_lengths;
    std::shared_ptr<const AttentionRule> rule;
    bool slopes = false;
    float cap = 0;
    MapStorage storage = MapStorage::none;
  };
  for (const Form& form :
       {Form{"causal", lengths, {}, causal_rule()}, Form{"one text", one, {}, causal_rule()},
        Form{"all keys", lengths, {}, full_rule()}, Form{"another text", lengths, key_lengths, full_rule()},
        Form{"slopes", lengths, {}, causal_rule(), true}, Form{"cap", lengths, {}, causal_rule(), false, 2.0f},
        Form{"a map", lengths, {}, causal_rule(), false, 0, MapStorage::dense}}) {
    CAPTURE(form.name);
    Index queries = 0, keys = 0;
    for (const Index n : form.lengths) queries += n;
    for (const Index n : form.key_lengths.empty() ? form.lengths : form.key_lengths) keys += n;
    const Tensor q0 = random_tensor({queries, 4, 24}, 1), k0 = random_tensor({keys, 2, 24}, 2),
                 v0 = random_tensor({keys, 2, 24}, 3), weight = random_tensor({queries, 4, 24}, 4);
    std::vector<Tensor> results[2];
    for (Backend* const backend : {&here, card.get()}) {
      Tape tape(*backend);
      const Backend::Recording recording(*backend, &tape);
      const Tensor q = backend->resident(q0.copy()), k = backend->resident(k0.copy()), v = backend->resident(v0.copy());
      for (const Tensor* each : {&q, &k, &v}) tape.watch(*each);
      AttentionInput in;
      in.q = q;
      in.k = k;
      in.v = v;
      in.scale = 0.3f;
      in.rule = form.rule;
      in.cap = form.cap;
      in.lengths = form.lengths;
      in.key_lengths = form.key_lengths;
      in.storage = form.storage;
      in.between_texts = !form.key_lengths.empty();
      if (form.slopes) in.slopes = slopes;
      const AttentionOutput out = softmax_attention(in, *backend, nullptr, {});
      tape.backward(out.z, weight);
      backend->finish();
      auto& to = results[backend == card.get()];
      to.push_back(out.z);
      for (const Tensor* each : {&q, &k, &v}) to.push_back(tape.gradient(*each));
      for (const AttentionMap& map : out.maps) to.push_back(map.to_dense());
    }
    REQUIRE(results[0].size() == results[1].size());
    for (std::size_t i = 0; i < results[0].size(); ++i) {
      CAPTURE(i);
      CHECK(largest_difference(results[0][i], results[1][i]) <= 2e-5 * (1 + size_of(results[0][i])));
    }
  }
}

TEST_CASE("steps on the card end where the processor's do, and a restored state goes on bit for bit") {
  HEADSCOPE_NEEDS_CARD(card);
  Backend here(2);
  for (const Case& each : {cases()[0], cases()[3]}) {
    CAPTURE(each.name);
    Learner expected(each.config, quick(), 1, here), got(each.config, quick(), 1, *card);
    for (int i = 0; i < 5; ++i) {
      const Batch batch = batch_of(3, 12, 10 + static_cast<std::uint64_t>(i));
      const StepReport a = expected.step(batch), b = got.step(batch);
      CHECK(b.loss == doctest::Approx(a.loss).epsilon(1e-4));
      CHECK(b.gradient_norm == doctest::Approx(a.gradient_norm).epsilon(1e-3));
    }
    const auto one = expected.state(), two = got.state();
    REQUIRE(one.size() == two.size());
    for (const auto& [name, tensor] : one) {
      CAPTURE(name);
      // Where a gradient is near 0 its sign, and so AdamW's step, may be another.
      CHECK(largest_difference(tensor, two.at(name)) <= 2e-3 * size_of(tensor) + 1e-5);
    }
    CHECK(got.loss(batch_of(3, 12, 50)) == doctest::Approx(expected.loss(batch_of(3, 12, 50))).epsilon(1e-3));
    const auto snapshot = got.snapshot(&here);  // packs what the card has now
    const std::vector<std::int32_t> tokens{1, 5, 2, 7};
    CHECK(largest_difference(snapshot->forward({here}, tokens).logits,
                             expected.snapshot()->forward({here}, tokens).logits) < 2e-3);

    Learner resumed(each.config, quick(), 9, *card);
    resumed.restore(two);
    for (int i = 0; i < 3; ++i) {
      const Batch batch = batch_of(3, 12, 30 + static_cast<std::uint64_t>(i));
      const StepReport a = got.step(batch), b = resumed.step(batch);
      CHECK(a.loss == b.loss);
      CHECK(a.gradient_norm == b.gradient_norm);
    }
    const auto left = got.state(), right = resumed.state();
    for (const auto& [name, tensor] : left) CHECK(largest_difference(tensor, right.at(name)) == 0);
  }
}

TEST_CASE("a step on the card that fails leaves the learner as it was") {
  HEADSCOPE_NEEDS_CARD(card);
  Learner learner(gpt2(), quick(), 1, *card);
  learner.step(batch_of(2, 8, 1));
  const auto good = learner.state();
  auto broken = good;
  broken["parameters/transformer.h.1.mlp.c_fc.bias"] = Tensor::full({40}, 1e30f);
  learner.restore(broken);
  CHECK_THROWS_AS(learner.step(batch_of(2, 8, 2)), Error);
  CHECK(learner.steps() == 1);
  for (const auto& [name, tensor] : learner.state()) CHECK(largest_difference(tensor, broken.at(name)) == 0);
  std::stop_source stop;
  stop.request_stop();
  learner.restore(good);
  CHECK_THROWS_AS(learner.step(batch_of(2, 8, 2), stop.get_token()), Cancelled);
  for (const auto& [name, tensor] : learner.state()) CHECK(largest_difference(tensor, good.at(name)) == 0);
  const StepReport report = learner.step(batch_of(2, 8, 2), {}, {.storage = MapStorage::dense, .text = 1});
  CHECK(report.maps.size() == 4);
  CHECK(std::isfinite(report.loss));
}

}  // namespace headscope::training_test
