#include "core/run/worker.h"

#include <doctest/doctest.h>

#include <latch>
#include <semaphore>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/base/error.h"

namespace headscope::worker_test {

namespace {

/// Counts the jobs that have ended, as the window's wake-up would.
struct Ended {
  std::counting_semaphore<> count{0};
  std::function<void()> wake() {
    return [this] { count.release(); };
  }
  void wait(int jobs = 1) {
    for (int i = 0; i < jobs; ++i) count.acquire();
  }
};

void must_not_fail(const std::string& message) {
  FAIL("unexpected failure: " << message);
}

/// Blocks until the job is asked to stop, without polling.
void wait_for_stop(std::stop_token stop) {
  std::latch stopped(1);
  const std::stop_callback on_stop(stop, [&] { stopped.count_down(); });
  stopped.wait();
}

}  // namespace

TEST_CASE("a job runs on the worker and its result is delivered on the thread that drains") {
  Ended ended;
  Worker worker(ended.wake());
  const auto owner = std::this_thread::get_id();
  std::thread::id worked, delivered;
  worker.submit(
      "run",
      [&](Worker::Job&) -> Worker::Deliver {
        worked = std::this_thread::get_id();
        return [&] { delivered = std::this_thread::get_id(); };
      },
      must_not_fail);
  ended.wait();
  CHECK((delivered == std::thread::id()));  // nothing is delivered before the owner asks
  CHECK(worker.drain() == 1);
  CHECK((worked != owner));
  CHECK((delivered == owner));
  CHECK(worker.drain() == 0);
}

TEST_CASE("a newer job replaces the queued one, stops the running one, and only the newest result arrives") {
  Ended ended;
  std::latch first_runs(1), hold_first(1);
  bool first_was_stopped = false;
  std::vector<int> ran, delivered;
  Worker worker(ended.wake());
  const auto job = [&](int number) {
    return [&, number](Worker::Job&) -> Worker::Deliver {
      ran.push_back(number);
      return [&, number] { delivered.push_back(number); };
    };
  };
  const auto a = worker.submit(
      "trace",
      [&](Worker::Job& view) -> Worker::Deliver {
        first_runs.count_down();
        hold_first.wait();
        first_was_stopped = view.stop.stop_requested();
        return [&] { delivered.push_back(1); };  // ignores the stop: the result must be dropped all the same
      },
      must_not_fail);
  first_runs.wait();
  const auto b = worker.submit("trace", job(2), must_not_fail);
  worker.submit("other", job(9), must_not_fail);
  CHECK(worker.status().queued == 2);
  const auto c = worker.submit("trace", job(3), must_not_fail);
  CHECK(worker.status().queued == 2);
  CHECK(a < b);
  CHECK(b < c);
  hold_first.count_down();
  ended.wait(3);
  CHECK(worker.drain() == 2);
  CHECK(first_was_stopped);
  CHECK(ran == std::vector<int>{3, 9});  // 2 never ran, 3 took its place before "other"
  CHECK(delivered == std::vector<int>{3, 9});
}

TEST_CASE("a finished result that was not drained yet is dropped when a newer job with its tag comes") {
  Ended ended;
  Worker worker(ended.wake());
  std::vector<int> delivered;
  const auto job = [&](int number) {
    return [&, number](Worker::Job&) -> Worker::Deliver { return [&, number] { delivered.push_back(number); }; };
  };
  worker.submit("trace", job(1), must_not_fail);
  worker.submit("metrics", job(5), must_not_fail);
  ended.wait(2);
  worker.submit("trace", job(2), must_not_fail);
  ended.wait();
  CHECK(worker.drain() == 2);
  CHECK(delivered == std::vector<int>{5, 2});
}

TEST_CASE("cancel drops the queued job, stops the running one and leaves other tags alone") {
  Ended ended;
  std::latch running(1);
  std::vector<int> delivered;
  Worker worker(ended.wake());
  worker.submit(
      "trace",
      [&](Worker::Job& job) -> Worker::Deliver {
        running.count_down();
        wait_for_stop(job.stop);
        throw Cancelled();
      },
      must_not_fail);
  running.wait();
  worker.submit(
      "queued", [](Worker::Job&) -> Worker::Deliver { throw std::logic_error("ran"); }, must_not_fail);
  worker.submit(
      "kept", [&](Worker::Job&) -> Worker::Deliver { return [&] { delivered.push_back(7); }; }, must_not_fail);
  worker.cancel("queued");
  CHECK(worker.status().queued == 1);
  worker.cancel("trace");
  ended.wait(2);
  CHECK(worker.status().tag.empty());
  CHECK(worker.status().undelivered == 1);  // nothing runs, yet not all is told
  CHECK(worker.drain() == 1);
  CHECK(delivered == std::vector<int>{7});
  CHECK(worker.status().undelivered == 0);
}

TEST_CASE("a failed job delivers its message and the next job runs") {
  Ended ended;
  Worker worker(ended.wake());
  std::string message;
  int delivered = 0;
  worker.submit(
      "load", [](Worker::Job&) -> Worker::Deliver { throw Error("config.json: n_head", "a divisor of 96", "7"); },
      [&](const std::string& text) { message = text; });
  worker.submit(
      "next", [&](Worker::Job&) -> Worker::Deliver { return [&] { ++delivered; }; }, must_not_fail);
  ended.wait(2);
  CHECK(message.empty());  // on the owner's thread only
  CHECK(worker.drain() == 2);
  CHECK(message == "config.json: n_head: expected a divisor of 96, found 7");
  CHECK(delivered == 1);
}

TEST_CASE("a job that fails after it was stopped reports nothing") {
  Ended ended;
  std::latch running(1);
  Worker worker(ended.wake());
  worker.submit(
      "trace",
      [&](Worker::Job& job) -> Worker::Deliver {
        running.count_down();
        wait_for_stop(job.stop);
        throw std::runtime_error("half done");
      },
      must_not_fail);
  running.wait();
  worker.cancel("trace");
  ended.wait();
  CHECK(worker.drain() == 0);
}

TEST_CASE("progress and the tag of the running job are visible from outside, and start at zero for the next job") {
  Ended ended;
  std::latch at_half(1), go_on(1), second_runs(1), finish(1);
  Worker worker(ended.wake());
  CHECK(worker.status().tag.empty());
  worker.submit(
      "first",
      [&](Worker::Job& job) -> Worker::Deliver {
        job.progress.store(0.5f);
        at_half.count_down();
        go_on.wait();
        return {};
      },
      must_not_fail);
  worker.submit(
      "second",
      [&](Worker::Job&) -> Worker::Deliver {
        second_runs.count_down();
        finish.wait();
        return {};
      },
      must_not_fail);
  at_half.wait();
  const auto half = worker.status();
  CHECK(half.tag == "first");
  CHECK(half.progress == 0.5f);
  CHECK(half.queued == 1);
  CHECK(half.seconds >= 0);
  go_on.count_down();
  second_runs.wait();
  CHECK(worker.status().tag == "second");
  CHECK(worker.status().progress == 0.0f);
  finish.count_down();
  ended.wait(2);
  CHECK(worker.drain() == 0);  // a job may have nothing to deliver
}

TEST_CASE("a delivery may submit and cancel, and what it starts waits for the next drain") {
  Ended ended;
  Worker worker(ended.wake());
  std::vector<int> delivered;
  const auto plain = [&](int number) {
    return [&, number](Worker::Job&) -> Worker::Deliver { return [&, number] { delivered.push_back(number); }; };
  };
  worker.submit(
      "first",
      [&](Worker::Job&) -> Worker::Deliver {
        return [&] {
          delivered.push_back(1);
          worker.cancel("second");  // already finished: its waiting delivery goes
          worker.submit("third", plain(3), must_not_fail);
          ended.wait();  // third is ready before this drain goes on
        };
      },
      must_not_fail);
  worker.submit("second", plain(2), must_not_fail);
  ended.wait(2);
  CHECK(worker.drain() == 1);
  CHECK(delivered == std::vector<int>{1});
  CHECK(worker.drain() == 1);
  CHECK(delivered == std::vector<int>{1, 3});
}

TEST_CASE("destroying a busy worker stops its job, drops the queue and frees what the jobs held") {
  const auto held = std::make_shared<int>(1);
  std::latch running(1);
  bool stopped = false, queued_ran = false;
  {
    Worker worker;
    worker.submit(
        "busy",
        [&, held](Worker::Job& job) -> Worker::Deliver {
          running.count_down();
          wait_for_stop(job.stop);
          stopped = true;
          return [held] { FAIL("delivered after the end"); };
        },
        must_not_fail);
    running.wait();
    worker.submit(
        "queued",
        [&, held](Worker::Job&) -> Worker::Deliver {
          queued_ran = true;
          return {};
        },
        must_not_fail);
  }
  CHECK(stopped);
  CHECK_FALSE(queued_ran);
  CHECK(held.use_count() == 1);
}

TEST_CASE("many quick replacements leave the last one standing") {
  Ended ended;
  std::atomic<int> last{-1};
  Worker worker(ended.wake());
  for (int i = 0; i < 2000; ++i) {
    worker.submit(
        "typing", [&, i](Worker::Job&) -> Worker::Deliver { return [&, i] { last = i; }; }, must_not_fail);
    if (i % 7 == 0) worker.drain();
  }
  while (last != 1999) {
    ended.wait();
    worker.drain();
  }
  CHECK(worker.status().queued == 0);
  CHECK(last == 1999);
}

}  // namespace headscope::worker_test
