// Models with experts are trained as others: gradients of routers, experts and learned sinks, by moving them.

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/train/parameters.h"
#include "core/train/trainer.h"
#include "tests/support/gradient_check.h"
#include "tests/support/paths.h"

namespace headscope::training_experts_test {

using testing::reference;
using testing::slopes;

TEST_CASE(
    "the gradient of the loss reaches routers and experts of a model, a few numbers of each tensor by moving them") {
  Backend backend(1);
  const std::vector<std::int32_t> tokens{3, 17, 8, 21, 40, 3, 17, 9}, targets{17, 8, 21, 40, 3, 17, 9, -1};
  for (const std::string family : {"mixtral", "qwen3_moe", "olmoe"}) {
    CAPTURE(family);
    Parameters parameters = Parameters::load(reference("families") / family);
    const auto model = parameters.trainable_model(backend);
    const auto loss = [&] { return backend.cross_entropy(model->forward({backend}, tokens).logits, targets).nats; };
    Tape tape(backend);
    for (const Parameter& each : parameters.all()) tape.watch(each.value);
    {
      const Ctx ctx{.backend = backend, .tape = &tape};
      const Tensor logits = model->forward(ctx, tokens).logits;
      const Backend::Recording recording(backend, &tape);
      tape.backward(backend.cross_entropy(logits, targets).mean, Tensor::full({1}, 1.0f));
    }
    int routers = 0, experts = 0;
    for (Parameter& each : parameters.all()) {
      const bool router = each.name.ends_with(".gate.weight"), expert = each.name.find("experts.") != std::string::npos;
      if (!router && !expert) continue;
      CAPTURE(each.name);
      const Tensor gradient = tape.gradient(each.value).packed();
      for (Index i = 1; i < each.value.size(); i += each.value.size() / 3) {
        const auto [slope, wide] = slopes(each.value.mutable_data()[i], loss);
        if (std::abs(slope - wide) > 1e-3) continue;  // a token goes to another expert in between
        CHECK(gradient.data()[i] == doctest::Approx(slope).epsilon(0.02).scale(0.02));
        if (std::abs(slope) > 1e-3) ++(router ? routers : experts);
      }
    }
    CHECK(routers > 1);
    CHECK(experts > 5);
  }
  // Interleaved as GPT-OSS stores its gates, they are copies.
  CHECK_THROWS_WITH_AS(Parameters::load(reference("families") / "gpt_oss").trainable_model(backend),
                       doctest::Contains("not trained"), Error);
}

namespace {
std::string recipe_text(const std::string& more, const std::string& training = "") {
  return R"({"name": "small", "task": {"kind": "repeated", "shortest_period": 3, "longest_period": 5},
             "model": {"family": "mixtral", "layers": 2, "heads": 2, "width": 16, "mlp": 8, "context": 32)" +
         more + R"(}, "training": {"steps": 60, "batch": 4, "learning_rate": 0.01, "evaluate_rows": 2)" + training +
         "}}";
}
}  // namespace

TEST_CASE("a recipe trains a model with experts, and the price of balance makes routers share tokens out") {
  const std::string four = R"(, "experts": 4, "experts_per_token": 2)";
  std::vector<double> ended;
  for (const std::string price : {"", R"(, "expert_balance": 0.5)"}) {
    Backend backend(1);
    Trainer trainer(parse_recipe(recipe_text(four, price), "test"), backend);
    CHECK(trainer.learner().config().experts.count == 4);
    CHECK(trainer.learner().config().experts.per_token == 2);
    trainer.run(60);
    // The loss is the language's alone: the same as without its price, measured on the same weights.
    const Batch batch = trainer.task().batch(61, 4, 32);
    const double alone = trainer.learner().loss(batch);
    CHECK(trainer.learner().step(batch).loss == doctest::Approx(alone));
    double sum = 0;  // over the last steps
    for (std::size_t i = 50; i < 60; ++i) sum += trainer.curve()[i].balance;
    ended.push_back(sum / 10);
    // It is kept with the numbers of the training, and read back.
    const auto file = testing::scratch_dir("balance") / "training.json";
    write_file_atomically(file, training_json({trainer.recipe(), 60, 1, trainer.curve(), {}}));
    const TrainingRecord record = load_training_record(file);
    REQUIRE(!record.curve.empty());
    CHECK(record.curve.back().balance == doctest::Approx(trainer.curve().back().balance));
  }
  CHECK(ended[1] < 1.02);
  CHECK(ended[0] > 1.05);
}

TEST_CASE("recipes say what experts may be, and read back as they are") {
  const Recipe recipe =
      parse_recipe(recipe_text(R"(, "experts": 6, "experts_per_token": 3)", R"(, "expert_balance": 0.02)"), "test");
  CHECK(recipe.model.experts == 6);
  CHECK(recipe.model.experts_per_token == 3);
  CHECK(recipe.optimizer.expert_balance == 0.02);
  CHECK(parse_recipe(recipe_json(recipe), "again").model == recipe.model);
  CHECK(recipe_json(parse_recipe(recipe_json(recipe), "again")) == recipe_json(recipe));
  CHECK(parse_recipe(recipe_text(""), "test").model.experts == 8);
  CHECK_THROWS_WITH_AS(parse_recipe(recipe_text(R"(, "experts": 2, "experts_per_token": 3)"), "test"),
                       doctest::Contains("experts_per_token"), Error);
  std::string other = recipe_text("", R"(, "expert_balance": 0.02)");
  other.replace(other.find("mixtral"), 7, "llama");
  CHECK_THROWS_WITH_AS(parse_recipe(other, "test"), doctest::Contains("expert_balance"), Error);
}

}  // namespace headscope::training_experts_test
