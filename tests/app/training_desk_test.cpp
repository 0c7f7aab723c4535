#include "app/state/explorer.h"
#include "app/state/training_desk.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "core/base/file.h"
#include "tests/support/paths.h"

using namespace headscope;
using headscope::testing::scratch_dir;

namespace {

/// A recipe that a test can wait for.
Recipe small() {
  Recipe recipe;
  recipe.name = "small";
  recipe.task.kind = "repeated";
  recipe.task.shortest_period = 4;
  recipe.task.longest_period = 8;
  recipe.model = {.family = "gpt2", .layers = 1, .heads = 2, .kv_heads = 2, .width = 16, .mlp = 0, .context = 24};
  recipe.steps = 40;
  recipe.batch = 4;
  recipe.evaluate_every = 10;
  recipe.evaluate_rows = 8;
  recipe.optimizer.schedule_steps = recipe.steps;
  return recipe;
}

struct Room {
  Explorer explorer{{1, nullptr}};
  TrainingDesk desk{explorer.jobs, explorer.editor, explorer.run};
  double now = 0;

  void turn() {
    explorer.frame(now += 0.01);
    desk.frame();
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
    desk.draft() = recipe;
    desk.start();
    desk.pause_at(step);
    REQUIRE(until([&] { return desk.progress().step >= step && desk.phase() != TrainingDesk::Phase::running; }));
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
  room.train(small(), 40);
  CHECK(room.message() == "");
  CHECK(room.desk.phase() == TrainingDesk::Phase::finished);
  CHECK(same(room.desk.curve(), unbroken(small())));
  REQUIRE(room.desk.moments().size() >= 2);
  CHECK(room.desk.moments().front().view->step == 0);
  CHECK(room.desk.moments().back().view->step == 40);
  const TrainingView& view = *room.desk.moment()->view;
  CHECK(view.facts->trace->maps.size() == 2);
  CHECK(view.facts->trace->tokens.size() <= 24);
  REQUIRE(room.desk.head_history().size() == 4);
  for (const auto& history : room.desk.head_history()) {
    CHECK(history.steps.size() == room.desk.moments().size());
    REQUIRE(history.heads.size() == 2);
    const auto column = static_cast<std::size_t>(&metric(history.metric) - metrics().data());
    for (std::size_t head = 0; head < 2; ++head) {
      const double shown = view.facts->table.value[head][column], kept = history.heads[head].back();
      CHECK((shown == kept || (std::isnan(shown) && std::isnan(kept))));
    }
  }
}

TEST_CASE("a run pauses, takes one step, goes on, and goes back to a moment to fork") {
  Room room;
  room.train(small(), 20);
  CHECK(room.desk.phase() == TrainingDesk::Phase::paused);
  CHECK(room.desk.progress().step == 20);
  room.desk.pause_at(0);
  room.desk.step();
  REQUIRE(room.until([&] { return room.desk.phase() == TrainingDesk::Phase::paused; }));
  CHECK(room.desk.progress().step == 21);
  room.desk.resume();
  REQUIRE(room.until([&] { return room.desk.phase() == TrainingDesk::Phase::finished; }));

  // Forked with the same settings it goes the way it went before, bit for bit.
  const auto& moments = room.desk.moments();
  std::size_t at = 0;
  while (moments[at].view->step != 20) ++at;
  room.desk.show(at);
  CHECK(room.desk.moment()->view->step == 20);
  room.desk.fork();
  REQUIRE(room.until([&] { return room.desk.phase() == TrainingDesk::Phase::finished; }));
  CHECK(same(room.desk.curve(), unbroken(small())));
  CHECK_FALSE(room.desk.shown());
  CHECK(room.desk.head_history()[0].steps.back() == 40);
  for (std::size_t i = 1; i < moments.size(); ++i) CHECK(moments[i].view->step > moments[i - 1].view->step);
}

TEST_CASE("the learning rate changes from the next step on") {
  Room room;
  room.train(small(), 20);
  room.desk.set_learning_rate(5e-2);
  room.desk.pause_at(0);
  room.desk.resume();
  REQUIRE(room.until([&] { return room.desk.phase() == TrainingDesk::Phase::finished; }));
  const auto plain = unbroken(small());
  const auto& curve = room.desk.curve();
  REQUIRE(curve.size() == plain.size());
  for (std::size_t i = 0; i < 20; ++i) CHECK(curve[i].loss == plain[i].loss);
  CHECK(curve.back().loss != plain.back().loss);
}

TEST_CASE("exploring goes on while a model trains") {
  Room room;
  Recipe recipe = small();
  recipe.steps = recipe.optimizer.schedule_steps = 1'000'000;
  room.desk.draft() = recipe;
  room.desk.start();
  REQUIRE(room.until([&] { return room.desk.progress().step > 5; }));
  room.explorer.files.open_example();
  REQUIRE(room.until([&] { return room.explorer.results().facts != nullptr; }));
  const std::int64_t step = room.desk.progress().step;
  CHECK(room.until([&] { return room.desk.progress().step > step; }));
  room.desk.stop();
  CHECK_FALSE(room.desk.has_run());
}

TEST_CASE("moments stay inside their memory, the first and the last among them") {
  Room room;
  TrainingDesk desk(room.explorer.jobs, room.explorer.editor, room.explorer.run, 400'000);
  Recipe recipe = small();
  desk.draft() = recipe;
  desk.start();
  desk.pause_at(1);
  const auto turn = [&] {
    room.explorer.frame(room.now += 0.01);
    desk.frame();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  for (std::int64_t step = 1; step <= 20; ++step) {
    desk.pause_at(step);
    desk.resume();
    for (int i = 0; i < 60'000 && desk.progress().step < step; ++i) turn();
  }
  REQUIRE(desk.progress().step == 20);
  std::size_t bytes = 0;
  for (const TrainingMoment& moment : desk.moments()) bytes += moment.checkpoint->bytes();
  CHECK(bytes <= 400'000);
  CHECK(desk.moments().size() < 20);
  CHECK(desk.moments().size() >= 3);
  CHECK(desk.moments().front().view->step == 0);
  CHECK(desk.moments().back().view->step == 20);
  CHECK(desk.head_history()[0].steps.size() >= 20);  // numbers are kept of all
}

TEST_CASE("a shown moment is saved as a model that opens with its text") {
  Room room;
  room.train(small(), 10);
  const auto folder = scratch_dir("training-desk") / "model";
  room.desk.save(folder, true);
  REQUIRE(room.until([&] { return room.explorer.results().run && room.explorer.results().model_folder == folder; }));
  CHECK(room.explorer.results().run->trace->maps.size() == 2);
  CHECK(room.explorer.results().run->trace->text == room.desk.moment()->view->facts->trace->text);
}

TEST_CASE("a recipe that makes no sense says what is wrong, and a run of it becomes the message") {
  Room room;
  room.desk.draft() = small();
  CHECK(room.desk.complaint() == "");
  room.desk.draft().model.heads = 3;
  room.desk.draft().model.kv_heads = 3;
  CHECK(room.desk.complaint() != "");
  room.desk.start();
  REQUIRE(room.until([&] { return !room.message().empty(); }));
  CHECK(room.desk.phase() == TrainingDesk::Phase::idle);
  room.desk.choose("no/such/recipe.json");
  CHECK(room.message().find("no/such/recipe.json") != std::string::npos);
}

TEST_CASE("a fork keeps the later steps: the branch that was left can be gone back to, and goes on as if never left") {
  Room room;
  room.train(small(), 10);
  room.desk.pause_at(30);
  room.desk.resume();
  REQUIRE(room.until([&] { return room.desk.phase() == TrainingDesk::Phase::paused; }));
  std::size_t at = 0;
  while (room.desk.moments()[at].view->step < 10) ++at;
  const std::int64_t from = room.desk.moments()[at].view->step;
  REQUIRE(from == 10);
  const auto before = room.desk.curve();
  room.desk.show(at);
  room.desk.draft().optimizer.learning_rate = 5e-2;
  room.desk.pause_at(25);
  room.desk.fork();
  REQUIRE(room.until([&] { return room.desk.progress().step == 25; }));
  REQUIRE(room.desk.other_branches().size() == 1);
  const TrainingBranch& left = room.desk.other_branches().front();
  CHECK(left.progress.step == 30);
  CHECK(left.moments.back().view->step == 30);
  CHECK(same(left.curve, before));
  CHECK(room.desk.branch().parent == left.id);
  CHECK(room.desk.branch().from == from);
  CHECK(room.desk.curve()[static_cast<std::size_t>(from)].step == from + 1);
  CHECK(room.desk.curve().back().loss != before[24].loss);  // at the other rate
  const auto forked = room.desk.curve();
  const int forked_id = room.desk.branch().id;

  room.desk.pause_at(0);
  room.desk.go_back_to(left.id);
  REQUIRE(room.until([&] { return room.desk.phase() == TrainingDesk::Phase::paused; }));
  CHECK(room.desk.progress().step == 30);
  room.desk.resume();
  REQUIRE(room.until([&] { return room.desk.phase() == TrainingDesk::Phase::finished; }));
  CHECK(same(room.desk.curve(), unbroken(small())));
  REQUIRE(room.desk.other_branches().size() == 1);
  CHECK(room.desk.other_branches().front().id == forked_id);
  CHECK(same(room.desk.other_branches().front().curve, forked));
}

TEST_CASE("forked while it runs, a branch keeps the steps that were not on screen yet") {
  Room room;
  Recipe recipe = small();
  recipe.steps = recipe.optimizer.schedule_steps = 100'000;
  room.desk.draft() = recipe;
  room.desk.start();
  REQUIRE(room.until([&] { return room.desk.moments().size() >= 2; }));
  room.desk.show(0);
  const std::int64_t known = room.desk.progress().step;
  room.desk.fork();
  REQUIRE(room.until([&] { return room.desk.phase() == TrainingDesk::Phase::running; }));
  const TrainingBranch& left = room.desk.other_branches().front();
  CHECK(left.progress.step >= known);
  CHECK(left.moments.back().view->step == left.progress.step);
  CHECK(left.curve.back().step == left.progress.step);
  room.desk.stop();
}

TEST_CASE("begun again, the run before is a branch too") {
  Room room;
  room.train(small(), 20);
  room.desk.draft().seed = 9;
  room.desk.pause_at(5);
  room.desk.start();
  REQUIRE(room.until([&] { return room.desk.progress().step == 5; }));
  REQUIRE(room.desk.other_branches().size() == 1);
  CHECK(room.desk.other_branches().front().progress.step == 20);
  CHECK(room.desk.branch().parent == -1);
}

TEST_CASE("a run that was kept is taken up by another program, and ends with the same bits") {
  const auto file = scratch_dir("training-keep") / "training.safetensors";
  {
    Room room;
    CHECK(room.desk.unsaved() == "");
    room.train(small(), 17);
    CHECK(room.desk.unsaved() == "the training of small, at step 17 of 40");
    room.desk.keep(file);
    CHECK(room.desk.keeping());
    REQUIRE(room.until([&] { return !room.desk.keeping(); }));
    CHECK(room.message() == "");
  }
  Room room;
  room.desk.take_up(file);
  REQUIRE(room.until([&] { return room.desk.phase() == TrainingDesk::Phase::paused; }));
  CHECK(room.desk.progress().step == 17);
  CHECK(room.desk.draft().name == "small");
  room.desk.resume();
  REQUIRE(room.until([&] { return room.desk.phase() == TrainingDesk::Phase::finished; }));
  CHECK(same(room.desk.curve(), unbroken(small())));
  CHECK(room.desk.unsaved() != "");  // finished, and no model of it anywhere
  const auto folder = scratch_dir("training-keep-model") / "model";
  room.desk.save(folder, false);
  REQUIRE(room.until([&] { return room.desk.unsaved().empty(); }));

  // A model that lies there is not written over unasked.
  const std::string first = read_file(folder / "model.safetensors");
  room.desk.show(0);
  room.desk.save(folder, false);
  REQUIRE(room.until([&] { return room.message().find("expected a folder without a model") != std::string::npos; }));
  CHECK(read_file(folder / "model.safetensors") == first);
  room.desk.save(folder, false, true);
  REQUIRE(room.until([&] { return room.message().starts_with("Saved the model"); }));
}
