// Encoders are trained on masked tokens: what a batch asks, gradients of every kind of weight by moving them, and a
// small run from recipe to folder.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/run/run_request.h"
#include "core/train/evaluation.h"
#include "core/train/trainer.h"
#include "tests/support/gradient_check.h"
#include "tests/support/paths.h"

namespace headscope::masked_training_test {

using testing::reference;
using testing::slopes;

namespace {
Recipe small_recipe() {
  return parse_recipe(R"({"name": "small", "task": {"kind": "masked", "vocabulary": 400, "vocabulary_stories": 300},
      "model": {"family": "bert", "layers": 2, "heads": 2, "width": 32, "mlp": 48, "context": 64},
      "training": {"steps": 60, "batch": 4, "learning_rate": 0.01, "warmup_steps": 5, "evaluate_every": 30,
                   "evaluate_rows": 8}})",
                      "r.json");
}
}  // namespace

TEST_CASE("a batch of masked stories asks for 15 % of its tokens, shown as training shows them, anew in every row") {
  const Recipe recipe = small_recipe();
  const auto task = make_task(recipe.task);
  const std::int32_t end = task->vocabulary().end_of_text_id(), mask = task->vocabulary().mask_id();
  CHECK(mask == end + 1);
  CHECK(task->tokenizer()->mask() == mask);
  CHECK(task->tokenizer()->behind() == end);
  int asked = 0, masked = 0, as_it_was = 0, texts = 0;
  std::set<std::vector<std::int32_t>> rows;
  for (std::int64_t step = 1; step <= 60; ++step) {
    const Batch batch = task->batch(step, 4, 64);
    REQUIRE(batch.tokens.size() == 256);
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      const bool frame = i % 64 == 0 || i % 64 == 63;
      if (frame) {
        CHECK(batch.tokens[i] == end);
        CHECK(batch.targets[i] == -1);
      }
      texts += !frame && (batch.targets[i] >= 0 || batch.tokens[i] != end);
      if (batch.targets[i] < 0) {
        CHECK(batch.tokens[i] != mask);
        continue;
      }
      CHECK(batch.targets[i] < end);  // no end of a text is asked for
      CHECK(batch.tokens[i] != end);
      ++asked;
      masked += batch.tokens[i] == mask;
      as_it_was += batch.tokens[i] == batch.targets[i];
    }
    rows.insert(batch.tokens);
    CHECK(task->batch(step, 4, 64).tokens == batch.tokens);
  }
  CHECK(rows.size() == 60);
  CHECK(static_cast<double>(asked) / texts == doctest::Approx(0.15).epsilon(0.03));
  CHECK(static_cast<double>(masked) / asked == doctest::Approx(0.8).epsilon(0.05));
  CHECK(static_cast<double>(as_it_was) / asked == doctest::Approx(0.1).epsilon(0.25));
  const HeldOut held = task->held_out(6, 4, 64);
  CHECK(held.batches.size() == 2);
  CHECK(std::isnan(held.floor));  // which nobody knows
  CHECK(held.targets == std::ranges::count_if(held.batches[0].targets, [](auto t) { return t >= 0; }) +
                            std::ranges::count_if(held.batches[1].targets, [](auto t) { return t >= 0; }));
}

TEST_CASE("the gradient of a masked loss reaches every tensor of every encoder, a few numbers of each by moving them") {
  Backend backend(1);
  const std::vector<std::int32_t> tokens{3, 17, 8, 21, 40, 3, 17, 9}, targets{-1, 12, -1, 21, -1, -1, 4, -1},
      segments{0, 0, 0, 0, 1, 1, 1, 1};
  for (const std::string family : {"bert", "distilbert", "roberta", "modernbert-biased"}) {
    CAPTURE(family);
    Parameters parameters = Parameters::load(reference("families") / family);
    const auto model = parameters.trainable_model(backend);
    Ctx plain{.backend = backend};
    if (model->config().segments > 1) plain.segments = segments;
    const auto loss = [&] { return backend.cross_entropy(model->forward(plain, tokens).logits, targets).nats; };
    Tape tape(backend);
    for (const Parameter& each : parameters.all()) tape.watch(each.value);
    {
      Ctx ctx = plain;
      ctx.tape = &tape;
      const Tensor logits = model->forward(ctx, tokens).logits;
      const Backend::Recording recording(backend, &tape);
      tape.backward(backend.cross_entropy(logits, targets).mean, Tensor::full({1}, 1.0f));
    }
    std::set<std::string> moved;
    for (Parameter& each : parameters.all()) {
      CAPTURE(each.name);
      const Tensor gradient = tape.gradient(each.value).packed();
      for (Index i = 1; i < each.value.size(); i += std::max<Index>(each.value.size() / 5, 1)) {
        const auto [near, far] = slopes(each.value.mutable_data()[i], loss);
        if (std::abs(near - far) > 5e-3) continue;  // a ReLU turns in between
        CHECK(gradient.data()[i] == doctest::Approx((4 * near - far) / 3).epsilon(0.02).scale(0.02));
        if (std::abs(near) > 1e-3) moved.insert(each.name);
      }
    }
    for (const char* part : {"mbeddings", "orm", "ayer"})
      CHECK(std::ranges::any_of(moved, [&](const std::string& name) { return name.find(part) != std::string::npos; }));
    CHECK(moved.size() > parameters.all().size() / 2);
  }
}

TEST_CASE("an encoder learns from its recipe, bit for bit again, and its folder opens as what was trained") {
  Backend backend(2);
  const Recipe recipe = small_recipe();
  Trainer trainer(recipe, backend);
  trainer.run(60);
  CHECK(trainer.curve().front().loss > 5.5);  // ln 400 = 5.99 at the start
  CHECK(trainer.progress().held_out < 5.0);
  Trainer again(recipe, backend);
  again.run(60);
  CHECK(again.progress().held_out == trainer.progress().held_out);

  const auto folder = testing::scratch_dir("masked_trainer") / "small";
  trainer.save_model(folder);
  const LoadedModel loaded = load_model(folder, backend);
  CHECK(held_out_loss(*loaded.model, Ctx{backend}, trainer.held_out()) ==
        doctest::Approx(trainer.progress().held_out).epsilon(2e-3));
  RunRequest request;
  request.text = "Anna saw a [MASK].";
  const auto trace = run(loaded, request, Ctx{backend});
  CHECK(trace->tokens.front().id == trace->tokens.back().id);
  CHECK(std::ranges::count(trace->tokens, true, &Token::masked) == 1);
  // The space before it is its own, as it would be a word's.
  CHECK(std::ranges::count(trace->tokens, "␣", &Token::label) == 0);
  CHECK(recipe_json(load_recipe(folder / "recipe.json")) == recipe_json(recipe));
}

TEST_CASE("masked tokens are for encoders, and encoders for masked tokens") {
  const auto fault = [](const char* task, const char* family) {
    try {
      parse_recipe(std::string(R"({"name": "a", "task": {"kind": ")") + task + R"("}, "model": {"family": ")" + family +
                       R"("}})",
                   "r.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(fault("masked", "gpt2").find("\"bert\", which tells masked tokens") != std::string::npos);
  CHECK(fault("stories", "bert").find("say what comes next") != std::string::npos);
  CHECK(fault("masked", "bert").empty());
}

}  // namespace headscope::masked_training_test
