// The Train workspace, used as a person uses it: start, pause, scrub, save.

#include "tests/gui/explore.h"
#include "tests/support/paths.h"
#include "tests/support/small_recipe.h"

namespace headscope::train_test {

using testing::Explore;

namespace {
/// The Train workspace with a person in front of it.
struct Train {
  Explore e;
  TrainingController controller{e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run};
  TrialController trials{e.app.explorer().jobs};
  TrainWorkspace train{controller, trials};
  Train() {
    e.app.add(train);
    e.driver.frames(2);
    e.driver.click("Train");
    e.driver.frames(2);
  }
};
}  // namespace

TEST_CASE("a run is started, paused, scrubbed back, saved and opened") {
  HEADSCOPE_NEEDS_DISPLAY();
  Train t;
  Explore& e = t.e;
  TrainingController& controller = t.controller;
  Recipe& draft = controller.draft();
  draft = testing::small_recipe();
  draft.steps = draft.optimizer.schedule_steps = 1'000'000;
  e.driver.frames(2);
  REQUIRE(controller.complaint() == "");
  e.driver.click("Start training");
  REQUIRE(e.driver.until([&] { return controller.moments().size() >= 3; }, 20'000));
  e.driver.click("Pause");
  CHECK(controller.phase() == TrainingController::Phase::paused);
  int quiet = 0;  // what was under way is still taken in
  REQUIRE(e.driver.until([&] { return (quiet = e.app.settled() ? quiet + 1 : 0) > 8; }, 20'000));
  const std::int64_t step = controller.progress().step;
  e.driver.frames(5);
  CHECK(controller.progress().step == step);

  const Item scrubber = e.driver.item("##moment");
  e.driver.drag(scrubber.center(), {scrubber.min.x + 2, scrubber.center().y});
  REQUIRE(controller.shown());
  CHECK(*controller.shown() == 0);
  CHECK(controller.moment()->view->step == 0);
  e.driver.click("Newest");
  CHECK_FALSE(controller.shown());

  e.driver.click("Step");
  REQUIRE(e.driver.until([&] { return controller.progress().step == step + 1; }, 20'000));

  const auto folder = headscope::testing::scratch_dir("gui-train") / "kept";
  e.driver.click("##training folder");
  e.driver.type(folder.string());
  e.driver.click("Open in Explore");
  REQUIRE(e.driver.until([&] { return e.results().run && e.results().run->trace->model.dims.d_model == 16; }, 20'000));
  CHECK(e.results().model_folder == folder);
  CHECK(e.app.requests().workspace == 0);
  e.driver.key(ImGuiKey_2, ImGuiMod_Alt);
  CHECK(e.app.requests().workspace == 1);
  controller.stop();
}

TEST_CASE("a recipe of one family becomes one of the other, without what only the first has") {
  HEADSCOPE_NEEDS_DISPLAY();
  Train t;
  Explore& e = t.e;
  TrainingController& controller = t.controller;
  controller.choose(headscope::testing::source_dir() / "models/tiny-gpt2/recipe.json");
  REQUIRE(controller.draft().model.first_positions == "sinusoids");
  CHECK_FALSE(e.driver.shown("##Head width"));
  e.driver.click("Llama");
  CHECK(controller.complaint() == "");
  CHECK(e.driver.shown("##Head width"));
  controller.draft().model.d_head = 64;
  e.driver.click("GPT-2");
  CHECK(controller.complaint() == "");
  CHECK(controller.draft().model.head_width() == 32);
  // A state space has no MLP, Mamba no heads, and neither a softmax whose entropy could have a price.
  REQUIRE(controller.draft().optimizer.attention_entropy > 0);
  e.driver.click("Mamba");
  CHECK(controller.complaint() == "");
  CHECK(e.driver.shown("##States"));
  CHECK_FALSE(e.driver.shown("##MLP width"));
  CHECK_FALSE(e.driver.shown("##Heads"));
  e.driver.click("Mamba-2");
  CHECK(controller.complaint() == "");
  CHECK(e.driver.shown("##Heads"));
  e.driver.click("GPT-2");
  CHECK(controller.complaint() == "");
  CHECK(e.driver.shown("##MLP width"));
  // Experts have a price on uneven loads, which goes with them.
  CHECK_FALSE(e.driver.shown("##Experts"));
  e.driver.click("Mixtral");
  CHECK(controller.complaint() == "");
  CHECK(controller.draft().optimizer.expert_balance > 0);
  for (const char* field : {"##Expert width", "##Experts", "##Per token", "##Key heads"}) CHECK(e.driver.shown(field));
  REQUIRE(e.driver.shown("Price of balance"));
  e.driver.click("Price of balance");  // the middle of its way
  CHECK(controller.draft().optimizer.expert_balance == doctest::Approx(0.25).epsilon(0.02));
  e.driver.hover("Price of balance");
  CHECK(e.driver.until([&] { return e.driver.told("Nats of loss that a unit of the balance of experts costs"); }));
  controller.draft().model.experts_per_token = 9;
  CHECK(controller.complaint().find("experts_per_token") != std::string::npos);
  controller.draft().model.experts_per_token = 2;
  e.driver.click("Llama");
  CHECK(controller.complaint() == "");
  CHECK(controller.draft().optimizer.expert_balance == 0);
  CHECK_FALSE(e.driver.shown("Price of balance"));
  e.driver.click("Mixtral");  // the price that was chosen, not the usual one
  CHECK(controller.draft().optimizer.expert_balance == doctest::Approx(0.25).epsilon(0.02));
  e.driver.double_click("Price of balance");
  CHECK(controller.draft().optimizer.expert_balance == 0.02);
  // A recipe may ask for up to 10: the slider goes as far as it asks, and then as far as is usual again.
  const auto drag_to = [&](float share) {
    const Item way = e.driver.item("Price of balance");
    const ImVec2 to{way.min.x + share * (way.max.x - way.min.x), way.center().y};
    e.driver.drag({to.x - 20, to.y}, to);
  };
  controller.draft().optimizer.expert_balance = 2;
  e.driver.frames(3);
  CHECK(controller.draft().optimizer.expert_balance == 2);
  drag_to(1);
  CHECK(controller.draft().optimizer.expert_balance == 2);
  drag_to(0.5f);
  CHECK(controller.draft().optimizer.expert_balance == doctest::Approx(1).epsilon(0.02));
  e.driver.double_click("Price of balance");
  CHECK(controller.draft().optimizer.expert_balance == 0.02);
  drag_to(0.5f);
  CHECK(controller.draft().optimizer.expert_balance == doctest::Approx(0.25).epsilon(0.02));
  e.driver.double_click("Price of balance");
  // Attention alone is enough for some families; the others are given what they need.
  for (const char* family : {"BERT", "Mixtral"}) {
    e.driver.click("Llama");
    controller.draft().model.mlp = 0;
    REQUIRE(controller.complaint() == "");
    e.driver.click(family);
    CHECK(controller.complaint() == "");
    CHECK(controller.draft().model.mlp > 0);
  }
  e.driver.click("Llama");
  CHECK_FALSE(e.driver.shown("##Experts"));
}

TEST_CASE(
    "the buttons of a run stay in their places; a fork's branch is gone back to by a click; a model is not lost") {
  HEADSCOPE_NEEDS_DISPLAY();
  Train t;
  Explore& e = t.e;
  TrainingController& controller = t.controller;
  Recipe& draft = controller.draft();
  draft = testing::small_recipe();
  draft.steps = draft.optimizer.schedule_steps = 1000;
  e.driver.frames(2);
  const Item step = e.driver.item("Step"), pause = e.driver.item("Resume");
  CHECK(e.driver.item("Start training").max.x < pause.min.x);  // side by side, none over another
  CHECK(pause.max.x < step.min.x);
  const auto stays = [&] {
    const Item now = e.driver.item("Step");
    CHECK(now.min.x == step.min.x);
    CHECK(now.min.y == step.min.y);
    // Of one frame: between two the run may come to its end.
    const auto& items = e.app.window().items();
    const auto other = items.find("Pause") ? items.find("Pause") : items.find("Resume");
    REQUIRE(other);
    CHECK(other->min.x == pause.min.x);
    CHECK(other->min.y == pause.min.y);
  };
  controller.pause_at(20);
  e.driver.click("Start training");
  stays();
  REQUIRE(e.driver.until([&] { return controller.phase() == TrainingController::Phase::paused; }, 20'000));
  stays();
  controller.show(0);
  controller.pause_at(4);
  e.driver.click("Fork from here");
  REQUIRE(e.driver.until([&] { return controller.progress().step == 4; }, 20'000));
  stays();
  CHECK(controller.other_branches().size() == 1);
  const Item branch = e.driver.item("0: small to step 20");
  e.driver.click_at(branch.center());
  REQUIRE(e.driver.until([&] { return controller.progress().step == 20; }, 20'000));
  CHECK(controller.branch().id == 0);

  const auto folder = headscope::testing::scratch_dir("gui-train-replace") / "kept";
  e.driver.click("##training folder");
  e.driver.type(folder.string());
  e.driver.key(ImGuiKey_Enter);
  REQUIRE(e.driver.until([&] { return e.app.explorer().jobs.message().has_value(); }, 20'000));
  CHECK(e.app.explorer().jobs.message()->text == "Saved the model in " + folder.string());
  e.driver.click("Dismiss");
  const auto written = std::filesystem::last_write_time(folder / "model.safetensors");
  e.driver.click("Save");
  CHECK(e.driver.shown("Replace it"));
  e.driver.click("Leave it");
  CHECK_FALSE(e.driver.shown("Replace it"));
  CHECK(std::filesystem::last_write_time(folder / "model.safetensors") == written);
  e.driver.click("Save");
  e.driver.click("Replace it");
  REQUIRE(e.driver.until([&] { return e.app.explorer().jobs.message().has_value(); }, 20'000));
  CHECK(std::filesystem::last_write_time(folder / "model.safetensors") != written);
  controller.stop();
}

TEST_CASE("models side by side: begun, watched, stopped, gone on with; one model is a click away") {
  HEADSCOPE_NEEDS_DISPLAY();
  Train t;
  Explore& e = t.e;
  e.driver.click("Copying");
  e.driver.frames(2);
  CHECK(e.app.settings().pages.at("Train") == "copy");
  using Phase = TrialController::Phase;
  CHECK(t.trials.view("copy").phase == Phase::idle);
  e.driver.click("Train side by side");
  const auto step = [&] {
    const auto& standings = t.trials.view("copy").standings;
    return standings.empty() ? std::int64_t{0} : standings.back().progress.step;
  };
  REQUIRE(e.driver.until([&] { return step() >= 2; }, 60'000));
  CHECK(t.trials.view("copy").phase == Phase::running);
  CHECK(t.trials.view("copy").standings.size() == 3);
  e.driver.frames(2);
  CHECK(e.driver.shown("trial score"));
  CHECK(e.driver.shown("trial loss"));
  e.driver.click("Stop");
  e.driver.frames(2);
  CHECK(t.trials.view("copy").phase == Phase::stopped);
  REQUIRE(e.driver.until([&] { return e.app.settled(); }, 60'000));
  const std::int64_t stopped = step();
  e.driver.frames(5);
  CHECK(step() == stopped);
  e.driver.click("Go on");
  REQUIRE(e.driver.until([&] { return step() > stopped; }, 60'000));
  e.driver.click("Head count");  // the other goes on beside it
  e.driver.frames(2);
  CHECK(t.trials.view("heads").phase == Phase::idle);
  CHECK(t.trials.view("copy").phase == Phase::running);
  t.trials.stop();
  e.driver.click("One model");
  e.driver.frames(2);
  CHECK(e.driver.shown("Start training"));
}

TEST_CASE(
    "the recurrent pairs' page: scores and the alignment while they learn, the loss beside them, stopped and gone on "
    "with") {
  HEADSCOPE_NEEDS_DISPLAY();
  Train t;
  Explore& e = t.e;
  e.driver.click("One vector");
  e.driver.frames(2);
  CHECK(e.app.settings().pages.at("Train") == "bottleneck");
  using Phase = TrialController::Phase;
  const auto& view = t.trials.view("bottleneck");
  CHECK(view.phase == Phase::idle);
  CHECK_FALSE(e.driver.shown("trial score"));
  // Two steps, each of which is scored; a run of the plan's own length differs in nothing that is drawn.
  t.trials.start(with_steps(trial_plan("bottleneck"), 2));
  REQUIRE(e.driver.until([&] { return t.trials.view("bottleneck").phase == Phase::finished; }, 120'000));
  const auto& standings = t.trials.view("bottleneck").standings;
  REQUIRE(standings.size() == 3);
  REQUIRE(e.driver.until([&] { return e.driver.shown("trial alignment"); }, 20'000));
  CHECK(e.driver.shown("trial score"));
  CHECK(e.driver.shown("trial loss"));
  CHECK(e.driver.item("trial alignment").min.y > e.driver.item("trial score").max.y);
  CHECK(e.driver.item("trial loss").min.x > e.driver.item("trial score").max.x);
  for (const TrialStanding& each : standings)
    for (const double score : each.score) CHECK((score >= 0 && score < 0.5));
  CHECK(standings[2].alignment);
  CHECK_FALSE(standings[0].alignment);
  // Beside it what each makes of that text, under its name.
  for (const TrialStanding& each : standings) {
    int beside = 0;
    for (const Item& item : e.items(each.title))
      beside += item.label == each.title && item.min.x > e.driver.item("trial alignment").max.x &&
                item.max.x <= e.driver.item("trial score").max.x + 1 && item.max.y < 800;
    CHECK(beside == 1);
  }
  e.driver.click("Train again");
  const auto step = [&] {
    const auto& now = t.trials.view("bottleneck").standings;
    return now.empty() ? std::int64_t{0} : now.back().progress.step;
  };
  REQUIRE(e.driver.until([&] { return step() >= 1 && t.trials.view("bottleneck").phase == Phase::running; }, 60'000));
  CHECK(t.trials.view("bottleneck").standings.back().progress.steps > 100);
  CHECK_FALSE(e.driver.shown("trial alignment"));  // of another run
  e.driver.click("Stop");
  e.driver.frames(2);
  CHECK(t.trials.view("bottleneck").phase == Phase::stopped);
  REQUIRE(e.driver.until([&] { return e.app.settled(); }, 60'000));
  const std::int64_t stopped = step();
  e.driver.click("Go on");
  REQUIRE(e.driver.until([&] { return step() > stopped; }, 60'000));
  t.trials.stop();
}

}  // namespace headscope::train_test
