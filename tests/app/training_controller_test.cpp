#include "app/state/training_controller.h"
#include "app/state/explorer.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "core/base/file.h"
#include "tests/support/paths.h"
#include "tests/support/small_recipe.h"

namespace headscope::training_controller_test {

using testing::scratch_dir;

namespace {

struct Room {
  Explorer explorer{{1, nullptr}};
  TrainingController controller{explorer.jobs, explorer.editor, explorer.run};
  double now = 0;

  void turn() {
    explorer.frame(now += 0.01);
    controller.frame();
  }
  template <class Done>
  bool until(Done done) {
    const auto begin = std::chrono::steady_clock::now();
    while (!done()) {
      turn();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(120)) return false;
    }
    return true;
  }
  /// Starts `recipe` and lets it run to `step`.
  void train(const Recipe& recipe, std::int64_t step) {
    controller.draft() = recipe;
    controller.start();
    controller.pause_at(step);
    REQUIRE(until([&] {
      return controller.progress().step >= step && controller.phase() != TrainingController::Phase::running;
    }));
  }
  std::string message() const { return explorer.jobs.message() ? explorer.jobs.message()->text : ""; }
};

bool same(const std::vector<TrainingPoint>& a, const std::vector<TrainingPoint>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

std::vector<TrainingPoint> unbroken(const Recipe& recipe) {
  Backend backend(1);
  Trainer trainer(recipe, backend);
  trainer.run(recipe.steps);
  return trainer.curve();
}

}  // namespace

TEST_CASE("training at the desk is the recipe's training, whatever the slices, and ends by itself") {
  Room room;
  room.train(testing::small_recipe(), 40);
  CHECK(room.message() == "");
  CHECK(room.controller.phase() == TrainingController::Phase::finished);
  CHECK(same(room.controller.curve(), unbroken(testing::small_recipe())));
  REQUIRE(room.controller.moments().size() >= 2);
  CHECK(room.controller.moments().front().view->step == 0);
  CHECK(room.controller.moments().back().view->step == 40);
  const TrainingView& view = *room.controller.moment()->view;
  CHECK(view.facts->trace->maps.size() == 2);
  CHECK(view.facts->trace->tokens.size() <= 24);
  REQUIRE(room.controller.head_history().size() == 4);
  for (const auto& history : room.controller.head_history()) {
    CHECK(history.steps.size() == room.controller.moments().size());
    REQUIRE(history.heads.size() == 2);
    const auto column = static_cast<std::size_t>(&metric(history.metric) - metrics().data());
    for (std::size_t head = 0; head < 2; ++head) {
      const double shown = view.facts->table.value[head][column], kept = history.heads[head].back();
      CHECK((shown == kept || (std::isnan(shown) && std::isnan(kept))));
    }
  }
}

TEST_CASE(
    "a translator in training: cross-attention on a fixed pair, its errors over time, what it makes of the source") {
  Recipe recipe = testing::small_recipe();
  recipe.task = {.kind = "translate", .vocabulary = 640, .vocabulary_stories = 300};
  recipe.model = {.family = "bart", .layers = 1, .heads = 2, .kv_heads = 2, .width = 16, .mlp = 16, .context = 48};
  Room room;
  room.train(recipe, 12);
  CHECK(room.message() == "");
  const TrainingView& view = *room.controller.moment()->view;
  const Trace& cross = *view.facts->trace;
  CHECK(cross.model.stack == Stack::cross);
  CHECK(cross.maps.size() == 2);
  CHECK(cross.maps[0].n_query() == static_cast<Index>(cross.query_tokens.size()));
  REQUIRE(view.alignment_errors.size() == 2);
  for (const double error : view.alignment_errors) CHECK((error >= 0 && error <= 1));
  const HeadHistory& history = room.controller.head_history().back();
  CHECK(history.metric == HeadHistory::alignment);
  REQUIRE(history.heads.size() == 2);
  CHECK(history.heads[1].back() == view.alignment_errors[1]);
  CHECK(view.sample.text().starts_with(cross.text + "\n→ "));
  CHECK(view.sample.text().find("should be: ") != std::string::npos);  // after 12 steps it knows nothing yet
  // Saved and opened, it reads that pair.
  room.controller.save(headscope::testing::scratch_dir("translator_at_the_desk") / "small", true);
  REQUIRE(room.until([&] { return !room.explorer.state().document.source.empty(); }));
  CHECK(room.explorer.state().document.source == cross.text);
}

TEST_CASE("a run pauses, takes one step, goes on, and goes back to a moment to fork") {
  Room room;
  room.train(testing::small_recipe(), 20);
  CHECK(room.controller.phase() == TrainingController::Phase::paused);
  CHECK(room.controller.progress().step == 20);
  room.controller.pause_at(0);
  room.controller.step();
  REQUIRE(room.until([&] { return room.controller.phase() == TrainingController::Phase::paused; }));
  CHECK(room.controller.progress().step == 21);
  room.controller.resume();
  REQUIRE(room.until([&] { return room.controller.phase() == TrainingController::Phase::finished; }));

  // Forked with the same settings it goes the way it went before, bit for bit.
  const auto& moments = room.controller.moments();
  std::size_t at = 0;
  while (moments[at].view->step != 20) ++at;
  room.controller.show(at);
  CHECK(room.controller.moment()->view->step == 20);
  room.controller.fork();
  REQUIRE(room.until([&] { return room.controller.phase() == TrainingController::Phase::finished; }));
  CHECK(same(room.controller.curve(), unbroken(testing::small_recipe())));
  CHECK_FALSE(room.controller.shown());
  CHECK(room.controller.head_history()[0].steps.back() == 40);
  for (std::size_t i = 1; i < moments.size(); ++i) CHECK(moments[i].view->step > moments[i - 1].view->step);
}

TEST_CASE("the learning rate changes from the next step on") {
  Room room;
  room.train(testing::small_recipe(), 20);
  room.controller.set_learning_rate(5e-2);
  room.controller.pause_at(0);
  room.controller.resume();
  REQUIRE(room.until([&] { return room.controller.phase() == TrainingController::Phase::finished; }));
  const auto plain = unbroken(testing::small_recipe());
  const auto& curve = room.controller.curve();
  REQUIRE(curve.size() == plain.size());
  for (std::size_t i = 0; i < 20; ++i) CHECK(curve[i].loss == plain[i].loss);
  CHECK(curve.back().loss != plain.back().loss);
}

namespace {
Recipe recipe_with_experts() {
  Recipe recipe = testing::small_recipe();
  recipe.model.family = "mixtral";
  recipe.model.mlp = 8;
  recipe.model.experts = 4;
  recipe.model.experts_per_token = 2;
  recipe.optimizer.expert_balance = 0.02;
  return recipe;
}
}  // namespace

TEST_CASE("the price of the balance of experts changes from the next step on, stays in the recipe, and a fork has it") {
  Room room;
  room.train(recipe_with_experts(), 20);
  room.controller.set_expert_balance(0.5);
  CHECK(room.controller.draft().optimizer.expert_balance == 0.5);
  room.controller.pause_at(0);
  room.controller.resume();
  REQUIRE(room.until([&] { return room.controller.phase() == TrainingController::Phase::finished; }));
  Backend backend(1);
  Trainer by_hand(recipe_with_experts(), backend);
  by_hand.run(20);
  OptimizerSettings settings = by_hand.recipe().optimizer;
  settings.expert_balance = 0.5;
  by_hand.set_optimizer(settings);
  by_hand.run(20);
  CHECK(same(room.controller.curve(), by_hand.curve()));
  CHECK_FALSE(same(room.controller.curve(), unbroken(recipe_with_experts())));
  CHECK(room.controller.running().optimizer.expert_balance == 0.5);
  const auto folder = scratch_dir("training-balance") / "model";
  room.controller.save(folder, false);
  REQUIRE(room.until([&] { return room.message().find("Saved the model") != std::string::npos; }));
  CHECK(load_recipe(folder / "recipe.json").optimizer.expert_balance == 0.5);

  std::size_t at = 0;
  while (room.controller.moments()[at].view->step < 20) ++at;
  room.controller.show(at);
  room.controller.draft().optimizer.expert_balance = 0.25;
  room.controller.fork();
  REQUIRE(room.until([&] { return room.controller.phase() == TrainingController::Phase::finished; }));
  CHECK(room.controller.running().optimizer.expert_balance == 0.25);

  // The draft alone, where what runs has no experts.
  room.train(testing::small_recipe(), 20);
  room.controller.draft() = recipe_with_experts();
  room.controller.set_expert_balance(0.5);
  room.controller.pause_at(0);
  room.controller.resume();
  REQUIRE(room.until([&] { return room.controller.phase() == TrainingController::Phase::finished; }));
  CHECK(room.controller.running().optimizer.expert_balance == 0);
  CHECK(same(room.controller.curve(), unbroken(testing::small_recipe())));
}

TEST_CASE("rates may be changed where a recipe could not be begun with") {
  Room room;
  Recipe recipe = testing::small_recipe();
  recipe.task.kind = "stories";
  recipe.task.vocabulary = 257;  // no story fits
  recipe.task.vocabulary_stories = 4;
  room.controller.draft() = recipe;
  REQUIRE(room.controller.complaint() == "");
  room.controller.start();
  REQUIRE(room.until([&] { return room.message().find("held-out texts") != std::string::npos; }));
  room.controller.set_learning_rate(1e-3);
  REQUIRE(room.until([&] { return !room.explorer.jobs.busy(); }));
  CHECK(room.controller.phase() == TrainingController::Phase::idle);
}

TEST_CASE("exploring goes on while a model trains") {
  Room room;
  Recipe recipe = testing::small_recipe();
  recipe.steps = recipe.optimizer.schedule_steps = 1'000'000;
  room.controller.draft() = recipe;
  room.controller.start();
  REQUIRE(room.until([&] { return room.controller.progress().step > 5; }));
  room.explorer.files.open_example();
  REQUIRE(room.until([&] { return room.explorer.results().facts != nullptr; }));
  const std::int64_t step = room.controller.progress().step;
  CHECK(room.until([&] { return room.controller.progress().step > step; }));
  room.controller.stop();
  CHECK_FALSE(room.controller.has_run());
}

TEST_CASE("moments stay inside their memory, the first and the last among them") {
  Room room;
  TrainingController controller(room.explorer.jobs, room.explorer.editor, room.explorer.run, 400'000);
  Recipe recipe = testing::small_recipe();
  controller.draft() = recipe;
  controller.start();
  controller.pause_at(1);
  const auto turn = [&] {
    room.explorer.frame(room.now += 0.01);
    controller.frame();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  for (std::int64_t step = 1; step <= 20; ++step) {
    controller.pause_at(step);
    controller.resume();
    for (int i = 0; i < 60'000 && controller.progress().step < step; ++i) turn();
  }
  REQUIRE(controller.progress().step == 20);
  std::size_t bytes = 0;
  for (const TrainingMoment& moment : controller.moments()) bytes += moment.checkpoint->bytes();
  CHECK(bytes <= 400'000);
  CHECK(controller.moments().size() < 20);
  CHECK(controller.moments().size() >= 3);
  CHECK(controller.moments().front().view->step == 0);
  CHECK(controller.moments().back().view->step == 20);
  CHECK(controller.head_history()[0].steps.size() >= 20);  // numbers are kept of all
}

TEST_CASE("a shown moment is saved as a model that opens with its text") {
  Room room;
  room.train(testing::small_recipe(), 10);
  const auto folder = scratch_dir("training-desk") / "model";
  room.controller.save(folder, true);
  REQUIRE(room.until([&] { return room.explorer.results().run && room.explorer.results().model_folder == folder; }));
  CHECK(room.explorer.results().run->trace->maps.size() == 2);
  CHECK(room.explorer.results().run->trace->text == room.controller.moment()->view->facts->trace->text);
}

TEST_CASE("a recipe that makes no sense says what is wrong, and a run of it becomes the message") {
  Room room;
  room.controller.draft() = testing::small_recipe();
  CHECK(room.controller.complaint() == "");
  room.controller.draft().model.heads = 3;
  room.controller.draft().model.kv_heads = 3;
  CHECK(room.controller.complaint() != "");
  room.controller.start();
  REQUIRE(room.until([&] { return !room.message().empty(); }));
  CHECK(room.controller.phase() == TrainingController::Phase::idle);
  room.controller.choose("no/such/recipe.json");
  CHECK(room.message().find("no/such/recipe.json") != std::string::npos);
}

TEST_CASE("a fork keeps the later steps: the branch that was left can be gone back to, and goes on as if never left") {
  Room room;
  room.train(testing::small_recipe(), 10);
  room.controller.pause_at(30);
  room.controller.resume();
  REQUIRE(room.until([&] { return room.controller.phase() == TrainingController::Phase::paused; }));
  std::size_t at = 0;
  while (room.controller.moments()[at].view->step < 10) ++at;
  const std::int64_t from = room.controller.moments()[at].view->step;
  REQUIRE(from == 10);
  const auto before = room.controller.curve();
  room.controller.show(at);
  room.controller.draft().optimizer.learning_rate = 5e-2;
  room.controller.pause_at(25);
  room.controller.fork();
  REQUIRE(room.until([&] { return room.controller.progress().step == 25; }));
  REQUIRE(room.controller.other_branches().size() == 1);
  const TrainingBranch& left = room.controller.other_branches().front();
  CHECK(left.progress.step == 30);
  CHECK(left.moments.back().view->step == 30);
  CHECK(same(left.curve, before));
  CHECK(room.controller.branch().parent == left.id);
  CHECK(room.controller.branch().from == from);
  CHECK(room.controller.curve()[static_cast<std::size_t>(from)].step == from + 1);
  CHECK(room.controller.curve().back().loss != before[24].loss);  // at the other rate
  const auto forked = room.controller.curve();
  const int forked_id = room.controller.branch().id;

  room.controller.pause_at(0);
  room.controller.go_back_to(left.id);
  REQUIRE(room.until([&] { return room.controller.phase() == TrainingController::Phase::paused; }));
  CHECK(room.controller.progress().step == 30);
  room.controller.resume();
  REQUIRE(room.until([&] { return room.controller.phase() == TrainingController::Phase::finished; }));
  CHECK(same(room.controller.curve(), unbroken(testing::small_recipe())));
  REQUIRE(room.controller.other_branches().size() == 1);
  CHECK(room.controller.other_branches().front().id == forked_id);
  CHECK(same(room.controller.other_branches().front().curve, forked));
}

TEST_CASE("forked while it runs, a branch keeps the steps that were not on screen yet") {
  Room room;
  Recipe recipe = testing::small_recipe();
  recipe.steps = recipe.optimizer.schedule_steps = 100'000;
  room.controller.draft() = recipe;
  room.controller.start();
  REQUIRE(room.until([&] { return room.controller.moments().size() >= 2; }));
  room.controller.show(0);
  const std::int64_t known = room.controller.progress().step;
  room.controller.fork();
  REQUIRE(room.until([&] { return room.controller.phase() == TrainingController::Phase::running; }));
  const TrainingBranch& left = room.controller.other_branches().front();
  CHECK(left.progress.step >= known);
  CHECK(left.moments.back().view->step == left.progress.step);
  CHECK(left.curve.back().step == left.progress.step);
  room.controller.stop();
}

TEST_CASE("begun again, the run before is a branch too") {
  Room room;
  room.train(testing::small_recipe(), 20);
  room.controller.draft().seed = 9;
  room.controller.pause_at(5);
  room.controller.start();
  REQUIRE(room.until([&] { return room.controller.progress().step == 5; }));
  REQUIRE(room.controller.other_branches().size() == 1);
  CHECK(room.controller.other_branches().front().progress.step == 20);
  CHECK(room.controller.branch().parent == -1);
}

TEST_CASE("a run that was kept is taken up by another program, and ends with the same bits") {
  const auto file = scratch_dir("training-keep") / "training.safetensors";
  {
    Room room;
    CHECK(room.controller.unsaved() == "");
    room.train(testing::small_recipe(), 17);
    CHECK(room.controller.unsaved() == "the training of small, at step 17 of 40");
    room.controller.keep(file);
    CHECK(room.controller.keeping());
    REQUIRE(room.until([&] { return !room.controller.keeping(); }));
    CHECK(room.message() == "");
  }
  Room room;
  room.controller.take_up(file);
  REQUIRE(room.until([&] { return room.controller.phase() == TrainingController::Phase::paused; }));
  CHECK(room.controller.progress().step == 17);
  CHECK(room.controller.draft().name == "small");
  room.controller.resume();
  REQUIRE(room.until([&] { return room.controller.phase() == TrainingController::Phase::finished; }));
  CHECK(same(room.controller.curve(), unbroken(testing::small_recipe())));
  CHECK(room.controller.unsaved() != "");  // finished, and no model of it anywhere
  const auto folder = scratch_dir("training-keep-model") / "model";
  room.controller.save(folder, false);
  REQUIRE(room.until([&] { return room.controller.unsaved().empty(); }));

  // A model that lies there is not written over unasked.
  const std::string first = read_file(folder / "model.safetensors");
  room.controller.show(0);
  room.controller.save(folder, false);
  REQUIRE(room.until([&] { return room.message().find("expected a folder without a model") != std::string::npos; }));
  CHECK(read_file(folder / "model.safetensors") == first);
  room.controller.save(folder, false, true);
  REQUIRE(room.until([&] { return room.message().starts_with("Saved the model"); }));
}

}  // namespace headscope::training_controller_test
