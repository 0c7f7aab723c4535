// The generation desk without a window, frame by frame.

#include "app/state/generation_desk.h"

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "tests/support/paths.h"

using namespace headscope;

namespace {

struct Desk {
  Explorer explorer{{.threads = 1, .wake = {}}};
  GenerationDesk desk{explorer};
  Desk() {
    explorer.open_model(testing::reference("gpt2-random"));
    explorer.set_ids({3, 14, 15, 9, 2, 6});
    desk.settings().pace = 0;
    REQUIRE(until([&] { return desk.next().has_value(); }));
  }
  void frame() {
    explorer.frame(0);
    desk.frame(true);
  }
  bool until(const std::function<bool()>& done) {
    for (int i = 0; i < 4000; ++i) {
      if (done()) return true;
      frame();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return done();
  }
  bool writes(std::size_t steps) {
    return until([&] { return desk.branch().steps.size() >= steps && (desk.next() || !desk.branch().ended.empty()); });
  }
};

}  // namespace

TEST_CASE("what comes next is known before it is written, and follows the settings") {
  Desk d;
  const auto first = d.desk.next()->step->token;
  d.desk.settings().sampling.temperature = 3;
  d.desk.settings().seed = 9;
  REQUIRE(d.until([&] { return d.desk.next() && d.desk.next()->step->seed == 9; }));
  CHECK(d.desk.next()->step->settings.temperature == 3);
  d.desk.settings() = {};
  d.desk.settings().pace = 0;
  REQUIRE(d.until([&] { return d.desk.next() && d.desk.next()->step->seed == 1; }));
  CHECK(d.desk.next()->step->token == first);
  d.desk.step();
  d.desk.step();  // asked twice before the first has come: two tokens
  REQUIRE(d.writes(2));
  CHECK(d.desk.branch().steps[0].step->token == first);
  CHECK(d.desk.text()->tokens.size() == 8);
}

TEST_CASE("running ends where the context does; branches are kept, chosen and removed") {
  Desk d;
  d.desk.settings().greedy = true;
  d.desk.run();
  REQUIRE(d.until([&] { return !d.desk.branch().ended.empty(); }));
  CHECK_FALSE(d.desk.running());
  const int context = d.desk.model().model->config().context;
  const std::size_t all = d.desk.branch().steps.size();
  CHECK(all == static_cast<std::size_t>(context) - 6 + 1);
  CHECK(d.desk.cursor() == all - 1);  // there is no next one to look at
  d.desk.step();
  for (int i = 0; i < 5; ++i) d.frame();
  CHECK(d.desk.branch().steps.size() == all);

  const auto shared = d.desk.branch().steps[2].step;
  d.desk.fork(3, 5);
  REQUIRE(d.writes(4));
  CHECK(d.desk.branches().size() == 2);
  CHECK(d.desk.chosen() == 1);
  CHECK(d.desk.branch().steps.size() == 4);
  CHECK(d.desk.branch().steps[2].step == shared);
  CHECK(d.desk.branch().steps[3].step->token == 5);
  CHECK(d.desk.branch().steps[3].step->by == GenerationStep::By::given);
  d.desk.choose(0);
  CHECK(d.desk.branch().steps.size() == all);
  d.desk.remove(0);
  CHECK(d.desk.branches().size() == 1);
  CHECK(d.desk.branch().steps.size() == 4);
  d.desk.remove(0);
  CHECK(d.desk.branches().size() == 1);  // the last one stays
}

TEST_CASE("an untouched text follows the explorer; a written one waits to be asked") {
  Desk d;
  d.explorer.set_ids({1, 2, 3});
  REQUIRE(d.until([&] { return d.desk.prompt()->trace->tokens.size() == 3 && d.desk.next(); }));
  d.desk.step();
  REQUIRE(d.writes(1));
  d.explorer.set_ids({4, 5, 6, 7});
  REQUIRE(d.until([&] { return d.desk.prompt_changed(); }));
  CHECK(d.desk.prompt()->trace->tokens.size() == 3);
  CHECK(d.desk.branch().steps.size() == 1);
  d.desk.take_prompt();
  CHECK(d.desk.prompt()->trace->tokens.size() == 4);
  CHECK(d.desk.branch().steps.empty());
}

TEST_CASE("prompt and continuation go into the document") {
  Desk d;
  d.desk.step();
  REQUIRE(d.writes(1));
  const auto token = d.desk.branch().steps[0].step->token;
  d.desk.open_in_explore();
  CHECK(d.explorer.state().document.ids == std::vector<std::int32_t>{3, 14, 15, 9, 2, 6, token});
}
