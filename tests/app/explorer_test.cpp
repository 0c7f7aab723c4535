#include "app/state/explorer.h"

#include <doctest/doctest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <set>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/paths.h"

using namespace headscope;
using headscope::testing::reference;
using headscope::testing::scratch_dir;
using headscope::testing::source_dir;

namespace {

/// An explorer with a clock of its own, which waits for the worker without asking all the time.
struct Desk {
  // The explorer comes last, so that its worker, which calls woken(), ends before what that needs.
  std::mutex lock;
  std::condition_variable changed;
  int wakes = 0;
  double now = 0;
  Explorer explorer{{1, [this] { woken(); }}};

  void woken() {
    const std::lock_guard hold(lock);
    ++wakes;
    changed.notify_all();
  }

  /// Frames until nothing runs, waits, or is ready.
  void settle() {
    for (int quiet = 0; quiet < 2;) {
      std::unique_lock hold(lock);
      const int before = wakes;
      hold.unlock();
      const bool news = explorer.frame(now += 0.01);
      hold.lock();
      if (explorer.busy()) changed.wait_for(hold, std::chrono::milliseconds(200), [&] { return wakes != before; });
      quiet = news || explorer.busy() ? 0 : quiet + 1;
    }
  }
  const Results& results() const { return explorer.results(); }
  const Document& document() const { return explorer.state().document; }
  std::string message() const { return explorer.state().message ? explorer.state().message->text : ""; }
};

std::filesystem::path example() {
  return source_dir() / "assets/examples/induction";
}

constexpr const char* story = "Mr and Mrs Quill of Fox Hythe kept bees. Now Mr and Mrs Qu";

}  // namespace

TEST_CASE("a model and a text lead to a run, the facts of its heads, the selected head in factors, and no effect") {
  Desk desk;
  desk.explorer.open_model(example());
  desk.explorer.set_text(story);
  desk.settle();
  CHECK(desk.message() == "");
  REQUIRE(desk.results().run);
  const Trace& trace = *desk.results().run->trace;
  CHECK(trace.text == story);
  CHECK(desk.results().run->next.size() == 20);
  CHECK(desk.results().run->losses.size() == trace.tokens.size() - 1);
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
  CHECK(desk.explorer.status().trace_ms > 0);
  CHECK(desk.explorer.status().doing == "");

  // The head that was chosen for the first picture belongs to a class.
  const int row = desk.results().facts->row(desk.document().selected);
  REQUIRE(row >= 0);
  CHECK_FALSE(desk.results().facts->verdicts[static_cast<std::size_t>(row)].empty());
}

TEST_CASE(
    "a temperature makes an effect: the curve's present point, the moved weight and the changed tokens agree with it") {
  Desk desk;
  desk.explorer.open_model(reference("gpt2-random"));
  desk.explorer.set_text("to be or not to be");
  desk.explorer.select({1, 2});
  desk.settle();
  REQUIRE(desk.results().detail);
  const double entropy_before = desk.results().detail->entropy;
  const auto plain = desk.results().run->trace;
  const auto curve = desk.results().detail->curve;

  desk.explorer.set_temperature(4);
  desk.settle();
  REQUIRE(desk.results().effect);
  CHECK(desk.results().effect->before == plain);  // not run again
  CHECK(desk.results().effect->after == desk.results().run->trace);
  CHECK(desk.results().effect->change.kl > 0);
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

  desk.explorer.undo();
  desk.settle();
  CHECK(desk.document().edits.empty());
  CHECK_FALSE(desk.results().effect);
  CHECK(desk.results().detail->entropy == doctest::Approx(entropy_before));
  desk.explorer.redo();
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
  for (const double loss : results.run->losses) add_number(loss);
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
    desk.explorer.open_model(reference(model));
    desk.explorer.set_ids({3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7});
    desk.explorer.select({1, 1});
    desk.settle();
    std::vector<std::vector<std::uint32_t>> states{bits_of(desk.results())};
    REQUIRE(states[0].size() > 1000);
    const auto edited = [&](const std::function<void()>& edit) {
      desk.explorer.close_step();
      edit();
      desk.settle();
      states.push_back(bits_of(desk.results()));
      CHECK(states.back() != states[states.size() - 2]);
    };
    const auto add = [&](const char* words) {
      return [&desk, words] {
        auto edits = desk.document().edits;
        edits.push_back(parse_intervention(words, "test"));
        desk.explorer.set_edits(std::move(edits));
      };
    };
    edited([&] { desk.explorer.set_temperature(0.4); });
    edited([&] {  // a weight that is dragged: many traces on the way, one step
      for (const double weight : {0.1, 0.35, 0.62, 0.9}) {
        desk.explorer.set_weight(7, 2, weight);
        desk.settle();
      }
    });
    edited([&] { desk.explorer.paint_mask(5, 1, 2, false); });
    edited(add("0.0: ablate mean"));
    edited(add("0.1: ablate resample 5"));
    edited(add("1.*: switch off mlp"));
    edited(add("0.1: pattern previous"));
    edited(add("1.1: drop first 2"));
    edited(add("0.0: freeze pattern"));
    edited([&] { desk.explorer.set_ids({1, 2, 3, 4, 1, 2, 3, 4}); });
    for (std::size_t i = states.size() - 1; i-- > 0;) {
      CAPTURE(i);
      desk.explorer.undo();
      desk.settle();
      CHECK(bits_of(desk.results()) == states[i]);
    }
    CHECK(desk.document().edits.empty());
    for (std::size_t i = 1; i < states.size(); ++i) {
      CAPTURE(i);
      desk.explorer.redo();
      desk.settle();
      CHECK(bits_of(desk.results()) == states[i]);
    }
  }
}

