// The generation desk without a window, frame by frame.

#include "app/state/explorer.h"
#include "app/state/generation_desk.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "core/base/file.h"
#include "tests/support/paths.h"

using namespace headscope;

namespace {

struct Desk {
  Explorer explorer{{.threads = 1, .wake = {}}};
  GenerationDesk desk;
  explicit Desk(std::size_t byte_budget = std::size_t{256} << 20)
      : desk(explorer.jobs, explorer.editor, explorer.run, explorer.files, byte_budget) {
    explorer.run.open_model(testing::reference("gpt2-random"));
    explorer.editor.set_ids({3, 14, 15, 9, 2, 6});
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
  d.explorer.editor.set_ids({1, 2, 3});
  REQUIRE(d.until([&] { return d.desk.prompt()->trace->tokens.size() == 3 && d.desk.next(); }));
  d.desk.step();
  REQUIRE(d.writes(1));
  d.explorer.editor.set_ids({4, 5, 6, 7});
  REQUIRE(d.until([&] { return d.desk.prompt_changed(); }));
  CHECK(d.desk.prompt()->trace->tokens.size() == 3);
  CHECK(d.desk.branch().steps.size() == 1);
  d.desk.take_prompt();
  CHECK(d.desk.prompt()->trace->tokens.size() == 4);
  CHECK(d.desk.branch().steps.empty());
}

namespace {
void check_same(const GenerationBranch& a, const GenerationBranch& b) {
  CHECK(a.id == b.id);
  CHECK(a.parent == b.parent);
  CHECK(a.from == b.from);
  REQUIRE(a.steps.size() == b.steps.size());
  for (std::size_t i = 0; i < a.steps.size(); ++i) {
    const GenerationStep &x = *a.steps[i].step, &y = *b.steps[i].step;
    CHECK(x.token == y.token);
    CHECK(x.by == y.by);
    CHECK(x.settings == y.settings);
    CHECK(x.seed == y.seed);
    REQUIRE(x.rows.shape() == y.rows.shape());
    for (Index k = 0; k < x.rows.dim(0); ++k)
      for (Index j = 0; j < x.rows.dim(1); ++j)
        CHECK(x.rows.at(k, j) == doctest::Approx(y.rows.at(k, j)).epsilon(1e-4));
    CHECK(a.steps[i].probability == doctest::Approx(b.steps[i].probability).epsilon(1e-5));
  }
}
}  // namespace

TEST_CASE("a session holds how every token was chosen, and opening it writes the same branches again") {
  const auto file = headscope::testing::scratch_dir("tape-session") / "s.json";
  std::vector<GenerationBranch> written;
  {
    Desk d;
    d.desk.settings().sampling = {.temperature = 1.7, .top_k = 9, .top_p = 0.95};
    d.desk.settings().seed = 18'000'000'000'000'000'001u;
    for (int i = 0; i < 5; ++i) d.desk.step();
    REQUIRE(d.writes(5));
    d.desk.fork(2, 7);  // a token of one's choice
    REQUIRE(d.writes(3));
    d.desk.settings().greedy = true;
    for (int i = 0; i < 3; ++i) d.desk.step();
    REQUIRE(d.writes(6));
    d.desk.choose(0);
    REQUIRE(d.until([&] { return d.desk.next().has_value(); }));
    written = d.desk.branches();
    REQUIRE(written.size() == 2);
    d.explorer.files.save(file);
  }
  Explorer explorer{{.threads = 1, .wake = {}}};
  GenerationDesk desk(explorer.jobs, explorer.editor, explorer.run, explorer.files);
  explorer.files.open(file);
  const auto until = [&](const std::function<bool()>& done) {
    for (int i = 0; i < 4000 && !done(); ++i) {
      explorer.frame(0);
      desk.frame(true);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return done();
  };
  REQUIRE(until([&] { return !desk.replaying() && desk.branches().size() == 2 && desk.next(); }));
  CHECK_FALSE(explorer.jobs.message());
  for (std::size_t i = 0; i < 2; ++i) check_same(desk.branches()[i], written[i]);
  CHECK(desk.chosen() == 0);
  CHECK(desk.settings().greedy);
  CHECK_FALSE(desk.prompt_changed());
  CHECK(desk.branches()[1].steps[1].step == desk.branches()[0].steps[1].step);  // shared, as before
  // And it goes on.
  desk.fork(4, 3);
  REQUIRE(until([&] { return desk.branches().size() == 3 && desk.branch().steps.size() == 5; }));

  // A token that cannot come out of these logits and this seed stays as it was recorded, and this is said.
  auto record = *desk.record();
  std::int32_t& token = record.branches[0].steps[0].token;
  token = token == 4 ? 5 : 4;
  desk.replay(record);
  REQUIRE(until([&] { return !desk.replaying(); }));
  CHECK(desk.branches()[0].steps[0].step->token == token);
  REQUIRE(explorer.jobs.message());
  CHECK(explorer.jobs.message()->text.find("the recorded ones were kept") != std::string::npos);
}

TEST_CASE("a session's generated text is not lost while it is made again, nor when that is stopped or fails") {
  const auto folder = headscope::testing::scratch_dir("tape-kept");
  TapeRecord written;
  {
    Desk d;
    for (int i = 0; i < 6; ++i) d.desk.step();
    REQUIRE(d.writes(6));
    written = *d.desk.record();
    d.explorer.files.save(folder / "s.json");
  }
  Explorer explorer{{.threads = 1, .wake = {}}};
  GenerationDesk desk(explorer.jobs, explorer.editor, explorer.run, explorer.files);
  explorer.files.set_tape_source([&] { return desk.record(); });
  const auto until = [&](const std::function<bool()>& done) {
    for (int i = 0; i < 4000 && !done(); ++i) {
      explorer.frame(0);
      desk.frame(true);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return done();
  };
  const auto saved = [&] {
    explorer.files.save(folder / "again.json");
    return session_from_json(read_file(folder / "again.json", std::size_t{1} << 20), "again").tape;
  };
  const auto is_written = [&](const std::optional<TapeRecord>& tape) {
    return tape && tape->branches == written.branches;
  };
  explorer.files.open(folder / "s.json");
  bool kept = true, seen = false;
  // Held up by another job, so that frames pass while it waits its turn.
  REQUIRE(until([&] { return explorer.results().run && desk.replaying(); }));
  for (int i = 0; i < 3; ++i) {
    const auto go = std::make_shared<std::atomic<bool>>(false);
    explorer.jobs.submit({"other", "counting"}, [go](Worker::Job&) -> Worker::Deliver {
      while (!*go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return nullptr;
    });
    if (i == 0 && !desk.replaying()) desk.replay(written);
    desk.frame(true);
    seen |= desk.replaying();
    kept &= is_written(desk.record()) && is_written(saved());
    *go = true;
    if (i == 0) {
      explorer.jobs.stop();
      desk.frame(true);
      REQUIRE(until([&] { return !explorer.jobs.busy(); }));
      CHECK(desk.replay_refused());
      kept &= is_written(desk.record()) && is_written(saved());
      desk.replay_again();
      desk.frame(true);
    }
  }
  CHECK(seen);
  CHECK(kept);
  REQUIRE(until([&] { return !desk.replaying() && !explorer.jobs.busy(); }));
  CHECK_FALSE(desk.replay_refused());
  CHECK(desk.branch().steps.size() == 6);
  CHECK(is_written(saved()));

  // One that cannot be made at all.
  TapeRecord wrong = *desk.record();
  wrong.branches[0].steps[5].token = 1'000'000;
  desk.replay(wrong);
  REQUIRE(until([&] { return desk.replay_refused(); }));
  CHECK(explorer.jobs.message());
  CHECK(desk.record() == wrong);
  // Another text, and it is forgotten.
  desk.step();
  REQUIRE(until([&] { return desk.branch().steps.size() == 7; }));
  CHECK(desk.record()->branches[0].steps.size() == 7);
}

TEST_CASE("steps stay inside the byte budget: the oldest lose their rows, and get them back when looked at") {
  Desk whole;
  whole.desk.settings().greedy = true;
  for (int i = 0; i < 12; ++i) whole.desk.step();
  REQUIRE(whole.writes(12));
  CHECK(whole.desk.dropped() == 0);
  std::size_t bytes = 0;
  for (const ToldStep& told : whole.desk.branch().steps) bytes += told.step->logits.bytes() + told.step->rows.bytes();

  Desk tight(bytes / 3);
  tight.desk.settings().greedy = true;
  for (int i = 0; i < 12; ++i) tight.desk.step();
  REQUIRE(tight.writes(12));
  const auto held = [&] {
    std::size_t sum = 0;
    for (const ToldStep& told : tight.desk.branch().steps)
      if (!is_dropped(*told.step)) sum += told.step->logits.bytes() + told.step->rows.bytes();
    return sum;
  };
  CHECK(tight.desk.dropped() > 4);
  CHECK(held() <= bytes / 3);
  CHECK(is_dropped(*tight.desk.branch().steps[0].step));
  CHECK_FALSE(is_dropped(*tight.desk.branch().steps[11].step));
  CHECK(tight.desk.branch().steps[0].probability == whole.desk.branch().steps[0].probability);  // numbers stay
  tight.desk.show(0);
  CHECK(tight.desk.at_cursor() == nullptr);
  REQUIRE(tight.until([&] { return tight.desk.at_cursor() != nullptr; }));
  const Tensor &again = tight.desk.at_cursor()->step->rows, &first = whole.desk.branch().steps[0].step->rows;
  REQUIRE(again.shape() == first.shape());
  for (Index k = 0; k < first.dim(0); ++k)
    for (Index j = 0; j < first.dim(1); ++j) CHECK(again.at(k, j) == doctest::Approx(first.at(k, j)).epsilon(1e-4));
  CHECK(held() <= bytes / 3);
}

TEST_CASE("prompt and continuation go into the document") {
  Desk d;
  d.desk.step();
  REQUIRE(d.writes(1));
  const auto token = d.desk.branch().steps[0].step->token;
  d.desk.open_in_explore();
  CHECK(d.explorer.state().document.ids == std::vector<std::int32_t>{3, 14, 15, 9, 2, 6, token});
}
