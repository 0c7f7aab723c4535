#include "app/state/answer.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <new>
#include <thread>

#include "tests/app/explorer_controller.h"

namespace headscope::answer_test {

using testing::Controller;

namespace {

/// A question about an object and a number.
struct Key {
  std::shared_ptr<const int> of;
  int number = 0;
  bool operator==(const Key&) const = default;
};
using Sum = Answer<Key, int>;
using State = Sum::State;

struct Bench {
  Controller controller;
  std::shared_ptr<const int> ten = std::make_shared<const int>(10);
  std::atomic<int> asked = 0;    // how often the worker was
  std::atomic<bool> gate{true};  // shut: it waits
  Sum sum{{"sum", "adding"}};

  /// As a page does, in every frame.
  void want(int number) {
    sum.want(controller.explorer.jobs, {ten, number}, [this, of = ten, number](const Ctx& ctx) {
      ++asked;
      while (!gate) {
        if (ctx.stop.stop_requested()) throw Cancelled();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      if (number < 0) throw Error("sum", "a number from 0 on", std::to_string(number), "");
      return *of + number;
    });
  }
  /// Until the worker has begun.
  void begun(int count) {
    while (asked < count) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ~Bench() { gate = true; }
};

/// The worker lets go of a job a moment after it has handed over its result.
bool soon(const std::function<bool()>& done) {
  for (int i = 0; i < 5000 && !done(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return done();
}

}  // namespace

TEST_CASE("an answer is none, under way, current, and old until the next has come") {
  Bench b;
  CHECK(b.sum.state() == State::none);
  CHECK_FALSE(b.sum.last());
  b.gate = false;
  b.want(1);
  CHECK(b.sum.state() == State::under_way);
  CHECK(b.sum.under_way());
  b.gate = true;
  b.controller.settle();
  CHECK(b.sum.state() == State::current);
  REQUIRE(b.sum.current());
  CHECK(*b.sum.current() == 11);
  for (int i = 0; i < 5; ++i) b.want(1);  // frame after frame
  CHECK_FALSE(b.sum.under_way());
  CHECK(b.asked == 1);

  b.gate = false;
  b.want(2);
  CHECK(b.sum.state() == State::old);
  CHECK(b.sum.under_way());
  CHECK(*b.sum.last() == 11);
  CHECK(b.sum.last_key()->number == 1);
  CHECK_FALSE(b.sum.current());
  b.gate = true;
  b.controller.settle();
  CHECK(b.sum.state() == State::current);
  CHECK(*b.sum.last() == 12);
}

TEST_CASE("what was asked before the key changed is stopped and never shown") {
  Bench b;
  b.gate = false;
  b.want(1);
  b.begun(1);
  b.want(2);
  b.gate = true;
  b.controller.settle();
  CHECK(*b.sum.current() == 12);

  // Finished, but not yet handed over when another is wanted.
  b.want(3);
  b.begun(3);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  b.gate = false;
  b.want(4);
  b.controller.explorer.frame(b.controller.now += 0.01);
  CHECK(b.sum.state() == State::old);
  CHECK(*b.sum.last() == 12);
  b.gate = true;
  b.controller.settle();
  CHECK(*b.sum.current() == 14);
}

TEST_CASE("back at what is known nothing is asked, and what was under way is dropped") {
  Bench b;
  b.want(1);
  b.controller.settle();
  b.gate = false;
  b.want(2);
  b.begun(2);
  b.want(1);
  CHECK(b.sum.state() == State::current);
  CHECK_FALSE(b.sum.under_way());
  b.gate = true;
  b.controller.settle();
  CHECK(*b.sum.current() == 11);
  CHECK(b.asked == 2);
}

TEST_CASE("a failure is remembered, told once, and not asked again in every frame") {
  Bench b;
  b.want(1);
  b.controller.settle();
  b.want(-1);
  b.controller.settle();
  CHECK(b.sum.state() == State::failed);
  CHECK(b.sum.error().find("a number from 0 on") != std::string::npos);
  CHECK(b.controller.message() == b.sum.error());
  CHECK_FALSE(b.sum.under_way());
  CHECK(*b.sum.last() == 11);
  CHECK_FALSE(b.sum.current());
  b.controller.explorer.jobs.dismiss();
  for (int i = 0; i < 5; ++i) {
    b.want(-1);
    b.controller.settle();
  }
  CHECK(b.asked == 2);
  CHECK(b.controller.message().empty());

  b.want(1);  // known from before
  CHECK(b.sum.state() == State::current);
  CHECK(b.sum.error().empty());
  CHECK(b.asked == 2);

  Sum quiet({"quiet", "adding"}, Sum::OnFailure::keep);
  quiet.want(b.controller.explorer.jobs, {}, [](const Ctx&) -> int { throw Error("sum", "this", "that", ""); });
  b.controller.settle();
  CHECK(quiet.state() == State::failed);
  CHECK(b.controller.message().empty());
  quiet.want(b.controller.explorer.jobs, {b.ten, 0}, [](const Ctx&) -> int { throw std::bad_alloc(); });
  b.controller.settle();
  CHECK(quiet.error() == "out of memory");
}

TEST_CASE("what the user stopped waits for run_again; what was stopped or put off by its owner does not") {
  Bench b;
  b.gate = false;
  b.want(1);
  b.begun(1);
  b.controller.explorer.jobs.stop();
  b.controller.settle();
  b.want(1);
  CHECK(b.asked == 1);
  CHECK(b.controller.explorer.jobs.was_stopped("sum"));
  CHECK(b.sum.state() == State::under_way);
  b.gate = true;
  b.controller.explorer.run.run_again();
  b.controller.settle();
  CHECK(*b.sum.current() == 11);

  b.gate = false;
  b.want(2);
  b.begun(3);
  b.sum.stop(b.controller.explorer.jobs);
  b.want(2);
  CHECK(b.sum.state() == State::old);
  CHECK_FALSE(b.sum.under_way());
  b.want(3);
  b.begun(4);
  b.sum.put_off(b.controller.explorer.jobs);
  CHECK_FALSE(b.sum.under_way());
  b.gate = true;
  b.want(3);
  b.controller.settle();
  CHECK(*b.sum.current() == 13);
  b.sum.put_off(b.controller.explorer.jobs);  // nothing is under way
  CHECK(b.sum.current());
}

TEST_CASE("a key owns what it names, so that nothing else comes to lie at its address") {
  Bench b;
  const std::weak_ptr<const int> first = b.ten;
  b.want(1);
  b.controller.settle();
  for (int i = 0; i < 100; ++i) b.ten = std::make_shared<const int>(20);
  CHECK_FALSE(first.expired());
  b.want(1);
  CHECK(b.sum.state() == State::old);
  b.controller.settle();
  CHECK(*b.sum.current() == 21);
  CHECK(soon([&] { return first.expired(); }));

  CHECK(b.sum.let_go(b.controller.explorer.jobs));
  CHECK(b.sum.state() == State::none);
  CHECK_FALSE(b.sum.let_go(b.controller.explorer.jobs));
  CHECK(soon([&] { return b.ten.use_count() == 1; }));
  b.want(1);
  b.controller.settle();
  CHECK(*b.sum.current() == 21);
}

TEST_CASE("an answer that comes late finds nobody") {
  Bench b;
  b.gate = false;
  auto gone = std::make_unique<Sum>(JobName{"gone", "adding"});
  std::atomic<bool> begun = false;
  gone->want(b.controller.explorer.jobs, {b.ten, 1}, [&](const Ctx&) {
    begun = true;
    while (!b.gate) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return std::make_shared<const int>(1);
  });
  while (!begun) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  gone.reset();
  b.gate = true;
  b.controller.settle();
  CHECK(b.controller.message().empty());
}

TEST_CASE("an answer of words is asked for anew in another language, one of numbers stays") {
  struct Back {
    ~Back() { use_words({}); }
  } const back;
  Controller controller;
  JobRunner& jobs = controller.explorer.jobs;
  Answer<Key, std::string> words{{"words", "saying"}};
  Answer<Key, int> numbers{{"numbers", "adding"}, Holds::numbers};
  const Key key{std::make_shared<const int>(10), 1};
  int said_anew = 0, added = 0;
  const auto frame = [&] {
    words.want(jobs, key, [&](const Ctx&) { return ++said_anew, std::string(said("Layer")); });
    numbers.want(jobs, key, [&](const Ctx&) { return ++added; });
  };
  frame();
  controller.settle();
  CHECK(*words.current() == "Layer");
  use_words(WordTable(WordTable::Entries{{"Layer", "Schicht"}}), "de");
  CHECK_FALSE(words.asked_for(key));
  CHECK(words.state() == decltype(words)::State::old);
  CHECK(*words.last() == "Layer");  // until the next has come
  CHECK(numbers.current());
  frame();
  controller.settle();
  REQUIRE(words.current());
  CHECK(*words.current() == "Schicht");
  frame();
  controller.settle();
  CHECK(said_anew == 2);
  CHECK(added == 1);
  use_words({});
  frame();
  controller.settle();
  CHECK(*words.current() == "Layer");
  CHECK(added == 1);
}

}  // namespace headscope::answer_test