TEST_CASE("an effect is measured against an unedited run even when none was on screen before") {
  Desk desk;
  desk.explorer.open_model(reference("gpt2-random"));
  desk.explorer.set_edits({{{}, SetMask{"window 1"}}});
  desk.explorer.set_text("to be or not to be");
  desk.settle();
  REQUIRE(desk.results().effect);
  CHECK(desk.results().effect->before->map(0, 0).weight(3, 1) > 0);
  CHECK(desk.results().effect->after->map(0, 0).weight(3, 1) == 0);
  // Every row keeps its own cell alone: what moved is 1 − the diagonal before.
  const AttentionMap& before = desk.results().effect->before->map(0, 0);
  double moved = 0;
  for (Index i = 0; i < before.n_query(); ++i) moved += 1 - static_cast<double>(before.weight(i, i));
  CHECK(desk.results().effect->moved[0] ==
        doctest::Approx(moved / static_cast<double>(before.n_query())).epsilon(1e-5));
}

TEST_CASE("a failed run shows its error and keeps the last good one; the next good run takes the error away") {
  Desk desk;
  desk.explorer.open_model(reference("gpt2-random"));
  desk.explorer.set_text("short");
  desk.settle();
  const auto good = desk.results().run;
  REQUIRE(good);
  desk.explorer.set_edits({{{0, 0}, SetMask{"no such mask"}}});
  desk.settle();
  CHECK(desk.message().find("no such mask") != std::string::npos);
  CHECK(desk.results().run == good);
  desk.explorer.set_edits({});
  desk.explorer.set_text("short again");
  desk.settle();
  CHECK(desk.message() == "");
  CHECK(desk.results().run != good);
}

TEST_CASE("of a text that is too long a part can be kept, the first or the last; undo asks again") {
  Desk desk;
  desk.explorer.open_model(reference("gpt2-random"));
  desk.explorer.set_text(std::string(100, 'x') + "yz");  // the context is 48
  desk.settle();
  REQUIRE(desk.explorer.state().too_long);
  CHECK(desk.explorer.state().too_long->context == 48);
  const int tokens = desk.explorer.state().too_long->tokens;
  CHECK(tokens > 48);
  CHECK(desk.message() == "");
  desk.explorer.set_too_long(RunRequest::TooLong::keep_last);
  desk.settle();
  CHECK_FALSE(desk.explorer.state().too_long);
  REQUIRE(desk.results().run);
  CHECK(desk.results().run->trace->tokens.size() == 48);
  CHECK(desk.results().run->trace->tokens.back().end == 102);
  desk.explorer.set_too_long(RunRequest::TooLong::keep_first);
  desk.settle();
  CHECK(desk.results().run->trace->tokens.front().begin == 0);
  desk.explorer.undo();
  desk.explorer.undo();
  desk.settle();
  CHECK(desk.explorer.state().too_long);
  desk.explorer.set_text("short");
  desk.settle();
  CHECK_FALSE(desk.explorer.state().too_long);
}

TEST_CASE("an empty text has nothing to show, and typing again brings everything back") {
  Desk desk;
  desk.explorer.open_model(reference("gpt2-random"));
  desk.explorer.set_text("abc");
  desk.settle();
  desk.explorer.set_text("");
  desk.settle();
  CHECK_FALSE(desk.results().run);
  CHECK_FALSE(desk.results().facts);
  CHECK_FALSE(desk.results().detail);
  CHECK(desk.message() == "");
  desk.explorer.set_text("abc");
  desk.settle();
  CHECK(desk.results().run);
  CHECK(desk.results().detail);
}

