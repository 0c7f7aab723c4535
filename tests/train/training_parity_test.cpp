// Three training steps against an independent definition: NumPy float64, gradients by central differences
// (tests/reference/make_training.py).

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/io/safetensors.h"
#include "core/tensor/tape.h"
#include "core/train/learner.h"
#include "tests/support/largest_difference.h"
#include "tests/support/paths.h"

namespace headscope::training_parity_test {

using testing::largest_difference;

namespace {

OptimizerSettings settings() {  // make_training.py's SETTINGS
  OptimizerSettings s;
  s.learning_rate = 1e-2;
  s.final_learning_rate = 1e-3;
  s.warmup_steps = 2;
  s.schedule_steps = 5;
  s.beta1 = 0.9;
  s.beta2 = 0.95;
  s.epsilon = 1e-4;
  s.weight_decay = 0.1;
  s.clip_norm = 0.5;
  return s;
}

std::vector<std::int32_t> integers(const SafetensorsFile& file, const std::string& name) {
  const TensorEntry& entry = file.entry(name);
  REQUIRE(entry.dtype == DType::i32);
  return entry.items<std::int32_t>();
}

void compare(const Tensor& found, const Tensor& expected, const std::string& name) {
  INFO(name);
  REQUIRE(found.shape() == expected.shape());
  double largest = 0;
  for (const float each : expected.values()) largest = std::max(largest, std::abs(static_cast<double>(each)));
  CHECK(largest_difference(found, expected) <= 1e-4 * largest + 1e-6);
}

/// The gradients of a batch's mean loss, by name.
std::vector<Tensor> gradients(const Parameters& parameters, const Batch& batch, Backend& backend) {
  Tape tape(backend);
  for (const Parameter& each : parameters.all()) tape.watch(each.value);
  const auto model = parameters.trainable_model(backend);
  const std::vector<Index> lengths(static_cast<std::size_t>(batch.sequences), batch.length);
  const Tensor logits =
      model->forward(Ctx{.backend = backend, .tape = &tape}, batch.tokens, nullptr, {}, true, {}, lengths).logits;
  Backend::Loss loss;
  {
    const Backend::Recording recording(backend, &tape);
    loss = backend.cross_entropy(logits, batch.targets);
  }
  tape.backward(loss.mean, Tensor::full({1}, 1.0f));
  std::vector<Tensor> all;
  for (const Parameter& each : parameters.all()) all.push_back(tape.gradient(each.value));
  return all;
}

}  // namespace

TEST_CASE("three training steps equal the reference: loss, gradients, weights") {
  for (const char* name : {"training-gpt2", "training-llama"}) {
    const auto folder = testing::source_dir() / "tests/reference" / name;
    const SafetensorsFile expected = SafetensorsFile::open(folder / "expected.safetensors");
    Backend backend(2);
    Learner learner(Parameters::load(folder), settings(), backend);
    for (int step = 1; step <= 3; ++step) {
      CAPTURE(name);
      CAPTURE(step);
      const std::string mark = "step" + std::to_string(step) + "/";
      const Batch batch{2, 5, integers(expected, mark + "tokens"), integers(expected, mark + "targets")};
      const std::vector<Tensor> slopes = gradients(learner.parameters(), batch, backend);
      const auto& parameters = learner.parameters().all();
      for (std::size_t i = 0; i < slopes.size(); ++i)
        compare(slopes[i], expected.tensor(mark + "gradient/" + parameters[i].name), parameters[i].name);

      const StepReport report = learner.step(batch);
      const Tensor numbers = expected.tensor(mark + "numbers");
      CHECK(report.loss == doctest::Approx(numbers.at(0)).epsilon(1e-5));
      CHECK(report.gradient_norm == doctest::Approx(numbers.at(1)).epsilon(1e-4));
      CHECK(report.learning_rate == doctest::Approx(numbers.at(2)).epsilon(1e-6));
      for (const Parameter& each : parameters)
        compare(each.value, expected.tensor(mark + "weights/" + each.name), each.name);
    }
  }
}

}  // namespace headscope::training_parity_test
