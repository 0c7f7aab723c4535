// What the explorer computes from a document, in which order, and what stays on screen when something fails.

#include <doctest/doctest.h>

#include <atomic>
#include <bit>
#include <cmath>
#include <set>
#include <thread>

#include "app/state/exports.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/edits/mask_edit.h"
#include "core/tensor/backend.h"
#include "tests/app/explorer_desk.h"

using namespace headscope;
using headscope::testing::Desk;
using headscope::testing::example;
using headscope::testing::reference;
using headscope::testing::scratch_dir;
using headscope::testing::story;

TEST_CASE("a model and a text lead to a run, the facts of its heads, the selected head in factors, and no effect") {
  Desk desk;
  desk.explorer.run.open_model(example());
  desk.explorer.editor.set_text(story);
  desk.settle();
  CHECK(desk.message() == "");
  REQUIRE(desk.results().run);
  const Trace& trace = *desk.results().run->trace;
  CHECK(trace.text == story);
  CHECK(desk.results().run->next.size() == 20);
  REQUIRE(desk.results().losses);
  CHECK(desk.results().losses->trace.get() == &trace);
  CHECK(desk.results().losses->now.size() == trace.tokens.size() - 1);
  CHECK(desk.results().losses->before.empty());
  REQUIRE(desk.results().facts);
  CHECK(desk.results().facts->trace.get() == &trace);
  CHECK(desk.results().facts->verdicts.size() == trace.maps.size());
  CHECK(desk.results().facts->table.value.size() == trace.maps.size());
  CHECK(desk.results().facts->row({1, 0}) >= 0);
  CHECK(desk.results().facts->row({99, 0}) == -1);
  REQUIRE(desk.results().detail);
  CHECK(desk.results().detail->of_trace.get() == &trace);
  CHECK(desk.results().detail->head == desk.document().selected);
  CHECK(desk.results().detail->map().is_factored());
  CHECK_FALSE(desk.results().effect);
  CHECK(desk.explorer.results().run->trace->milliseconds > 0);
  CHECK(desk.explorer.jobs.status().doing == "");

  // The head that was chosen for the first picture belongs to a class.
  const int row = desk.results().facts->row(desk.document().selected);
  REQUIRE(row >= 0);
  CHECK_FALSE(desk.results().facts->verdicts[static_cast<std::size_t>(row)].empty());
}

TEST_CASE(
    "a temperature makes an effect: the curve's present point, the moved weight and the changed tokens agree with it") {
  Desk desk;
  desk.explorer.run.open_model(reference("gpt2-random"));
  desk.explorer.editor.set_text("to be or not to be");
  desk.explorer.editor.select({1, 2});
  desk.settle();
  REQUIRE(desk.results().detail);
  const double entropy_before = desk.results().detail->entropy;
  const auto plain = desk.results().run->trace;
  const auto curve = desk.results().detail->curve;
  const auto plain_losses = desk.results().current_losses();
  REQUIRE(plain_losses);

  desk.explorer.editor.set_temperature(4);
  desk.settle();
  REQUIRE(desk.results().effect);
  CHECK(desk.results().effect->before == plain);  // not run again
  CHECK(desk.results().effect->after == desk.results().run->trace);
  CHECK(desk.results().effect->change.kl > 0);
  // The losses of every token come after, with the logits of every position, which the trace itself is spared.
  CHECK(desk.results().run->trace->logits.dim(0) == 1);
  const auto losses = desk.results().current_losses();
  REQUIRE(losses);
  CHECK(losses->before == plain_losses->now);
  RunRequest whole = desk.results().run->request;
  whole.capture.all_logits = true;
  Backend here(1);  // the explorer's belongs to its worker
  const auto again = token_losses(*run(desk.results().model, whole, Ctx{here}));
  REQUIRE(again.size() == losses->now.size());
  for (std::size_t i = 0; i < again.size(); ++i) CHECK(losses->now[i] == doctest::Approx(again[i]).epsilon(1e-6));
  CHECK(losses->now != losses->before);
  CHECK(desk.results().detail->temperature == 4);
  CHECK(desk.results().detail->entropy > entropy_before);
  // The curve is over absolute temperatures, so setting one does not move it.
  REQUIRE(desk.results().detail->curve.tau == curve.tau);
  for (std::size_t i = 0; i < curve.tau.size(); ++i)
    CHECK(desk.results().detail->curve.entropy[i] == doctest::Approx(curve.entropy[i]).epsilon(1e-5));
  for (std::size_t i = 0; i < plain->maps.size(); ++i) {
    const bool edited = plain->maps[i].layer() == 1 && plain->maps[i].head() == 2;
    CHECK((desk.results().effect->moved[i] > 0) == edited);  // nothing lies above layer 1
  }

  desk.explorer.editor.undo();
  desk.settle();
  CHECK(desk.document().edits.empty());
  CHECK_FALSE(desk.results().effect);
  CHECK(desk.results().detail->entropy == doctest::Approx(entropy_before));
  desk.explorer.editor.redo();
  desk.settle();
  REQUIRE(desk.results().effect);
  CHECK(desk.results().detail->temperature == 4);
}