TEST_CASE("a folder that is no model leaves the model on screen, with a message that says what is missing") {
  Desk desk;
  desk.explorer.open_model(reference("gpt2-random"));
  desk.explorer.set_text("abc");
  desk.settle();
  const auto run = desk.results().run;
  desk.explorer.open_model(scratch_dir("no model"));
  desk.settle();
  CHECK(desk.message().find("config.json") != std::string::npos);
  CHECK(desk.document().model == reference("gpt2-random"));
  CHECK(desk.results().run == run);
  desk.explorer.dismiss_message();
  desk.settle();
  CHECK(desk.message() == "");
}

TEST_CASE("another model keeps the text, drops edits of layers it lacks, and undo goes back to the first") {
  Desk desk;
  desk.explorer.open_model(reference("gpt2-random"));
  desk.explorer.set_ids({1, 2, 3, 1, 2});
  desk.explorer.set_edits({{{0, 3}, SetTemperature{2}}, {{1, 3}, SetTemperature{2}}});
  desk.explorer.select({1, 3});
  desk.settle();
  REQUIRE(desk.results().run);
  const HeadRef last = desk.document().selected;
  desk.explorer.open_model(example());
  desk.settle();
  CHECK(desk.message() == "");
  const ModelDims& dims = desk.results().model.model->config().dims;
  for (const Intervention& edit : desk.document().edits) CHECK(edit.target.head.value_or(0) < dims.heads);
  CHECK(desk.document().selected.head < dims.heads);
  CHECK(desk.results().run->trace->model.name == "induction");
  desk.explorer.undo();
  desk.settle();
  CHECK(desk.results().run->trace->model.name == "gpt2-random");
  CHECK(desk.document().selected == last);
  CHECK(desk.document().edits.size() == 2);
}

TEST_CASE("pins and selections outside the text and the model are put back inside") {
  Desk desk;
  desk.explorer.open_model(reference("gpt2-random"));
  desk.explorer.set_ids({1, 2, 3, 4});
  desk.settle();
  desk.explorer.select({7, -2});
  CHECK(desk.document().selected == HeadRef{1, 0});
  desk.explorer.pin(3, 2);
  desk.settle();
  CHECK(desk.document().query == 3);
  desk.explorer.set_ids({1, 2, 3});
  desk.settle();
  CHECK_FALSE(desk.document().query);
  CHECK_FALSE(desk.document().key);
  desk.explorer.pin(9);
  CHECK_FALSE(desk.document().query);
}

TEST_CASE("a session brings back model, text, selection, edits and view, and is one step of undo") {
  const auto file = scratch_dir("session") / "s.json";
  {
    Desk desk;
    desk.explorer.open_model(reference("gpt2-random"));
    desk.explorer.set_text("to be or not");
    desk.explorer.select({1, 1});
    desk.explorer.set_temperature(0.5);
    desk.settle();
    desk.explorer.pin(2, 1);
    desk.explorer.view().head_view = HeadView::arcs;
    desk.explorer.save_session(file);
  }
  Desk desk;
  desk.explorer.open_session(file);
  desk.settle();
  CHECK(desk.message() == "");
  REQUIRE(desk.results().run);
  CHECK(desk.results().run->trace->text == "to be or not");
  CHECK(desk.document().selected == HeadRef{1, 1});
  CHECK(temperature_of(desk.document().edits, {1, 1}) == 0.5);
  CHECK(desk.document().query == 2);
  CHECK(desk.document().key == 1);
  CHECK(desk.explorer.view().head_view == HeadView::arcs);
  CHECK(desk.results().effect);
  desk.explorer.undo();
  CHECK(desk.document() == Document{});

  std::ofstream(file) << R"({"type": "headscope session", "version": 99})";
  CHECK_THROWS_AS(desk.explorer.open_session(file), Error);
  CHECK(desk.document() == Document{});
}

TEST_CASE("a session whose model is gone says so once and goes on") {
  const auto file = scratch_dir("lost") / "s.json";
  write_file_atomically(
      file, R"({"type": "headscope session", "version": 1, "document": {"model": "/nowhere/m", "text": "a"}})");
  Desk desk;
  desk.explorer.open_session(file);
  desk.settle();
  CHECK(desk.message().find("/nowhere/m") != std::string::npos);
  desk.explorer.dismiss_message();
  desk.settle();
  CHECK(desk.message() == "");
  desk.explorer.open_model(reference("gpt2-random"));
  desk.settle();
  REQUIRE(desk.results().run);
  CHECK(desk.results().run->trace->text == "a");
}

