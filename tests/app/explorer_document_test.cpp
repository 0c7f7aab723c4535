// What becomes of the document: another model, another text, a session, undo.

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/edits/ablate_edit.h"
#include "core/edits/mask_edit.h"
#include "core/edits/temperature_edit.h"
#include "tests/app/explorer_desk.h"
#include "tests/support/model_folder.h"

using namespace headscope;
using headscope::testing::Desk;
using headscope::testing::reference;
using headscope::testing::scratch_dir;
using headscope::testing::source_dir;

TEST_CASE("a folder that is no model leaves the model on screen, with a message that says what is missing") {
  Desk desk;
  desk.explorer.run.open_model(reference("gpt2-random"));
  desk.explorer.editor.set_text("abc");
  desk.settle();
  const auto run = desk.results().run;
  desk.explorer.run.open_model(scratch_dir("no model"));
  desk.settle();
  CHECK(desk.message().find("config.json") != std::string::npos);
  CHECK(desk.document().model == reference("gpt2-random"));
  CHECK(desk.results().run == run);
  desk.explorer.jobs.dismiss();
  desk.settle();
  CHECK(desk.message() == "");
}

TEST_CASE("another model keeps the text, drops edits of layers and heads it lacks, and undo goes back to the first") {
  const auto bundled = [](const char* name) { return source_dir() / "models" / name; };
  Desk desk;
  desk.explorer.run.open_model(bundled("tiny-gpt2"));  // four layers of four heads
  desk.explorer.editor.set_ids({1, 2, 3, 1, 2});
  const std::vector<Intervention> asked{
      {{0, 1}, SetTemperature{2}},  {{0, 2}, SetTemperature{3}},    {{1, 3}, SetTemperature{4}},
      {{2, 0}, SetTemperature{5}},  {{3, {}}, SetMask{"window 2"}}, {{1, {}}, SetMask{"window 3"}},
      {{{}, 2}, SetTemperature{6}}, {{{}, 0}, SetTemperature{7}},   {{}, SetTemperature{8}}};
  desk.explorer.editor.set_edits(asked);
  desk.settle();
  desk.explorer.editor.select({3, 3});
  desk.settle();
  REQUIRE(desk.results().run);
  REQUIRE(desk.document().edits == asked);
  const HeadId last = desk.document().selected;
  CHECK(last == HeadId{3, 3});
  desk.explorer.run.open_model(bundled("induction-2l"));  // two layers of two
  desk.settle();
  CHECK(desk.message() == "");
  CHECK(desk.document().edits == std::vector<Intervention>{asked[0], asked[5], asked[7], asked[8]});
  CHECK(desk.document().selected.layer < 2);
  CHECK(desk.document().selected.head < 2);
  REQUIRE(desk.results().run);
  CHECK(desk.results().run->trace->model.name == "induction-2l");
  CHECK(desk.results().run->request.edits == desk.document().edits);
  CHECK(desk.document().ids == std::vector<std::int32_t>{1, 2, 3, 1, 2});
  desk.explorer.editor.undo();
  desk.settle();
  CHECK(desk.results().run->trace->model.name == "tiny-gpt2");
  CHECK(desk.document().selected == last);
  CHECK(desk.document().edits == asked);
}

TEST_CASE("a folder that was written since is read again, open or not; one that was not is at hand") {
  const auto folder = scratch_dir("explorer-written-since") / "model", other = reference("gpt2-random");
  // Other weights in files of the same size: the time they were written tells them apart.
  const auto write = [&](std::uint64_t seed) { testing::write_random_gpt2(folder, 1, 2, 16, 32, seed); };
  const auto expected = [&] {
    Backend backend(1);
    RunRequest request;
    request.text = "to be or not";
    request.capture.maps = MapStorage::dense;
    return run(load_model(folder, backend), request, Ctx{backend})->map({0, 1}).weight(3, 1);
  };
  write(1);
  Desk desk;
  const auto shown = [&] { return desk.results().run->trace->map({0, 1}).weight(3, 1); };
  desk.explorer.run.open_model(folder);
  desk.explorer.editor.set_text("to be or not");
  desk.settle();
  const float first = expected();
  CHECK(shown() == doctest::Approx(first).epsilon(1e-5));

  write(2);  // the folder on screen
  const float second = expected();
  REQUIRE(std::abs(second - first) > 1e-3f);
  desk.explorer.editor.set_edits({{{0, 0}, SetTemperature{2}}});
  desk.explorer.run.open_model(folder);
  desk.settle();
  CHECK(desk.message() == "");
  CHECK(shown() == doctest::Approx(second).epsilon(1e-5));
  // What the edit is measured against is of the new weights, too.
  REQUIRE(desk.results().effect);
  CHECK(desk.results().effect->before->map({0, 1}).weight(3, 1) == doctest::Approx(second).epsilon(1e-5));

  desk.explorer.run.open_model(other);
  desk.settle();
  write(3);  // one that was opened before
  const float third = expected();
  REQUIRE(std::abs(third - second) > 1e-3f);
  desk.explorer.run.open_model(folder);
  desk.settle();
  CHECK(shown() == doctest::Approx(third).epsilon(1e-5));

  const Model* read = desk.results().model.model.get();
  desk.explorer.run.open_model(other);
  desk.settle();
  desk.explorer.run.open_model(folder);
  desk.settle();
  CHECK(desk.results().model.model.get() == read);
}

