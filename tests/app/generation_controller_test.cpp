// The generation controller without a window, frame by frame.

#include "app/state/generation_controller.h"
#include "app/state/controller_controls.h"
#include "app/state/explorer.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "core/base/file.h"
#include "tests/support/paths.h"

namespace headscope::generation_controller_test {

namespace {

struct Controller {
  Explorer explorer{{.threads = 1, .wake = {}}};
  GenerationController controller;
  explicit Controller(std::size_t byte_budget = std::size_t{256} << 20)
      : controller(explorer.jobs, explorer.editor, explorer.run, explorer.files, byte_budget) {
    explorer.run.open_model(testing::reference("gpt2-random"));
    explorer.editor.set_ids({3, 14, 15, 9, 2, 6});
    controller.settings().pace = 0;
    REQUIRE(until([&] { return controller.next().has_value(); }));
  }
  void frame() {
    explorer.frame(0);
    controller.frame(true);
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
    return until([&] {
      return controller.branch().steps.size() >= steps && (controller.next() || !controller.branch().ended.empty());
    });
  }
};

}  // namespace

TEST_CASE("what comes next is known before it is written, and follows the settings") {
  Controller d;
  const auto first = d.controller.next()->step->token;
  d.controller.settings().sampling.temperature = 3;
  d.controller.settings().seed = 9;
  REQUIRE(d.until([&] { return d.controller.next() && d.controller.next()->step->seed == 9; }));
  CHECK(d.controller.next()->step->settings.temperature == 3);
  d.controller.settings() = {};
  d.controller.settings().pace = 0;
  REQUIRE(d.until([&] { return d.controller.next() && d.controller.next()->step->seed == 1; }));
  CHECK(d.controller.next()->step->token == first);
  d.controller.step();
  d.controller.step();  // asked twice before the first has come: two tokens
  REQUIRE(d.writes(2));
  CHECK(d.controller.branch().steps[0].step->token == first);
  CHECK(d.controller.text()->tokens.size() == 8);
}

TEST_CASE("running ends where the context does; branches are kept, chosen and removed") {
  Controller d;
  d.controller.settings().greedy = true;
  d.controller.run();
  REQUIRE(d.until([&] { return !d.controller.branch().ended.empty(); }));
  CHECK_FALSE(d.controller.running());
  const int context = d.controller.model().model->config().context;
  const std::size_t all = d.controller.branch().steps.size();
  CHECK(all == static_cast<std::size_t>(context) - 6 + 1);
  CHECK(d.controller.cursor() == all - 1);  // there is no next one to look at
  d.controller.step();
  for (int i = 0; i < 5; ++i) d.frame();
  CHECK(d.controller.branch().steps.size() == all);

  const auto shared = d.controller.branch().steps[2].step;
  d.controller.fork(3, 5);
  REQUIRE(d.writes(4));
  CHECK(d.controller.branches().size() == 2);
  CHECK(d.controller.chosen() == 1);
  CHECK(d.controller.branch().steps.size() == 4);
  CHECK(d.controller.branch().steps[2].step == shared);
  CHECK(d.controller.branch().steps[3].step->token == 5);
  CHECK(d.controller.branch().steps[3].step->by == GenerationStep::By::given);
  d.controller.choose(0);
  CHECK(d.controller.branch().steps.size() == all);
  d.controller.remove(0);
  CHECK(d.controller.branches().size() == 1);
  CHECK(d.controller.branch().steps.size() == 4);
  d.controller.remove(0);
  CHECK(d.controller.branches().size() == 1);  // the last one stays
}

TEST_CASE("an untouched text follows the explorer; a written one waits to be asked") {
  Controller d;
  d.explorer.editor.set_ids({1, 2, 3});
  REQUIRE(d.until([&] { return d.controller.prompt()->trace->tokens.size() == 3 && d.controller.next(); }));
  d.controller.step();
  REQUIRE(d.writes(1));
  d.explorer.editor.set_ids({4, 5, 6, 7});
  REQUIRE(d.until([&] { return d.controller.prompt_changed(); }));
  CHECK(d.controller.prompt()->trace->tokens.size() == 3);
  CHECK(d.controller.branch().steps.size() == 1);
  d.controller.take_prompt();
  CHECK(d.controller.prompt()->trace->tokens.size() == 4);
  CHECK(d.controller.branch().steps.empty());
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
    Controller d;
    d.controller.settings().sampling = {.temperature = 1.7, .top_k = 9, .top_p = 0.95};
    d.controller.settings().seed = 18'000'000'000'000'000'001u;
    for (int i = 0; i < 5; ++i) d.controller.step();
    REQUIRE(d.writes(5));
    d.controller.fork(2, 7);  // a token of one's choice
    REQUIRE(d.writes(3));
    d.controller.settings().greedy = true;
    for (int i = 0; i < 3; ++i) d.controller.step();
    REQUIRE(d.writes(6));
    d.controller.choose(0);
    REQUIRE(d.until([&] { return d.controller.next().has_value(); }));
    written = d.controller.branches();
    REQUIRE(written.size() == 2);
    d.explorer.files.save(file);
  }
  Explorer explorer{{.threads = 1, .wake = {}}};
  GenerationController controller(explorer.jobs, explorer.editor, explorer.run, explorer.files);
  explorer.files.open(file);
  const auto until = [&](const std::function<bool()>& done) {
    for (int i = 0; i < 4000 && !done(); ++i) {
      explorer.frame(0);
      controller.frame(true);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return done();
  };
  REQUIRE(until([&] { return !controller.replaying() && controller.branches().size() == 2 && controller.next(); }));
  CHECK_FALSE(explorer.jobs.message());
  for (std::size_t i = 0; i < 2; ++i) check_same(controller.branches()[i], written[i]);
  CHECK(controller.chosen() == 0);
  CHECK(controller.settings().greedy);
  CHECK_FALSE(controller.prompt_changed());
  CHECK(controller.branches()[1].steps[1].step == controller.branches()[0].steps[1].step);  // shared, as before
  // And it goes on.
  controller.fork(4, 3);
  REQUIRE(until([&] { return controller.branches().size() == 3 && controller.branch().steps.size() == 5; }));

  // A token that cannot come out of these logits and this seed stays as it was recorded, and this is said.
  auto record = *controller.record();
  std::int32_t& token = record.branches[0].steps[0].token;
  token = token == 4 ? 5 : 4;
  controller.replay(record);
  REQUIRE(until([&] { return !controller.replaying(); }));
  CHECK(controller.branches()[0].steps[0].step->token == token);
  REQUIRE(explorer.jobs.message());
  CHECK(explorer.jobs.message()->text.find("the recorded ones were kept") != std::string::npos);
}

TEST_CASE("a session's generated text is not lost while it is made again, nor when that is stopped or fails") {
  const auto folder = headscope::testing::scratch_dir("tape-kept");
  TranscriptRecord written;
  {
    Controller d;
    for (int i = 0; i < 6; ++i) d.controller.step();
    REQUIRE(d.writes(6));
    written = *d.controller.record();
    d.explorer.files.save(folder / "s.json");
  }
  Explorer explorer{{.threads = 1, .wake = {}}};
  GenerationController controller(explorer.jobs, explorer.editor, explorer.run, explorer.files);
  explorer.files.set_transcript_source([&] { return controller.record(); });
  const auto until = [&](const std::function<bool()>& done) {
    for (int i = 0; i < 4000 && !done(); ++i) {
      explorer.frame(0);
      controller.frame(true);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return done();
  };
  const auto saved = [&] {
    explorer.files.save(folder / "again.json");
    return session_from_json(read_file(folder / "again.json", std::size_t{1} << 20), "again").transcript;
  };
  const auto is_written = [&](const std::optional<TranscriptRecord>& transcript) {
    return transcript && transcript->branches == written.branches;
  };
  explorer.files.open(folder / "s.json");
  bool kept = true, seen = false;
  // Held up by another job, so that frames pass while it waits its turn.
  REQUIRE(until([&] { return explorer.results().run && controller.replaying(); }));
  for (int i = 0; i < 3; ++i) {
    const auto go = std::make_shared<std::atomic<bool>>(false);
    explorer.jobs.submit({"other", "counting"}, [go](Worker::Job&) -> Worker::Deliver {
      while (!*go) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return nullptr;
    });
    if (i == 0 && !controller.replaying()) controller.replay(written);
    controller.frame(true);
    seen |= controller.replaying();
    kept &= is_written(controller.record()) && is_written(saved());
    *go = true;
    if (i == 0) {
      explorer.jobs.stop();
      controller.frame(true);
      REQUIRE(until([&] { return !explorer.jobs.busy(); }));
      CHECK(controller.replay_refused());
      kept &= is_written(controller.record()) && is_written(saved());
      controller.replay_again();
      controller.frame(true);
    }
  }
  CHECK(seen);
  CHECK(kept);
  REQUIRE(until([&] { return !controller.replaying() && !explorer.jobs.busy(); }));
  CHECK_FALSE(controller.replay_refused());
  CHECK(controller.branch().steps.size() == 6);
  CHECK(is_written(saved()));

  // One that cannot be made at all.
  TranscriptRecord wrong = *controller.record();
  wrong.branches[0].steps[5].token = 1'000'000;
  controller.replay(wrong);
  REQUIRE(until([&] { return controller.replay_refused(); }));
  CHECK(explorer.jobs.message());
  CHECK(controller.record() == wrong);
  // Another text, and it is forgotten.
  controller.step();
  REQUIRE(until([&] { return controller.branch().steps.size() == 7; }));
  CHECK(controller.record()->branches[0].steps.size() == 7);
}

TEST_CASE("steps stay inside the byte budget: the oldest lose their rows, and get them back when looked at") {
  Controller whole;
  whole.controller.settings().greedy = true;
  for (int i = 0; i < 12; ++i) whole.controller.step();
  REQUIRE(whole.writes(12));
  CHECK(whole.controller.dropped() == 0);
  std::size_t bytes = 0;
  for (const ToldStep& told : whole.controller.branch().steps)
    bytes += told.step->logits.bytes() + told.step->rows.bytes();

  Controller tight(bytes / 3);
  tight.controller.settings().greedy = true;
  for (int i = 0; i < 12; ++i) tight.controller.step();
  REQUIRE(tight.writes(12));
  const auto held = [&] {
    std::size_t sum = 0;
    for (const ToldStep& told : tight.controller.branch().steps)
      if (!is_dropped(*told.step)) sum += told.step->logits.bytes() + told.step->rows.bytes();
    return sum;
  };
  CHECK(tight.controller.dropped() > 4);
  CHECK(held() <= bytes / 3);
  CHECK(is_dropped(*tight.controller.branch().steps[0].step));
  CHECK_FALSE(is_dropped(*tight.controller.branch().steps[11].step));
  CHECK(tight.controller.branch().steps[0].probability ==
        whole.controller.branch().steps[0].probability);  // numbers stay
  tight.controller.show(0);
  CHECK(tight.controller.at_cursor() == nullptr);
  REQUIRE(tight.until([&] { return tight.controller.at_cursor() != nullptr; }));
  const Tensor &again = tight.controller.at_cursor()->step->rows,
               &first = whole.controller.branch().steps[0].step->rows;
  REQUIRE(again.shape() == first.shape());
  for (Index k = 0; k < first.dim(0); ++k)
    for (Index j = 0; j < first.dim(1); ++j) CHECK(again.at(k, j) == doctest::Approx(first.at(k, j)).epsilon(1e-4));
  CHECK(held() <= bytes / 3);
}

TEST_CASE("prompt and continuation go into the document") {
  Controller d;
  d.controller.step();
  REQUIRE(d.writes(1));
  const auto token = d.controller.branch().steps[0].step->token;
  d.controller.open_in_explore();
  CHECK(d.explorer.state().document.ids == std::vector<std::int32_t>{3, 14, 15, 9, 2, 6, token});
}

TEST_CASE("beams are searched for while they are wanted, looked at as branches, and left again") {
  Controller d;
  d.controller.step();
  REQUIRE(d.writes(1));
  CHECK_FALSE(d.controller.beams());
  d.controller.want(GenerationController::Study::beams);
  d.controller.beam_settings() = {.width = 3, .tokens = 5};
  REQUIRE(d.until([&] { return d.controller.beams() != nullptr && !d.controller.searching(); }));
  const auto tree = d.controller.beams();
  CHECK(d.controller.searched()->width == 3);
  CHECK(tree->prompt == d.controller.prompt()->whole->ids());
  REQUIRE(tree->beams.size() == 3);
  CHECK(tree->nodes.back().step <= 5);

  const std::size_t node = tree->beams[1].node;
  d.controller.follow(node);
  CHECK(d.controller.branches().size() == 2);
  REQUIRE(d.writes(tree->tokens(node).size()));
  std::vector<std::int32_t> written;
  double sum = 0;
  for (const ToldStep& told : d.controller.branch().steps) {
    written.push_back(told.step->token);
    sum += std::log(told.probability);
    CHECK(told.step->by == GenerationStep::By::given);
    CHECK(told.step->rows.defined());
  }
  CHECK(written == tree->tokens(node));
  CHECK(sum == doctest::Approx(tree->nodes[node].sum).epsilon(1e-4));
  CHECK(d.controller.followed() == node);
  CHECK(d.controller.beams() == tree);  // looking at a text is no reason to search again

  // A part of it, then the same again: a branch of its own, then that branch.
  const std::size_t parent = *tree->nodes[node].parent;
  d.controller.follow(parent);
  REQUIRE(d.writes(tree->tokens(parent).size()));
  CHECK(d.controller.branches().size() == 3);
  d.controller.follow(node);
  CHECK(d.controller.branches().size() == 3);
  CHECK(d.controller.branch().steps.size() == written.size());
  d.controller.leave_beam();
  CHECK(d.controller.chosen() == 0);
  CHECK(d.controller.branch().steps.size() == 1);
  CHECK_FALSE(d.controller.followed());

  // Another search: what was looked at is no longer of it.
  d.controller.follow(node);
  d.controller.beam_settings().width = 2;
  REQUIRE(d.until([&] { return d.controller.searched() && d.controller.searched()->width == 2; }));
  CHECK_FALSE(d.controller.followed());
  CHECK(d.controller.beams()->beams.size() == 2);
}

TEST_CASE("a search of beams stops when it is told to, and its settings are kept with a session") {
  Controller d;
  d.controller.want(GenerationController::Study::beams);
  d.controller.beam_settings() = {.width = most_beams, .length_penalty = 1.5, .tokens = 40};
  REQUIRE(d.until([&] { return d.controller.searching(); }));
  d.explorer.jobs.stop();
  d.frame();
  CHECK_FALSE(d.controller.searching());
  for (int i = 0; i < 20; ++i) d.frame();
  CHECK_FALSE(d.controller.beams());
  ControlsRecord record;
  controls_of(d.controller, record);
  Controller other;
  ControlsRecord again(record.text());
  controls_of(other.controller, again);
  CHECK(other.controller.beam_settings().width == most_beams);
  CHECK(other.controller.beam_settings().length_penalty == 1.5);
  CHECK(other.controller.beam_settings().tokens == 40);
}

}  // namespace headscope::generation_controller_test
