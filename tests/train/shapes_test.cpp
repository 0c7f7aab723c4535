// Drawn pictures: what counts in them is where it is said to be; gradients through the patch embedding by moving
// weights; a small run from recipe to folder.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/model/picture_input.h"
#include "core/run/run_request.h"
#include "core/train/evaluation.h"
#include "core/train/shapes_task.h"
#include "core/train/trainer.h"
#include "tests/support/gradient_check.h"
#include "tests/support/paths.h"

namespace headscope::shapes_test {

using testing::slopes;

namespace {
Recipe small_recipe() {
  return parse_recipe(R"({"name": "small", "task": {"kind": "shapes", "side": 24, "patch": 8, "distractors": 1},
      "model": {"family": "vit", "layers": 2, "heads": 2, "width": 24, "mlp": 32, "initial_deviation": 0.2},
      "training": {"steps": 400, "batch": 16, "learning_rate": 0.006, "warmup_steps": 5, "evaluate_every": 60,
                   "evaluate_rows": 32}})",
                      "r.json");
}
}  // namespace

TEST_CASE("the warm shape lies on the patches that are said to hold it, and nowhere else") {
  Random random(7);
  std::set<int> shapes;
  for (int i = 0; i < 60; ++i) {
    const DrawnPicture drawn = draw_shapes(random, 48, 6, 3);
    shapes.insert(drawn.shape);
    CHECK_FALSE(drawn.patches.empty());
    std::set<Index> warm;  // by colour: much red, little green and blue
    for (Index row = 0; row < 48; ++row)
      for (Index column = 0; column < 48; ++column) {
        const std::uint8_t* pixel = drawn.picture.rgb.data() + (row * 48 + column) * 3;
        if (pixel[0] > 150 && pixel[1] < 130 && pixel[2] < 110) warm.insert(row / 6 * 8 + column / 6);
      }
    CHECK(std::ranges::equal(warm, drawn.patches));
  }
  CHECK(shapes.size() == 6);
}

TEST_CASE("a batch of pictures asks for the class at CLS alone, anew in every step, the same for the same step") {
  const Recipe recipe = small_recipe();
  CHECK(recipe.model.context == 10);
  const auto task = make_task(recipe.task);
  const Batch batch = task->batch(3, 4, 10), again = task->batch(3, 4, 10), other = task->batch(4, 4, 10);
  CHECK(batch.patches.shape() == Shape{36, 192});
  for (std::size_t i = 0; i < batch.targets.size(); ++i) CHECK((batch.targets[i] >= 0) == (i % 10 == 0));
  CHECK(std::ranges::equal(batch.patches.values(), again.patches.values()));
  CHECK_FALSE(std::ranges::equal(batch.patches.values(), other.patches.values()));
  const HeldOut held = task->held_out(10, 4, 10);
  CHECK(held.targets == 10);
  CHECK(held.batches.size() == 3);
  CHECK(held.floor == 0);
  const Batch row = row_of(held.batches[1], 2, 10);
  CHECK(row.patches.at(4, 7) == held.batches[1].patches.at(2 * 9 + 4, 7));
}

TEST_CASE("gradients of every kind of weight of a model of pictures, by moving them") {
  const Recipe recipe = small_recipe();
  const auto task = make_task(recipe.task);
  const Batch batch = task->batch(1, 3, 10);
  Backend backend(2);
  Parameters parameters = Parameters::initial(model_config(recipe, task->vocabulary()), {.seed = 3, .deviation = 0.2});
  for (Parameter& each : parameters.all()) {  // biases and gains of their own
    Random random(each.name.size());
    if (!each.matrix())
      for (float& value : each.value.mutable_values()) value += 0.1f * random.normal();
  }
  const auto model = parameters.trainable_model(backend);
  Tape tape(backend);
  for (const Parameter& each : parameters.all()) tape.watch(each.value);
  const Tensor logits = run_batch(*model, batch, Ctx{.backend = backend, .tape = &tape}).logits;
  CHECK(logits.shape() == Shape{30, 6});
  Backend::Loss loss;
  {
    const Backend::Recording recording(backend, &tape);
    loss = backend.cross_entropy(logits, batch.targets);
  }
  tape.backward(loss.mean, Tensor::full({1}, 1.0f));
  const auto value = [&] {
    return backend.cross_entropy(run_batch(*model, batch, Ctx{.backend = backend}).logits, batch.targets).nats;
  };
  std::set<std::string> seen;
  for (Parameter& each : parameters.all()) {
    CAPTURE(each.name);
    const Tensor gradient = tape.gradient(each.value);
    const Index step = std::max<Index>(1, each.value.size() / 5);
    for (Index i = 0; i < each.value.size(); i += step) {
      const auto found = slopes(each.value.mutable_data()[i], value);
      CHECK(gradient.data()[i] == doctest::Approx((4 * found.near - found.far) / 3).epsilon(0.03).scale(0.02));
    }
    seen.insert(each.name);
  }
  for (const char* name : {"vit.embeddings.cls_token", "vit.embeddings.patch_embeddings.projection.weight",
                           "vit.embeddings.patch_embeddings.projection.bias", "vit.embeddings.position_embeddings"})
    CHECK(seen.contains(name));
}

TEST_CASE("a small model learns shapes, and its folder opens as any other") {
  Backend backend(2);
  Recipe recipe = small_recipe();
  recipe.task.distractors = 0;

  Trainer trainer(recipe, backend);
  const double before = held_out_loss(trainer.learner(), trainer.held_out());
  trainer.run(400);
  CHECK(trainer.progress().held_out < before - 0.2);
  const std::filesystem::path folder = testing::scratch_dir("shapes");
  trainer.save_model(folder);
  const LoadedModel loaded = load_model(folder, backend);
  CHECK(loaded.tokenizer->vocab_size() == 6);
  CHECK(loaded.model->config().vision->labels == shape_names());
  RunRequest request;
  request.model = folder;
  request.image = testing::reference("vision/picture.png");
  const auto trace = run(loaded, request, Ctx{backend});
  CHECK(trace->logits.shape() == Shape{1, 6});
  CHECK(trace->picture->width == 24);
}

TEST_CASE("recipes of pictures that do not fit are refused") {
  const auto refused = [](const std::string& model, const std::string& saying) {
    CHECK_THROWS_WITH_AS(parse_recipe(R"({"name": "x", "task": {"kind": "shapes"}, "model": )" + model + "}", "r"),
                         doctest::Contains(saying.c_str()), Error);
  };
  refused(R"({"family": "gpt2"})", "vit");
  refused(R"({"family": "vit", "context": 64})", "65, CLS and the patches");
  refused(R"({"family": "vit", "mlp": 0})", "hidden layer");
  CHECK_THROWS_WITH_AS(
      parse_recipe(R"({"name": "x", "task": {"kind": "shapes", "patch": 7}, "model": {"family": "vit"}})", "r"),
      doctest::Contains("a divisor of the side 48"), Error);
}

}  // namespace headscope::shapes_test
