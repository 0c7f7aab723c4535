// Jobs by themselves: what stop does with each kind, what is said of them meanwhile, and the one message.

#include "app/state/job_runner.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/backend.h"

namespace headscope::job_runner_test {

using OnStop = JobRunner::OnStop;

namespace {
void settle(JobRunner& jobs) {
  do {
    jobs.frame();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  } while (jobs.busy());
}

/// Runs until it is let go, whatever it is told.
Worker::Work held(const std::atomic<bool>& go, std::atomic<int>& made) {
  return [&](Worker::Job&) -> Worker::Deliver {
    while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return [&] { ++made; };
  };
}
}  // namespace

TEST_CASE("stop keeps one job to run again, drops one for good and leaves one to its owner") {
  JobRunner jobs(1, {});
  std::atomic<bool> go{false};
  std::atomic<int> again{0}, dropped{0}, own{0};
  int gave_up = 0;
  jobs.submit({"own", "training"}, held(go, own), OnStop::own, [&] { ++gave_up; });
  jobs.submit({"drop", "running"}, held(go, dropped), OnStop::drop, [&] { gave_up += 10; });
  jobs.submit({"again", "reading"}, held(go, again));
  CHECK(jobs.stops() == 0);
  jobs.stop();
  CHECK(jobs.stops() == 1);
  CHECK(gave_up == 10);
  CHECK(jobs.stopped() == "reading");
  CHECK(jobs.was_stopped("again"));
  CHECK_FALSE(jobs.was_stopped("drop"));
  CHECK_FALSE(jobs.was_stopped("own"));
  go = true;
  settle(jobs);
  CHECK(own == 1);
  CHECK(dropped == 0);
  CHECK(again == 0);

  jobs.run_again();
  CHECK(jobs.stopped() == "");
  settle(jobs);
  CHECK(again == 1);
  CHECK(dropped == 0);
  CHECK(gave_up == 10);
}

TEST_CASE("what runs is called by its own words, also while it ends after it was stopped") {
  JobRunner jobs(1, {});
  std::atomic<bool> go{false};
  std::atomic<int> made{0};
  CHECK(jobs.status().doing == "");
  jobs.submit({"load", "opening a model"}, held(go, made), OnStop::drop);
  for (int i = 0; i < 5000 && jobs.status().doing.empty(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(jobs.status().doing == "opening a model");
  jobs.stop();
  CHECK(jobs.status().doing == "opening a model");
  go = true;
  settle(jobs);
  CHECK(made == 0);
  CHECK(jobs.status().doing == "");
}

TEST_CASE("a failure is the message until a job of its tag succeeds, on either worker; its giving up is told first") {
  JobRunner jobs(1, {});
  const auto message = [&] { return jobs.message() ? jobs.message()->text : ""; };
  const Worker::Work fails = [](Worker::Job&) -> Worker::Deliver { throw Error("a.json", "numbers", "none", ""); };
  const Worker::Work works = [](Worker::Job&) -> Worker::Deliver { return nullptr; };
  std::string at_giving_up = "never";
  jobs.submit({"a", "adding"}, fails, OnStop::drop, [&] { at_giving_up = message(); });
  settle(jobs);
  CHECK(message().starts_with("a.json: expected numbers"));
  CHECK(at_giving_up == "");
  jobs.submit({"b", "adding"}, works);
  settle(jobs);
  CHECK(jobs.message());  // another job's success says nothing about this one
  jobs.submit({"a", "adding"}, works);
  settle(jobs);
  CHECK_FALSE(jobs.message());

  jobs.on_files("file", fails);
  settle(jobs);
  REQUIRE(jobs.message());
  CHECK(jobs.message()->tag == "file");
  jobs.on_files("file", works);
  settle(jobs);
  CHECK_FALSE(jobs.message());

  jobs.show({Message::Level::info, "Saved", ""});
  jobs.dismiss("a");
  CHECK(message() == "Saved");
  jobs.dismiss();
  CHECK_FALSE(jobs.message());
}

namespace {
/// Two cards that compute as the processor does.
Devices two_cards() {
  Devices out;
  out.make = [](const DeviceChoice&, int, Worded& why) {
    why = Worded();
    return std::make_unique<Backend>(1);
  };
  return out;
}
constexpr DeviceChoice first_card{.cuda = true}, second_card{.cuda = true, .index = 1};

Worker::Work lost(const std::atomic<bool>& go) {
  return [&](Worker::Job&) -> Worker::Deliver {
    while (!go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    throw CardError("CUDA", "a product to succeed", "no device");
  };
}
}  // namespace

TEST_CASE("a card that fails after another was chosen takes nothing with it but its job") {
  JobRunner jobs(1, {}, first_card, two_cards());
  std::atomic<bool> go{false};
  int gave_up = 0;
  jobs.submit({"late", "reading"}, lost(go), OnStop::drop, [&] { ++gave_up; });
  jobs.set_device(second_card, 1);
  const auto backend = jobs.backend();
  go = true;
  settle(jobs);
  CHECK(gave_up == 1);
  CHECK(jobs.device() == second_card);
  CHECK(jobs.backend() == backend);
  CHECK(jobs.why_cpu() == "");
  CHECK_FALSE(jobs.message());

  // Of the same card, opened again for another number of threads, nobody else would say what failed.
  go = false;
  jobs.submit({"late", "reading"}, lost(go), OnStop::drop, [&] { ++gave_up; });
  jobs.set_device(second_card, 2);
  go = true;
  settle(jobs);
  CHECK(gave_up == 2);
  CHECK(jobs.device() == second_card);
  REQUIRE(jobs.message());
  CHECK(jobs.message()->tag == "late");
  CHECK(jobs.message()->text.starts_with("CUDA: expected a product"));

  // The card that computes gives way.
  jobs.submit({"now", "reading"}, lost(go), OnStop::drop, [&] { ++gave_up; });
  settle(jobs);
  CHECK(gave_up == 3);
  CHECK(jobs.device() == DeviceChoice{});
  CHECK(jobs.message()->text == jobs.why_cpu());
}

TEST_CASE("what is told, and why the processor computes, follow the language of the window") {
  Devices missing;
  missing.make = [](const DeviceChoice& choice, int, Worded& why) {
    why = choice.cuda ? say_later("The processor computes, as {} cannot be used: {}.", "cuda:0", "no card") : Worded();
    return std::make_unique<Backend>(1);
  };
  JobRunner jobs(1, {}, first_card, missing);
  const std::string english = "The processor computes, as cuda:0 cannot be used: no card.";
  CHECK(jobs.why_cpu() == english);
  REQUIRE(jobs.message());
  CHECK(jobs.message()->text == english);
  use_words(WordTable({{"The processor computes, as {} cannot be used: {}.", "Der Prozessor statt {}: {}."},
                       {"Saved {}", "{} gespeichert"}}),
            "xx");
  jobs.frame();
  CHECK(jobs.why_cpu() == "Der Prozessor statt cuda:0: no card.");
  CHECK(jobs.message()->text == "Der Prozessor statt cuda:0: no card.");
  jobs.tell(say_later("Saved {}", std::string("a.json")), "session");
  CHECK(jobs.message()->text == "a.json gespeichert");
  CHECK(jobs.message()->tag == "session");
  use_words({});
  jobs.frame();
  CHECK(jobs.why_cpu() == english);
  CHECK(jobs.message()->text == "Saved a.json");
}

TEST_CASE("a job that settles is told apart from slices of what goes on") {
  JobRunner jobs(1, {});
  std::atomic<bool> go{false};
  std::atomic<int> made{0};
  jobs.submit({"training", "training"}, held(go, made), OnStop::own);
  CHECK(jobs.busy());
  CHECK_FALSE(jobs.settling());
  jobs.submit({"picture", "drawing"}, held(go, made), OnStop::again);
  CHECK(jobs.settling());
  go = true;
  settle(jobs);
  CHECK_FALSE(jobs.settling());
}

TEST_CASE("what is run again tells who asked when it fails; what was stopped on another device is dropped") {
  JobRunner jobs(1, {}, first_card, two_cards());
  std::atomic<bool> go{true};
  int gave_up = 0;
  const Worker::Work fails = [](Worker::Job&) -> Worker::Deliver { throw Error("a.json", "numbers", "none", ""); };
  jobs.submit({"a", "reading"}, fails, OnStop::again, [&] { ++gave_up; });
  jobs.stop();
  settle(jobs);
  CHECK(gave_up == 0);
  jobs.run_again();
  settle(jobs);
  CHECK(gave_up == 1);
  REQUIRE(jobs.message());
  CHECK(jobs.message()->tag == "a");

  std::atomic<int> made{0};
  jobs.submit({"b", "reading"}, held(go, made), OnStop::again, [&] { gave_up += 10; });
  jobs.stop();
  CHECK(jobs.was_stopped("b"));
  jobs.set_device(second_card, 1);
  CHECK(gave_up == 11);
  CHECK(jobs.stopped() == "");
  jobs.run_again();
  settle(jobs);
  CHECK(made == 0);
}

}  // namespace headscope::job_runner_test