TEST_CASE("a run that is ready when another model opens is never shown as that model's") {
  Desk desk;
  for (const char* model : {"llama-gqa", "gpt2-random"}) {  // both stay open: the second time each opens at once
    desk.explorer.run.open_model(reference(model));
    desk.explorer.editor.set_ids({1, 2, 3, 1, 2});
    desk.settle();
  }
  desk.explorer.editor.set_edits({{{}, SetTemperature{2}}});
  desk.explorer.frame(desk.now += 0.01);
  while (!desk.explorer.jobs.status().doing.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(desk.explorer.jobs.busy());  // read, and waits for the next frame
  desk.explorer.run.open_model(reference("llama-gqa"));
  for (int frames = 0; frames < 20 || desk.explorer.jobs.busy(); ++frames) {
    desk.explorer.frame(desk.now += 0.01);
    const Results& results = desk.results();
    if (results.run) CHECK(results.run->request.model == results.model_folder);
    if (results.effect) CHECK(results.effect->moved.size() == results.effect->before->maps.size());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  REQUIRE(desk.results().effect);
  CHECK(desk.results().effect->before->model.name == "llama-gqa");
}

TEST_CASE(
    "where nothing is written yet a text to begin with is suggested: a bundled model's own, or one for any model") {
  const auto text_of = [](const std::string& name) { return read_file(source_dir() / "assets/examples" / name, 4096); };
  const auto elsewhere = scratch_dir("elsewhere") / "tiny-llama";
  std::filesystem::copy(source_dir() / "models/tiny-llama", elsewhere);
  for (const auto& [folder, text] : {std::pair{source_dir() / "models/tiny-llama", text_of("tiny-llama.txt")},
                                     {source_dir() / "models/tiny-gpt2/", text_of("tiny-gpt2.txt")},
                                     {elsewhere, text_of("any-model.txt")}}) {
    Desk desk;
    desk.explorer.run.open_model(folder);
    desk.explorer.files.suggest_text(folder);
    CHECK(desk.document().text == text);
    CHECK(text.size() > 40);
    desk.settle();
    CHECK(desk.message() == "");
    REQUIRE(desk.results().run);
    CHECK(desk.results().run->request.text == text);
    CHECK(!desk.explorer.editor.history().can_undo());
    desk.explorer.editor.set_text("mine");
    desk.explorer.files.suggest_text(folder);
    CHECK(desk.document().text == "mine");
  }
}

TEST_CASE("pins and selections outside the text and the model are put back inside") {
  Desk desk;
  desk.explorer.run.open_model(reference("gpt2-random"));
  desk.explorer.editor.set_ids({1, 2, 3, 4});
  desk.settle();
  desk.explorer.editor.select({7, -2});
  CHECK(desk.document().selected == HeadId{1, 0});
  desk.explorer.editor.pin(3, 2);
  desk.settle();
  CHECK(desk.document().query == 3);
  desk.explorer.editor.set_ids({1, 2, 3});
  desk.settle();
  CHECK_FALSE(desk.document().query);
  CHECK_FALSE(desk.document().key);
  desk.explorer.editor.pin(9);
  CHECK_FALSE(desk.document().query);
}

TEST_CASE("a session brings back model, text, selection, edits and view, and is one step of undo") {
  const auto file = scratch_dir("session") / "s.json";
  {
    Desk desk;
    desk.explorer.run.open_model(reference("gpt2-random"));
    desk.explorer.editor.set_text("to be or not");
    desk.explorer.editor.select({1, 1});
    desk.explorer.editor.set_temperature(0.5);
    desk.settle();
    desk.explorer.editor.pin(2, 1);
    desk.explorer.editor.view().head_view = HeadView::arcs;
    desk.explorer.files.save(file);
  }
  Desk desk;
  desk.explorer.files.open(file);
  desk.settle();
  CHECK(desk.message() == "");
  REQUIRE(desk.results().run);
  CHECK(desk.results().run->trace->text == "to be or not");
  CHECK(desk.document().selected == HeadId{1, 1});
  CHECK(temperature_of(desk.document().edits, {1, 1}) == 0.5);
  CHECK(desk.document().query == 2);
  CHECK(desk.document().key == 1);
  CHECK(desk.explorer.editor.view().head_view == HeadView::arcs);
  CHECK(desk.results().effect);
  desk.explorer.editor.undo();
  CHECK(desk.document() == Document{});

  std::ofstream(file) << R"({"type": "headscope session", "version": 99})";
  CHECK_THROWS_AS(desk.explorer.files.open(file), Error);
  CHECK(desk.document() == Document{});
}

TEST_CASE("a session whose model is gone says so once and goes on") {
  const auto file = scratch_dir("lost") / "s.json";
  write_file_atomically(
      file, R"({"type": "headscope session", "version": 1, "document": {"model": "/nowhere/m", "text": "a"}})");
  Desk desk;
  desk.explorer.files.open(file);
  desk.settle();
  CHECK(desk.message().find("/nowhere/m") != std::string::npos);
  desk.explorer.jobs.dismiss();
  desk.settle();
  CHECK(desk.message() == "");
  desk.explorer.run.open_model(reference("gpt2-random"));
  desk.settle();
  REQUIRE(desk.results().run);
  CHECK(desk.results().run->trace->text == "a");
}

TEST_CASE("a text that is typed while the example opens is kept, and opening the first model is no step of undo") {
  Desk desk;
  desk.explorer.files.open_example();
  desk.settle();
  REQUIRE(desk.results().run);
  CHECK(desk.document().text == read_file(source_dir() / "assets/examples/induction.txt"));
  CHECK_FALSE(desk.explorer.editor.history().can_undo());
  Desk other;
  other.explorer.files.open_example();
  other.explorer.editor.set_text("typed meanwhile");
  other.settle();
  CHECK(other.document().text == "typed meanwhile");
  CHECK_FALSE(other.explorer.editor.history().can_undo());
  other.explorer.files.open_example();
  other.settle();
  CHECK(other.document().text == desk.document().text);
  CHECK(other.explorer.editor.history().can_undo());
}

TEST_CASE("what is unsaved is told in words: not what came with the program, not what was saved or opened") {
  const auto file = scratch_dir("unsaved") / "session.json";
  Desk desk;
  CHECK(desk.explorer.files.unsaved() == "");
  desk.explorer.files.open_example();
  desk.settle();
  CHECK(desk.explorer.files.unsaved() == "");  // its own text
  desk.explorer.editor.select({1, 1});
  desk.explorer.editor.view().scale = Scale::log;
  CHECK(desk.explorer.files.unsaved() == "");  // looking is no work
  desk.explorer.editor.set_text("my own");
  CHECK(desk.explorer.files.unsaved() == "a text");
  desk.explorer.editor.set_edits({{{0, 1}, SetTemperature{2}}});
  CHECK(desk.explorer.files.unsaved() == "an edit and a text");
  desk.explorer.editor.set_edits({{{0, 1}, SetTemperature{2}}, {{1, 0}, Ablate{}}});
  desk.explorer.files.save_soon(file);
  CHECK(desk.explorer.files.unsaved() == "2 edits and a text");  // until it is on the disk
  desk.settle();
  CHECK(desk.explorer.files.unsaved() == "");
  desk.explorer.editor.set_edits({{{0, 1}, SetTemperature{3}}});
  CHECK(desk.explorer.files.unsaved() == "an edit");
  desk.explorer.editor.undo();
  CHECK(desk.explorer.files.unsaved() == "");
  desk.explorer.editor.set_text("");
  desk.explorer.editor.set_edits({});
  CHECK(desk.explorer.files.unsaved() == "");  // nothing is left that could be lost

  Desk other;
  other.explorer.files.open_soon(file);
  other.settle();
  CHECK(other.explorer.files.unsaved() == "");
  Desk after_crash;
  after_crash.explorer.files.take_up_soon(file);
  after_crash.settle();
  CHECK(after_crash.document().edits.size() == 2);
  CHECK(after_crash.explorer.files.unsaved() == "2 edits and a text");
}
