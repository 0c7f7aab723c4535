// What becomes of the explorer's work that is stopped, or ended in the middle.

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "core/base/error.h"
#include "tests/app/explorer_controller.h"

namespace headscope::explorer_stop_test {

using testing::Controller;
using testing::example;
using testing::reference;
using testing::story;

TEST_CASE("destroying a busy explorer is clean") {
  for (int i = 0; i < 3; ++i) {
    Controller controller;
    controller.explorer.run.open_model(example());
    controller.explorer.editor.set_text(story);
    for (int frame = 0; frame < 20 * i; ++frame) controller.explorer.frame(controller.now += 0.01);
  }
}

TEST_CASE("stop ends whatever a panel has computed, says what it was, and it runs again when asked") {
  Controller controller;
  controller.explorer.run.open_model(example());
  controller.explorer.editor.set_text(story);
  controller.settle();
  std::atomic<int> begun{0}, made{0};
  std::atomic<bool> quick{false};
  const auto ask = [&](const char* tag, const char* words) {
    controller.explorer.jobs.submit({tag, words}, [&](Worker::Job& job) -> Worker::Deliver {
      ++begun;
      while (!quick) {
        if (job.stop.stop_requested()) throw Cancelled();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return [&] { ++made; };
    });
  };
  ask("read.circuits.full", "searching the whole vocabulary");
  ask("scene.circuits", "drawing");  // waits behind it
  while (begun == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(controller.explorer.jobs.status().doing == "searching the whole vocabulary");
  CHECK(controller.explorer.jobs.stopped().empty());
  controller.explorer.jobs.stop();
  controller.settle();
  CHECK(made == 0);
  CHECK(begun == 1);
  CHECK(controller.explorer.jobs.stopped() == "searching the whole vocabulary and 1 more");
  CHECK(controller.explorer.jobs.was_stopped("scene.circuits"));
  CHECK_FALSE(controller.explorer.run.behind());  // the document's own results are there

  quick = true;
  controller.explorer.run.run_again();
  controller.settle();
  CHECK(made == 2);
  CHECK(controller.explorer.jobs.stopped().empty());

  // Another question of the same tag takes the place of the stopped one; one that is forgotten does not come back.
  quick = false;
  ask("read.one", "reading the run");
  ask("read.two", "reading the run");
  controller.explorer.jobs.stop();
  controller.settle();
  quick = true;
  ask("read.one", "reading the run");
  controller.explorer.jobs.forget("read.two");
  controller.settle();
  CHECK(made == 3);
  CHECK(controller.explorer.jobs.stopped().empty());
  controller.explorer.run.run_again();
  controller.settle();
  CHECK(made == 3);
}

TEST_CASE("what was stopped stays stopped, says so, and runs again when asked") {
  Controller controller;
  controller.explorer.run.open_model(example());
  controller.explorer.editor.set_text(story);
  controller.settle();
  CHECK_FALSE(controller.explorer.run.behind());
  const auto before = controller.results().run;

  controller.explorer.editor.set_text("Mr and Mrs Quill");
  controller.explorer.frame(controller.now += 0.01);
  controller.explorer.jobs.stop();
  controller.settle();
  CHECK(controller.results().run == before);
  CHECK(controller.explorer.run.behind());
  controller.explorer.run.run_again();
  controller.settle();
  CHECK_FALSE(controller.explorer.run.behind());
  CHECK(controller.results().run->trace->text == "Mr and Mrs Quill");

  // Undo goes back to another model; stopped, it is not opened once more by itself.
  const std::filesystem::path first = controller.document().model;
  for (const char* other : {"gpt2-random", "llama-gqa"}) {  // two models stay open, a third has to be opened anew
    controller.explorer.run.open_model(reference(other));
    controller.settle();
  }
  for (int steps = 0; steps < 9 && controller.document().model != first; ++steps) controller.explorer.editor.undo();
  REQUIRE(controller.document().model == first);
  controller.explorer.frame(controller.now += 0.01);
  controller.explorer.jobs.stop();
  controller.settle();
  CHECK(controller.results().model_folder != first);
  CHECK(controller.explorer.run.behind());
  controller.explorer.run.run_again();
  controller.settle();
  CHECK(controller.results().model_folder == first);
  CHECK_FALSE(controller.explorer.run.behind());
}

}  // namespace headscope::explorer_stop_test
