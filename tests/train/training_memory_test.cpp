#include "core/train/training_memory.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/train/parameters.h"
#include "core/train/trainer.h"

namespace headscope::training_memory_test {

namespace {

Recipe recipe(const char* family, int layers, int heads, int kv_heads, int width, int mlp, int context, int batch) {
  Recipe out;
  out.task = {.kind = "repeated", .shortest_period = 3, .longest_period = 5};
  out.model = {.family = family,
               .layers = layers,
               .heads = heads,
               .kv_heads = kv_heads,
               .width = width,
               .mlp = mlp,
               .context = context};
  out.batch = batch;
  out.steps = 1;
  out.optimizer.warmup_steps = 0;
  out.evaluate_rows = 1;
  return out;
}

}  // namespace

TEST_CASE(
    "training memory: weights are four floats a parameter, counted as the model counts them, to the norms and biases") {
  Backend backend(1);
  for (const Recipe& each : {recipe("gpt2", 2, 4, 4, 64, 256, 32, 2), recipe("llama", 3, 8, 2, 64, 96, 32, 2)}) {
    CAPTURE(each.model.family);
    Trainer trainer(each, backend);
    const double counted = 16.0 * static_cast<double>(trainer.learner().parameters().count());
    const double reckoned = training_memory(each).weights;
    CHECK(reckoned <= counted);
    CHECK(reckoned > 0.9 * counted);
  }
}

TEST_CASE("training memory: the parts by hand, and what each grows with") {
  const TrainingMemory m = training_memory(recipe("gpt2", 2, 4, 4, 64, 256, 32, 3));
  CHECK(m.attention == 4.0 * 2 * 3 * 4 * 32 * 32);  // layer, text, head, query, key
  CHECK(m.logits == 2 * 4.0 * 3 * 32 * 257);        // and their gradient
  CHECK(m.activations == 4.0 * 2 * 96 * (4 * 64 + 4 * 64 + 2 * 256));
  const TrainingMemory twice = training_memory(recipe("gpt2", 2, 4, 4, 64, 256, 64, 3));
  CHECK(twice.attention == 4 * m.attention);
  CHECK(twice.logits == 2 * m.logits);
  CHECK(training_memory(recipe("gpt2", 128, 128, 128, 16384, 65536, 65536, 65536)).total() > 1e15);
}

TEST_CASE("a recipe that cannot fit is refused with the numbers, before anything is allocated") {
  const Recipe huge = recipe("gpt2", 128, 128, 128, 16384, 65536, 65536, 65536);
  Backend backend(1);
  try {
    Trainer trainer(huge, backend);
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.expected.find("of free memory") != std::string::npos);
    CHECK(error.found.find("at least: weights 66") != std::string::npos);
    CHECK(error.hint.find("smaller batch") != std::string::npos);
  }
  const Recipe small = recipe("gpt2", 2, 4, 4, 64, 256, 32, 3);
  const auto need = static_cast<std::uint64_t>(training_memory(small).total());
  CHECK_NOTHROW(check_training_memory(small, need + 1, "r.json"));
  CHECK_THROWS_WITH_AS(check_training_memory(small, need - 1, "r.json"),
                       doctest::Contains("r.json: expected a training"), Error);
}

}  // namespace headscope::training_memory_test