namespace {
/// Everything a run recorded and measured, bit for bit.
std::vector<std::uint32_t> bits_of(const Results& results) {
  std::vector<std::uint32_t> bits;
  const auto add = [&](const Tensor& tensor) {
    if (!tensor.defined()) return;
    const Tensor packed = tensor.packed();
    for (Index i = 0; i < packed.size(); ++i) bits.push_back(std::bit_cast<std::uint32_t>(packed.data()[i]));
  };
  const auto add_number = [&](double value) {
    const auto both = std::bit_cast<std::uint64_t>(value);
    bits.push_back(static_cast<std::uint32_t>(both));
    bits.push_back(static_cast<std::uint32_t>(both >> 32));
  };
  const Trace& trace = *results.run->trace;
  add(trace.logits);
  for (const AttentionMap& map : trace.maps) add(map.to_dense());
  for (const auto& [site, tensor] : trace.sites) add(tensor);
  REQUIRE(results.losses->trace == results.run->trace);
  for (const double loss : results.losses->now) add_number(loss);
  for (const NextToken& token : results.run->next) add_number(token.probability);
  REQUIRE(results.facts->trace == results.run->trace);
  for (const auto& row : results.facts->table.value)
    for (const double value : row) add_number(value);
  for (const auto& verdicts : results.facts->verdicts)
    for (const HeadVerdict& verdict : verdicts) add_number(verdict.score);
  REQUIRE(results.detail->of_trace == results.run->trace);
  for (const double entropy : results.detail->curve.entropy) add_number(entropy);
  return bits;
}
}  // namespace

TEST_CASE("undo returns the bit-same trace, redo the bit-same edited one, whatever was edited") {
  for (const char* model : {"gpt2-random", "llama-gqa"}) {
    Desk desk;
    desk.explorer.run.open_model(reference(model));
    desk.explorer.editor.set_ids({3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7});
    desk.explorer.editor.select({1, 1});
    desk.settle();
    std::vector<std::vector<std::uint32_t>> states{bits_of(desk.results())};
    REQUIRE(states[0].size() > 1000);
    const auto edited = [&](const std::function<void()>& edit) {
      desk.explorer.editor.history().close_step();
      edit();
      desk.settle();
      states.push_back(bits_of(desk.results()));
      CHECK(states.back() != states[states.size() - 2]);
    };
    const auto add = [&](const char* words) {
      return [&desk, words] {
        auto edits = desk.document().edits;
        edits.push_back(parse_intervention(words, "test"));
        desk.explorer.editor.set_edits(std::move(edits));
      };
    };
    edited([&] { desk.explorer.editor.set_temperature(0.4); });
    edited([&] {  // a weight that is dragged: many traces on the way, one step
      for (const double weight : {0.1, 0.35, 0.62, 0.9}) {
        desk.explorer.editor.set_weight(7, 2, weight);
        desk.settle();
      }
    });
    edited([&] { desk.explorer.editor.paint_mask(5, 1, 2, false, 12); });
    edited(add("0.0: ablate mean"));
    edited(add("0.1: ablate resample 5"));
    edited(add("1.*: switch off mlp"));
    edited(add("0.1: pattern previous"));
    edited(add("1.1: drop first 2"));
    edited(add("0.0: freeze pattern"));
    edited([&] { desk.explorer.editor.set_ids({1, 2, 3, 4, 1, 2, 3, 4}); });
    for (std::size_t i = states.size() - 1; i-- > 0;) {
      CAPTURE(i);
      desk.explorer.editor.undo();
      desk.settle();
      CHECK(bits_of(desk.results()) == states[i]);
    }
    CHECK(desk.document().edits.empty());
    for (std::size_t i = 1; i < states.size(); ++i) {
      CAPTURE(i);
      desk.explorer.editor.redo();
      desk.settle();
      CHECK(bits_of(desk.results()) == states[i]);
    }
  }
}