TEST_CASE(
    "an export writes the bytes that rendering the same picture writes, and says so; a view that is none says why") {
  const auto folder = scratch_dir("export");
  Desk desk;
  desk.explorer.export_view({folder / "nothing.png"});
  CHECK(desk.message() == "There is nothing to export yet.");
  desk.explorer.open_model(reference("gpt2-random"));
  desk.explorer.set_text("to be or not to be");
  desk.explorer.select({1, 2});
  desk.settle();
  desk.explorer.pin(5, 3);
  desk.explorer.view().scale = Scale::log;
  for (const char* name : {"view.svg", "view.png", "view.csv"}) {
    desk.explorer.export_view({folder / name, 96});
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
  desk.explorer.view().head_view = HeadView::arcs;
  desk.explorer.export_view({folder / "arcs.svg"});
  desk.settle();
  desk.explorer.view().head_view = HeadView::row;
  desk.explorer.view().scale = Scale::per_row;
  desk.explorer.unpin();
  desk.explorer.export_view({folder / "row.svg", 96, false});
  desk.settle();
  desk.explorer.export_view({folder / "all.svg", 96, true, true});
  desk.settle();
  for (const char* name : {"arcs.svg", "row.svg", "all.svg"}) {
    CHECK(read_file(folder / name).find("<svg") != std::string::npos);
    CHECK(read_file(folder / name) != read_file(folder / "view.svg"));
  }
  for (const char* bad : {"view.jpg", "no/such/folder/view.png"}) {
    desk.explorer.export_view({folder / bad});
    desk.settle();
    CHECK(desk.explorer.state().message->level == Message::Level::error);
    CHECK(desk.message().find("view.") != std::string::npos);
  }
  desk.explorer.pin(6);
  for (const HeadView view : {HeadView::steps, HeadView::qk}) {
    desk.explorer.view().head_view = view;
    const auto file = folder / (std::string(name(view)) + ".svg");
    desk.explorer.export_view({file});
    desk.settle();
    CHECK(desk.message().find("Written: " + file.string()) == 0);
    CHECK(read_file(file).find("<svg") != std::string::npos);
  }
  desk.explorer.view().head_view = HeadView::map;
  desk.explorer.view().scale = Scale::linear;
  std::set<std::string> seen;
  for (const FirstToken mode : {FirstToken::show, FirstToken::hide, FirstToken::renormalize}) {
    desk.explorer.view().first_token = mode;
    desk.explorer.export_view({folder / "first.svg"});
    desk.settle();
    seen.insert(read_file(folder / "first.svg"));
  }
  CHECK(seen.size() == 3);
}

TEST_CASE("a text that is typed while the example opens is kept, and opening the first model is no step of undo") {
  Desk desk;
  desk.explorer.open_example();
  desk.settle();
  REQUIRE(desk.results().run);
  CHECK(desk.document().text == read_file(source_dir() / "assets/examples/induction.txt"));
  CHECK_FALSE(desk.explorer.can_undo());
  Desk other;
  other.explorer.open_example();
  other.explorer.set_text("typed meanwhile");
  other.settle();
  CHECK(other.document().text == "typed meanwhile");
  CHECK_FALSE(other.explorer.can_undo());
  other.explorer.open_example();
  other.settle();
  CHECK(other.document().text == desk.document().text);
  CHECK(other.explorer.can_undo());
}

TEST_CASE("destroying a busy explorer is clean") {
  for (int i = 0; i < 3; ++i) {
    Desk desk;
    desk.explorer.open_model(example());
    desk.explorer.set_text(story);
    for (int frame = 0; frame < 20 * i; ++frame) desk.explorer.frame(desk.now += 0.01);
  }
}

TEST_CASE("what was stopped stays stopped, says so, and runs again when asked") {
  Desk desk;
  desk.explorer.open_model(example());
  desk.explorer.set_text(story);
  desk.settle();
  CHECK_FALSE(desk.explorer.behind());
  const auto before = desk.results().run;

  desk.explorer.set_text("Mr and Mrs Quill");
  desk.explorer.frame(desk.now += 0.01);
  desk.explorer.cancel();
  desk.settle();
  CHECK(desk.results().run == before);
  CHECK(desk.explorer.behind());
  desk.explorer.run_again();
  desk.settle();
  CHECK_FALSE(desk.explorer.behind());
  CHECK(desk.results().run->trace->text == "Mr and Mrs Quill");

  // Undo goes back to another model; stopped, it is not opened once more by itself.
  const std::filesystem::path first = desk.document().model;
  for (const char* other : {"gpt2-random", "llama-gqa"}) {  // two models stay open, a third has to be opened anew
    desk.explorer.open_model(reference(other));
    desk.settle();
  }
  for (int steps = 0; steps < 9 && desk.document().model != first; ++steps) desk.explorer.undo();
  REQUIRE(desk.document().model == first);
  desk.explorer.frame(desk.now += 0.01);
  desk.explorer.cancel();
  desk.settle();
  CHECK(desk.results().model_folder != first);
  CHECK(desk.explorer.behind());
  desk.explorer.run_again();
  desk.settle();
  CHECK(desk.results().model_folder == first);
  CHECK_FALSE(desk.explorer.behind());
}
