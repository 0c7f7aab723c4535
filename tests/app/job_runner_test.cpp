// Jobs by themselves: what stop does with each kind, what is said of them meanwhile, and the one message.

#include "app/state/job_runner.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "core/base/error.h"

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

}  // namespace headscope::job_runner_test