TEST_CASE("an effect is measured against an unedited run even when none was on screen before") {
  Desk desk;
  desk.explorer.run.open_model(reference("gpt2-random"));
  desk.explorer.editor.set_edits({{{}, SetMask{"window 1"}}});
  desk.explorer.editor.set_text("to be or not to be");
  desk.settle();
  REQUIRE(desk.results().effect);
  REQUIRE(desk.results().current_losses());
  CHECK(desk.results().current_losses()->before.size() == desk.results().run->trace->tokens.size() - 1);
  CHECK(desk.results().effect->before->map({0, 0}).weight(3, 1) > 0);
  CHECK(desk.results().effect->after->map({0, 0}).weight(3, 1) == 0);
  // Every row keeps its own cell alone: what moved is 1 − the diagonal before.
  const AttentionMap& before = desk.results().effect->before->map({0, 0});
  double moved = 0;
  for (Index i = 0; i < before.n_query(); ++i) moved += 1 - static_cast<double>(before.weight(i, i));
  CHECK(desk.results().effect->moved[0] ==
        doctest::Approx(moved / static_cast<double>(before.n_query())).epsilon(1e-5));
}

TEST_CASE("a failed run shows its error and keeps the last good one; the next good run takes the error away") {
  Desk desk;
  desk.explorer.run.open_model(reference("gpt2-random"));
  desk.explorer.editor.set_text("short");
  desk.settle();
  const auto good = desk.results().run;
  REQUIRE(good);
  desk.explorer.editor.set_edits({{{0, 0}, SetMask{"no such mask"}}});
  desk.settle();
  CHECK(desk.message().find("no such mask") != std::string::npos);
  CHECK(desk.results().run == good);
  desk.explorer.editor.set_edits({});
  desk.explorer.editor.set_text("short again");
  desk.settle();
  CHECK(desk.message() == "");
  CHECK(desk.results().run != good);
}

TEST_CASE("of a text that is too long a part can be kept, the first or the last; undo asks again") {
  Desk desk;
  desk.explorer.run.open_model(reference("gpt2-random"));
  desk.explorer.editor.set_text(std::string(100, 'x') + "yz");  // the context is 48
  desk.settle();
  REQUIRE(desk.explorer.results().too_long);
  CHECK(desk.explorer.results().too_long->context == 48);
  const int tokens = desk.explorer.results().too_long->tokens;
  CHECK(tokens > 48);
  CHECK(desk.message() == "");
  desk.explorer.editor.set_too_long(RunRequest::TooLong::keep_last);
  desk.settle();
  CHECK_FALSE(desk.explorer.results().too_long);
  REQUIRE(desk.results().run);
  CHECK(desk.results().run->trace->tokens.size() == 48);
  CHECK(desk.results().run->trace->tokens.back().end == 102);
  desk.explorer.editor.set_too_long(RunRequest::TooLong::keep_first);
  desk.settle();
  CHECK(desk.results().run->trace->tokens.front().begin == 0);
  desk.explorer.editor.undo();
  desk.explorer.editor.undo();
  desk.settle();
  CHECK(desk.explorer.results().too_long);
  desk.explorer.editor.set_text("short");
  desk.settle();
  CHECK_FALSE(desk.explorer.results().too_long);
}

