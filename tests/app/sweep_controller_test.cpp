#include "app/state/sweep_controller.h"
#include "app/state/explorer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "app/state/prompt_pairs.h"
#include "core/analysis/activation_patching.h"
#include "core/analysis/head_ablation.h"
#include "core/base/error.h"
#include "core/edits/patch_edit.h"
#include "tests/support/paths.h"

namespace headscope::sweep_controller_test {

using testing::source_dir;

namespace {

/// A sweep of steps that wait until they are let go, or fail.
struct Stepping final : Sweep {
  using Result = int;
  explicit Stepping(int count, int failing = -1) : steps(count), fails_at(failing) {}
  void step(const Ctx& ctx) override {
    if (ctx.stop.stop_requested()) throw Cancelled();
    if (taken == fails_at) throw Error("step", "a step that works", "one that does not");
    std::this_thread::sleep_for(std::chrono::milliseconds(15));
    ++taken;
  }
  int done() const override { return taken; }
  int total() const override { return steps; }
  bool finished() const override { return taken == steps; }
  double share() const override { return static_cast<double>(taken) / steps; }
  std::shared_ptr<const int> result() const { return std::make_shared<const int>(taken); }
  int steps, fails_at, taken = 0;
};

struct Bench {
  Explorer explorer{{1, {}, std::size_t{1} << 28}};
  SweepController controller{explorer.jobs, "test"};
  double now = 0;
  template <class Done>
  bool until(Done done) {
    for (int i = 0; i < 20'000; ++i) {
      explorer.frame(now += 0.01);
      controller.frame();
      if (done()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return false;
  }
};

}  // namespace

TEST_CASE("a sweep streams what it knows, is cancelled between steps, and starts again") {
  using Phase = SweepController::Phase;
  Bench app;
  std::vector<int> seen;
  const auto take = [&](std::shared_ptr<const int> known) { seen.push_back(*known); };
  CHECK(app.controller.phase() == Phase::idle);
  app.controller.start(std::make_shared<Stepping>(1'000'000), std::function(take));
  REQUIRE(app.until([&] { return seen.size() >= 3; }));
  CHECK(app.controller.running());
  CHECK(std::ranges::is_sorted(seen));
  CHECK(app.controller.done() == seen.back());
  CHECK(app.controller.total() == 1'000'000);
  CHECK(app.controller.seconds_left() > 0);
  app.controller.cancel();
  CHECK(app.controller.phase() == Phase::cancelled);
  const auto count = seen.size();
  REQUIRE(app.until([&] { return !app.explorer.jobs.busy(); }));
  app.until([&, frames = 0]() mutable { return ++frames > 20; });
  CHECK(seen.size() == count);  // nothing comes after a cancel

  app.controller.start(std::make_shared<Stepping>(5), std::function(take));
  REQUIRE(app.until([&] { return app.controller.phase() == Phase::finished; }));
  CHECK(seen.back() == 5);
  CHECK(app.controller.share() == 1);

  app.controller.start(std::make_shared<Stepping>(1'000'000), std::function(take));
  REQUIRE(app.until([&] { return app.controller.done() > 0; }));
  app.explorer.jobs.stop();  // "stop what runs" means sweeps as well
  REQUIRE(app.until([&] { return !app.controller.running(); }));
  CHECK(app.controller.phase() == Phase::cancelled);

  app.controller.start(std::make_shared<Stepping>(10, 6), std::function(take));
  REQUIRE(app.until([&] { return !app.controller.running(); }));
  CHECK(app.controller.phase() == Phase::failed);
  CHECK(app.controller.error().find("a step that works") != std::string::npos);
  CHECK(seen.back() == 6);  // what was known stays
}

TEST_CASE("other work gets its turn between the slices of a sweep") {
  Bench app;
  app.controller.start(std::make_shared<Stepping>(1'000'000), std::function([](std::shared_ptr<const int>) {}));
  REQUIRE(app.until([&] { return app.controller.done() > 0; }));
  bool came = false;
  app.explorer.jobs.submit({"other", "counting"},
                           [&](Worker::Job&) -> Worker::Deliver { return [&] { came = true; }; });
  REQUIRE(app.until([&] { return came; }));
  CHECK(app.controller.running());
}

TEST_CASE("the prompts that come with the program are answered differently by the models they are made for") {
  const auto pairs = load_prompt_pairs();
  CHECK(pairs.size() >= 4);
  int tried = 0;
  for (const PromptPair& pair : pairs)
    for (const std::string& name : pair.models) {
      CAPTURE(name);
      const auto folder =
          name == "induction" ? source_dir() / "assets/examples" / name : source_dir() / "models" / name;
      if (!std::filesystem::exists(folder / "model.safetensors")) continue;
      Backend backend(1);
      const LoadedModel loaded = load_model(folder, backend);
      PatchingRequest request{folder, pair.clean, pair.corrupted, {}, SiteKind::z, Patch::Align::tokens, {}};
      request.target = pair.target;
      if (loaded.model->encoder()) request.stack = Stack::cross;
      request.answers =
          AnswerPair{answer_token(loaded, pair.right, "right"), answer_token(loaded, pair.wrong, "wrong")};
      PatchingSweep sweep(loaded, request);
      sweep.step(Ctx{backend});
      CHECK(sweep.result()->clean_difference > 2);
      CHECK(sweep.result()->corrupted_difference < -2);
      ++tried;
    }
  CHECK(tried >= 1);
}

}  // namespace headscope::sweep_controller_test
