// The trainer: it learns, goes on bit for bit through a file, stops cleanly, and leaves a model that the app opens.

#include "core/train/trainer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/run/run_request.h"
#include "core/train/evaluation.h"
#include "tests/support/paths.h"

namespace headscope::trainer_test {

namespace {
Recipe small_recipe() {
  return parse_recipe(R"({
    "name": "small",
    "task": {"kind": "repeated", "seed": 5, "shortest_period": 3, "longest_period": 6},
    "model": {"family": "gpt2", "layers": 2, "heads": 2, "width": 16, "mlp": 32, "context": 20},
    "training": {"steps": 12, "batch": 4, "seed": 9, "learning_rate": 0.01, "warmup_steps": 2, "evaluate_every": 4,
                 "evaluate_rows": 6}
  })",
                      "test");
}

void check_same(const Trainer& a, const Trainer& b) {
  const auto one = a.checkpoint(), two = b.checkpoint();
  CHECK(one.step == two.step);
  CHECK(one.curve == two.curve);
  REQUIRE(one.state.size() == two.state.size());
  for (const auto& [name, tensor] : one.state) {
    const auto values = tensor.values(), others = two.state.at(name).values();
    INFO(name);
    CHECK(std::equal(values.begin(), values.end(), others.begin(), others.end()));
  }
}
}  // namespace

TEST_CASE("trainer: resumed from a file it has the bits of the unbroken run") {
  Backend backend(2);
  Trainer unbroken(small_recipe(), backend);
  unbroken.run(100);
  CHECK(unbroken.progress().finished());
  CHECK(unbroken.curve().size() == 12);

  const auto file = testing::scratch_dir("trainer_resume") / "checkpoint.safetensors";
  {
    Trainer first(small_recipe(), backend);
    first.run(5);
    CHECK(first.progress().step == 5);
    save_checkpoint(first.checkpoint(), file);
    first.run(3);  // what happens after the checkpoint does not matter to it
  }
  Backend other(1);
  Trainer second(load_checkpoint(file), other);
  CHECK(second.progress().step == 5);
  CHECK(second.progress().held_out_step == 4);
  second.run(100);
  check_same(unbroken, second);
}

TEST_CASE("trainer: a fork in memory leaves its parent alone; another seed gives other weights") {
  Backend backend(2);
  Trainer parent(small_recipe(), backend);
  parent.run(4);
  const Checkpoint moment = parent.checkpoint();
  CHECK(moment.bytes() > 1000);
  Trainer fork(moment, backend);
  OptimizerSettings faster = fork.recipe().optimizer;
  faster.learning_rate = 0.02;
  fork.set_optimizer(faster);
  fork.run(2);
  parent.run(2);
  CHECK(fork.curve().back().loss != parent.curve().back().loss);
  Trainer again(moment, backend);
  again.run(2);
  check_same(parent, again);
  Recipe other = small_recipe();
  other.seed = 10;
  Trainer different(other, backend);
  different.run(1);
  CHECK(different.curve()[0].loss != parent.curve()[0].loss);
}

TEST_CASE("trainer: cancelled between steps it can go on; progress says where it stands") {
  Backend backend(2);
  Trainer trainer(small_recipe(), backend);
  std::stop_source stop;
  std::int64_t calls = 0;
  CHECK_THROWS_AS(trainer.run(100, stop.get_token(),
                              [&](const TrainingProgress& p) {
                                CHECK(p.step == ++calls);
                                CHECK(p.steps == 12);
                                CHECK(p.floor == trainer.held_out().floor);
                                CHECK(std::isnan(p.held_out) == (p.step < 4));
                                if (p.step == 5) stop.request_stop();
                              }),
                  Cancelled);
  CHECK(trainer.progress().step == 5);
  trainer.run(100);
  Trainer unbroken(small_recipe(), backend);
  unbroken.run(100);
  check_same(trainer, unbroken);
}

TEST_CASE("trainer: weights that blow up stop the run with step and tensor, and nothing is lost") {
  Backend backend(2);
  Recipe recipe = small_recipe();
  recipe.optimizer.learning_rate = 900;
  recipe.optimizer.clip_norm = 0;
  Trainer trainer(recipe, backend);
  OptimizerSettings wild = recipe.optimizer;
  wild.warmup_steps = 0;
  wild.weight_decay = 900;
  trainer.set_optimizer(wild);
  std::string message;
  try {
    trainer.run(100);
  } catch (const Error& error) {
    message = error.what();
  }
  INFO(message);
  CHECK(message.find("step") != std::string::npos);
  CHECK(trainer.learner().steps() == trainer.progress().step);
  CHECK(static_cast<std::int64_t>(trainer.curve().size()) == trainer.progress().step);
}

TEST_CASE("trainer: it learns, and the saved model is the one that was trained, to F16") {
  Backend backend(2);
  Recipe recipe = small_recipe();
  recipe.steps = 60;
  recipe.batch = 16;
  Trainer trainer(recipe, backend);
  trainer.run(60);
  CHECK(trainer.curve().front().loss > 5.4);  // ln 257 = 5.55 at the start
  CHECK(trainer.progress().held_out < 4.6);   // ln 95 = 4.55: which characters there are
  const auto folder = testing::scratch_dir("trainer_model") / "small";
  trainer.save_model(folder);
  const LoadedModel loaded = load_model(folder, backend);
  REQUIRE(loaded.tokenizer);
  CHECK(loaded.model->info().dtype == "F16");
  CHECK(loaded.tokenizer->adds_bos());
  const Ctx ctx{backend};
  CHECK(held_out_loss(*loaded.model, ctx, trainer.held_out()) ==
        doctest::Approx(trainer.progress().held_out).epsilon(2e-3));
  CHECK(recipe_json(load_recipe(folder / "recipe.json")) == recipe_json(recipe));
  const TrainingRecord record = load_training_record(folder / "training.json");
  CHECK(record.steps == 60);
  CHECK(record.curve.size() == 15);
  CHECK(record.curve.back().held_out == trainer.progress().held_out);
}

TEST_CASE("checkpoint: files that are none are refused") {
  const auto folder = testing::scratch_dir("checkpoints");
  CHECK_THROWS_AS(load_checkpoint(folder / "none.safetensors"), Error);
  write_file_atomically(folder / "text.safetensors", "this is no tensor file");
  CHECK_THROWS_AS(load_checkpoint(folder / "text.safetensors"), Error);
  CHECK_THROWS_AS(load_checkpoint(testing::source_dir() / "assets/examples/induction/model.safetensors"), Error);
  Backend backend(1);
  Trainer trainer(small_recipe(), backend);
  trainer.run(1);
  Checkpoint broken = trainer.checkpoint();
  broken.step = 7;
  CHECK_THROWS_AS(Trainer(broken, backend), Error);
  broken = trainer.checkpoint();
  broken.state.erase(broken.state.begin());
  CHECK_THROWS_AS(Trainer(broken, backend), Error);
}

}  // namespace headscope::trainer_test