TEST_CASE("an empty text has nothing to show, and typing again brings everything back") {
  Desk desk;
  desk.explorer.run.open_model(reference("gpt2-random"));
  desk.explorer.editor.set_text("abc");
  desk.settle();
  desk.explorer.editor.set_text("");
  desk.settle();
  CHECK_FALSE(desk.results().run);
  CHECK_FALSE(desk.results().facts);
  CHECK_FALSE(desk.results().detail);
  CHECK(desk.message() == "");
  desk.explorer.editor.set_text("abc");
  desk.settle();
  CHECK(desk.results().run);
  CHECK(desk.results().detail);
}

TEST_CASE(
    "an export writes the bytes that rendering the same picture writes, and says so; a view that is none says why") {
  const auto folder = scratch_dir("export");
  Desk desk;
  export_view(desk.explorer.jobs, desk.explorer.state(), desk.explorer.results(), {folder / "nothing.png"});
  CHECK(desk.message() == "There is nothing to export yet.");
  desk.explorer.run.open_model(reference("gpt2-random"));
  desk.explorer.editor.set_text("to be or not to be");
  desk.explorer.editor.select({1, 2});
  desk.settle();
  desk.explorer.editor.pin(5, 3);
  desk.explorer.editor.view().scale = Scale::log;
  for (const char* name : {"view.svg", "view.png", "view.csv"}) {
    export_view(desk.explorer.jobs, desk.explorer.state(), desk.explorer.results(), {folder / name, 96});
    desk.settle();
    CHECK(desk.message().find(std::string("Written: ") + (folder / name).string()) == 0);
    PictureRequest same;
    same.heads = {{1, 2}};
    same.scaling.scale = Scale::log;
    same.query = 5;
    same.key = 3;
    const auto direct = folder / ("direct" + std::filesystem::path(name).extension().string());
    export_picture(*desk.results().run->trace, same, "print", direct, {{}, {}, 96.0});
    CHECK(read_file(folder / name) == read_file(direct));
  }
  desk.explorer.editor.view().head_view = HeadView::arcs;
  export_view(desk.explorer.jobs, desk.explorer.state(), desk.explorer.results(), {folder / "arcs.svg"});
  desk.settle();
  desk.explorer.editor.view().head_view = HeadView::row;
  desk.explorer.editor.view().scale = Scale::per_row;
  desk.explorer.editor.pin(std::nullopt);
  export_view(desk.explorer.jobs, desk.explorer.state(), desk.explorer.results(), {folder / "row.svg", 96, false});
  desk.settle();
  export_view(desk.explorer.jobs, desk.explorer.state(), desk.explorer.results(), {folder / "all.svg", 96, true, true});
  desk.settle();
  for (const char* name : {"arcs.svg", "row.svg", "all.svg"}) {
    CHECK(read_file(folder / name).find("<svg") != std::string::npos);
    CHECK(read_file(folder / name) != read_file(folder / "view.svg"));
  }
  for (const char* bad : {"view.jpg", "no/such/folder/view.png"}) {
    export_view(desk.explorer.jobs, desk.explorer.state(), desk.explorer.results(), {folder / bad});
    desk.settle();
    CHECK(desk.explorer.jobs.message()->level == Message::Level::error);
    CHECK(desk.message().find("view.") != std::string::npos);
  }
  desk.explorer.editor.pin(6);
  for (const HeadView view : {HeadView::steps, HeadView::qk}) {
    desk.explorer.editor.view().head_view = view;
    const auto file = folder / (std::string(name(view)) + ".svg");
    export_view(desk.explorer.jobs, desk.explorer.state(), desk.explorer.results(), {file});
    desk.settle();
    CHECK(desk.message().find("Written: " + file.string()) == 0);
    CHECK(read_file(file).find("<svg") != std::string::npos);
  }
  desk.explorer.editor.view().head_view = HeadView::map;
  desk.explorer.editor.view().scale = Scale::linear;
  std::set<std::string> seen;
  for (const FirstToken mode : {FirstToken::show, FirstToken::hide, FirstToken::renormalize}) {
    desk.explorer.editor.view().first_token = mode;
    export_view(desk.explorer.jobs, desk.explorer.state(), desk.explorer.results(), {folder / "first.svg"});
    desk.settle();
    seen.insert(read_file(folder / "first.svg"));
  }
  CHECK(seen.size() == 3);
}

TEST_CASE("destroying a busy explorer is clean") {
  for (int i = 0; i < 3; ++i) {
    Desk desk;
    desk.explorer.run.open_model(example());
    desk.explorer.editor.set_text(story);
    for (int frame = 0; frame < 20 * i; ++frame) desk.explorer.frame(desk.now += 0.01);
  }
}

TEST_CASE("stop ends whatever a panel has computed, says what it was, and it runs again when asked") {
  Desk desk;
  desk.explorer.run.open_model(example());
  desk.explorer.editor.set_text(story);
  desk.settle();
  std::atomic<int> begun{0}, made{0};
  std::atomic<bool> quick{false};
  const auto ask = [&](const char* tag, const char* words) {
    desk.explorer.jobs.submit({tag, words}, [&](Worker::Job& job) -> Worker::Deliver {
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
  CHECK(desk.explorer.jobs.status().doing == "searching the whole vocabulary");
  CHECK(desk.explorer.jobs.stopped().empty());
  desk.explorer.jobs.stop();
  desk.settle();
  CHECK(made == 0);
  CHECK(begun == 1);
  CHECK(desk.explorer.jobs.stopped() == "searching the whole vocabulary and 1 more");
  CHECK(desk.explorer.jobs.was_stopped("scene.circuits"));
  CHECK_FALSE(desk.explorer.run.behind());  // the document's own results are there

  quick = true;
  desk.explorer.run.run_again();
  desk.settle();
  CHECK(made == 2);
  CHECK(desk.explorer.jobs.stopped().empty());

  // Another question of the same tag takes the place of the stopped one; one that is forgotten does not come back.
  quick = false;
  ask("read.one", "reading the run");
  ask("read.two", "reading the run");
  desk.explorer.jobs.stop();
  desk.settle();
  quick = true;
  ask("read.one", "reading the run");
  desk.explorer.jobs.forget("read.two");
  desk.settle();
  CHECK(made == 3);
  CHECK(desk.explorer.jobs.stopped().empty());
  desk.explorer.run.run_again();
  desk.settle();
  CHECK(made == 3);
}

TEST_CASE("what was stopped stays stopped, says so, and runs again when asked") {
  Desk desk;
  desk.explorer.run.open_model(example());
  desk.explorer.editor.set_text(story);
  desk.settle();
  CHECK_FALSE(desk.explorer.run.behind());
  const auto before = desk.results().run;

  desk.explorer.editor.set_text("Mr and Mrs Quill");
  desk.explorer.frame(desk.now += 0.01);
  desk.explorer.jobs.stop();
  desk.settle();
  CHECK(desk.results().run == before);
  CHECK(desk.explorer.run.behind());
  desk.explorer.run.run_again();
  desk.settle();
  CHECK_FALSE(desk.explorer.run.behind());
  CHECK(desk.results().run->trace->text == "Mr and Mrs Quill");

  // Undo goes back to another model; stopped, it is not opened once more by itself.
  const std::filesystem::path first = desk.document().model;
  for (const char* other : {"gpt2-random", "llama-gqa"}) {  // two models stay open, a third has to be opened anew
    desk.explorer.run.open_model(reference(other));
    desk.settle();
  }
  for (int steps = 0; steps < 9 && desk.document().model != first; ++steps) desk.explorer.editor.undo();
  REQUIRE(desk.document().model == first);
  desk.explorer.frame(desk.now += 0.01);
  desk.explorer.jobs.stop();
  desk.settle();
  CHECK(desk.results().model_folder != first);
  CHECK(desk.explorer.run.behind());
  desk.explorer.run.run_again();
  desk.settle();
  CHECK(desk.results().model_folder == first);
  CHECK_FALSE(desk.explorer.run.behind());
}

TEST_CASE("losses of another run are none of the run on screen") {
  Results results;
  auto run = std::make_shared<TracedRun>();
  auto losses = std::make_shared<TextLosses>();
  run->trace = std::make_shared<Trace>();
  losses->trace = std::make_shared<Trace>();
  results.run = run;
  results.losses = losses;
  CHECK_FALSE(results.current_losses());
  losses->trace = run->trace;
  CHECK(results.current_losses() == results.losses);
}
