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
#include "tests/app/explorer_controller.h"
#include "tests/support/model_folder.h"

namespace headscope::explorer_document_test {

using testing::Controller;
using testing::reference;
using testing::scratch_dir;
using testing::source_dir;

TEST_CASE("a folder that is no model leaves the model on screen, with a message that says what is missing") {
  Controller controller;
  controller.explorer.run.open_model(reference("gpt2-random"));
  controller.explorer.editor.set_text("abc");
  controller.settle();
  const auto run = controller.results().run;
  controller.explorer.run.open_model(scratch_dir("no model"));
  controller.settle();
  CHECK(controller.message().find("config.json") != std::string::npos);
  CHECK(controller.document().model == reference("gpt2-random"));
  CHECK(controller.results().run == run);
  controller.explorer.jobs.dismiss();
  controller.settle();
  CHECK(controller.message() == "");
}

TEST_CASE("where undo leaves no model, nothing of the last one's run stays on screen") {
  const auto file = scratch_dir("first session") / "s.json";
  Document document;
  document.model = reference("gpt2-random");
  for (const int tokens : {3, 500}) {  // read, and more than it reads
    document.ids.assign(static_cast<std::size_t>(tokens), 1);
    {
      Controller other;
      other.explorer.editor.replace(document);
      other.explorer.files.save(file);
    }
    Controller controller;
    controller.explorer.files.open(file);
    controller.settle();
    CHECK(controller.results().too_long.has_value() == (tokens > 3));
    CHECK((controller.results().run != nullptr) == (tokens == 3));
    controller.explorer.editor.undo();
    controller.settle();
    REQUIRE(controller.document() == Document{});
    CHECK_FALSE(controller.results().run);
    CHECK_FALSE(controller.results().too_long);
  }
}

TEST_CASE("another model keeps the text, drops edits of layers and heads it lacks, and undo goes back to the first") {
  const auto bundled = [](const char* name) { return source_dir() / "models" / name; };
  Controller controller;
  controller.explorer.run.open_model(bundled("tiny-gpt2"));  // four layers of four heads
  controller.explorer.editor.set_ids({1, 2, 3, 1, 2});
  const std::vector<Intervention> asked{
      {{0, 1}, SetTemperature{2}},  {{0, 2}, SetTemperature{3}},    {{1, 3}, SetTemperature{4}},
      {{2, 0}, SetTemperature{5}},  {{3, {}}, SetMask{"window 2"}}, {{1, {}}, SetMask{"window 3"}},
      {{{}, 2}, SetTemperature{6}}, {{{}, 0}, SetTemperature{7}},   {{}, SetTemperature{8}}};
  controller.explorer.editor.set_edits(asked);
  controller.settle();
  controller.explorer.editor.select({3, 3});
  controller.settle();
  REQUIRE(controller.results().run);
  REQUIRE(controller.document().edits == asked);
  const HeadId last = controller.document().selected;
  CHECK(last == HeadId{3, 3});
  controller.explorer.run.open_model(bundled("induction-2l"));  // two layers of two
  controller.settle();
  CHECK(controller.message() == "");
  CHECK(controller.document().edits == std::vector<Intervention>{asked[0], asked[5], asked[7], asked[8]});
  CHECK(controller.document().selected.layer < 2);
  CHECK(controller.document().selected.head < 2);
  REQUIRE(controller.results().run);
  CHECK(controller.results().run->trace->model.name == "induction-2l");
  CHECK(controller.results().run->request.edits == controller.document().edits);
  CHECK(controller.document().ids == std::vector<std::int32_t>{1, 2, 3, 1, 2});
  controller.explorer.editor.undo();
  controller.settle();
  CHECK(controller.results().run->trace->model.name == "tiny-gpt2");
  CHECK(controller.document().selected == last);
  CHECK(controller.document().edits == asked);
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
  Controller controller;
  const auto shown = [&] { return controller.results().run->trace->map({0, 1}).weight(3, 1); };
  controller.explorer.run.open_model(folder);
  controller.explorer.editor.set_text("to be or not");
  controller.settle();
  const float first = expected();
  CHECK(shown() == doctest::Approx(first).epsilon(1e-5));

  write(2);  // the folder on screen
  const float second = expected();
  REQUIRE(std::abs(second - first) > 1e-3f);
  controller.explorer.editor.set_edits({{{0, 0}, SetTemperature{2}}});
  controller.explorer.run.open_model(folder);
  controller.settle();
  CHECK(controller.message() == "");
  CHECK(shown() == doctest::Approx(second).epsilon(1e-5));
  // What the edit is measured against is of the new weights, too.
  REQUIRE(controller.results().effect);
  CHECK(controller.results().effect->before->map({0, 1}).weight(3, 1) == doctest::Approx(second).epsilon(1e-5));

  controller.explorer.run.open_model(other);
  controller.settle();
  write(3);  // one that was opened before
  const float third = expected();
  REQUIRE(std::abs(third - second) > 1e-3f);
  controller.explorer.run.open_model(folder);
  controller.settle();
  CHECK(shown() == doctest::Approx(third).epsilon(1e-5));

  const Model* read = controller.results().model.model.get();
  controller.explorer.run.open_model(other);
  controller.settle();
  controller.explorer.run.open_model(folder);
  controller.settle();
  CHECK(controller.results().model.model.get() == read);
}

TEST_CASE("a run that is ready when another model opens is never shown as that model's") {
  Controller controller;
  for (const char* model : {"llama-gqa", "gpt2-random"}) {  // both stay open: the second time each opens at once
    controller.explorer.run.open_model(reference(model));
    controller.explorer.editor.set_ids({1, 2, 3, 1, 2});
    controller.settle();
  }
  controller.explorer.editor.set_edits({{{}, SetTemperature{2}}});
  controller.explorer.frame(controller.now += 0.01);
  while (!controller.explorer.jobs.status().doing.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  REQUIRE(controller.explorer.jobs.busy());  // read, and waits for the next frame
  controller.explorer.run.open_model(reference("llama-gqa"));
  for (int frames = 0; frames < 20 || controller.explorer.jobs.busy(); ++frames) {
    controller.explorer.frame(controller.now += 0.01);
    const Results& results = controller.results();
    if (results.run) CHECK(results.run->request.model == results.model_folder);
    if (results.effect) CHECK(results.effect->moved.size() == results.effect->before->maps.size());
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  REQUIRE(controller.results().effect);
  CHECK(controller.results().effect->before->model.name == "llama-gqa");
}

TEST_CASE(
    "where nothing is written yet a text to begin with is suggested: a bundled model's own, or one for any model") {
  const auto text_of = [](const std::string& name) { return read_file(source_dir() / "assets/examples" / name, 4096); };
  const auto elsewhere = scratch_dir("elsewhere") / "tiny-llama";
  std::filesystem::copy(source_dir() / "models/tiny-llama", elsewhere);
  for (const auto& [folder, text] : {std::pair{source_dir() / "models/tiny-llama", text_of("tiny-llama.txt")},
                                     {source_dir() / "models/tiny-gpt2/", text_of("tiny-gpt2.txt")},
                                     {elsewhere, text_of("any-model.txt")}}) {
    Controller controller;
    controller.explorer.run.open_model(folder);
    controller.explorer.files.suggest_text(folder);
    CHECK(controller.document().text == text);
    CHECK(text.size() > 40);
    controller.settle();
    CHECK(controller.message() == "");
    REQUIRE(controller.results().run);
    CHECK(controller.results().run->request.text == text);
    CHECK(!controller.explorer.editor.history().can_undo());
    controller.explorer.editor.set_text("mine");
    controller.explorer.files.suggest_text(folder);
    CHECK(controller.document().text == "mine");
  }
}

TEST_CASE("masked tokens go with the text and the model that they were masked in; undo brings them back") {
  const auto bundled = [](const char* name) { return source_dir() / "models" / name; };
  Controller controller;
  controller.explorer.run.open_model(bundled("tiny-bert"));
  controller.explorer.editor.set_text("Tom had a red ball.");
  controller.settle();
  controller.explorer.editor.toggle_masked(3);
  controller.settle();
  REQUIRE(controller.results().run);
  CHECK(controller.results().run->trace->tokens[3].masked);
  controller.explorer.run.open_model(bundled("tiny-gpt2"));  // a decoder is asked for nothing
  controller.settle();
  CHECK(controller.message() == "");
  CHECK(controller.document().masked.empty());
  CHECK(controller.results().run->trace->model.name.find("gpt2") != std::string::npos);
  controller.explorer.editor.undo();
  controller.settle();
  CHECK(controller.message() == "");
  CHECK(controller.document().masked.size() == 1);
  CHECK(controller.results().run->trace->tokens[3].masked);
  // Another part of a text that is too long has other tokens at the same positions.
  controller.explorer.editor.set_too_long(RunRequest::TooLong::keep_last);
  CHECK(controller.document().masked.empty());
}

TEST_CASE("a word of several tokens is masked whole and shown whole, and in words its mark stays") {
  Controller controller;
  controller.explorer.run.open_model(source_dir() / "models" / "tiny-bert");
  controller.explorer.editor.set_text("Tom had a red ball.");
  controller.settle();
  controller.explorer.editor.toggle_masked(2);
  controller.explorer.editor.toggle_masked(1, 3);
  CHECK(controller.document().masked == std::vector<MaskedPosition>{{1, {}}, {2, {}}, {3, {}}});
  controller.settle();
  const auto& run = *controller.results().run;
  Index marked = 0;
  for (Index word = 0; word < run.words.words(); ++word) {
    const KeyRange tokens = run.words.tokens_of(word);
    const bool masked = tokens.begin <= 3 && tokens.end > 1;
    CHECK(run.word_tokens->tokens[static_cast<std::size_t>(word)].masked == masked);
    marked += masked;
  }
  CHECK(marked > 0);
  controller.explorer.editor.toggle_masked(1, 3);
  CHECK(controller.document().masked.empty());
}

TEST_CASE("painting an encoder's mask begins with all that it sees, and takes the cell alone") {
  Controller controller;
  controller.explorer.run.open_model(source_dir() / "models" / "tiny-bert");
  controller.explorer.editor.set_text("Tom had a red ball.");
  controller.settle();
  controller.explorer.editor.select({1, 0});
  controller.explorer.editor.paint_mask(2, 4, 1, false, 8, controller.results().own_mask(Stack::only));
  controller.settle();
  CHECK(mask_of(controller.document().edits, {1, 0}) == "full & not cells 2:4");
  CHECK(controller.results().map({1, 0})->masked(2, 4));
  CHECK_FALSE(controller.results().map({1, 0})->masked(2, 5));
}

TEST_CASE("pins and selections outside the text and the model are put back inside") {
  Controller controller;
  controller.explorer.run.open_model(reference("gpt2-random"));
  controller.explorer.editor.set_ids({1, 2, 3, 4});
  controller.settle();
  controller.explorer.editor.select({7, -2});
  CHECK(controller.document().selected == HeadId{1, 0});
  controller.explorer.editor.pin(3, 2);
  controller.settle();
  CHECK(controller.document().query == 3);
  controller.explorer.editor.set_ids({1, 2, 3});
  controller.settle();
  CHECK_FALSE(controller.document().query);
  CHECK_FALSE(controller.document().key);
  controller.explorer.editor.pin(9);
  CHECK_FALSE(controller.document().query);
  // While another text is still to be computed, none knows its length; below zero there is nothing in any.
  controller.explorer.editor.set_ids({1, 2, 3, 4, 5});
  controller.explorer.editor.pin(-2, 1);
  CHECK_FALSE(controller.document().query);
  controller.explorer.editor.pin(1, -1);
  CHECK(controller.document().query == 1);
  CHECK_FALSE(controller.document().key);
}

TEST_CASE("a session brings back model, text, selection, edits and view, and is one step of undo") {
  const auto file = scratch_dir("session") / "s.json";
  {
    Controller controller;
    controller.explorer.run.open_model(reference("gpt2-random"));
    controller.explorer.editor.set_text("to be or not");
    controller.explorer.editor.select({1, 1});
    controller.explorer.editor.set_temperature(0.5);
    controller.settle();
    controller.explorer.editor.pin(2, 1);
    controller.explorer.editor.view().head_view = HeadView::arcs;
    controller.explorer.files.save(file);
  }
  Controller controller;
  controller.explorer.files.open(file);
  controller.settle();
  CHECK(controller.message() == "");
  REQUIRE(controller.results().run);
  CHECK(controller.results().run->trace->text == "to be or not");
  CHECK(controller.document().selected == HeadId{1, 1});
  CHECK(temperature_of(controller.document().edits, {1, 1}) == 0.5);
  CHECK(controller.document().query == 2);
  CHECK(controller.document().key == 1);
  CHECK(controller.explorer.editor.view().head_view == HeadView::arcs);
  CHECK(controller.results().effect);
  controller.explorer.editor.undo();
  CHECK(controller.document() == Document{});

  std::ofstream(file) << R"({"type": "headscope session", "version": 99})";
  CHECK_THROWS_AS(controller.explorer.files.open(file), Error);
  CHECK(controller.document() == Document{});
}

TEST_CASE("a session whose model is gone says so once and goes on") {
  const auto file = scratch_dir("lost") / "s.json";
  write_file_atomically(
      file, R"({"type": "headscope session", "version": 1, "document": {"model": "/nowhere/m", "text": "a"}})");
  Controller controller;
  controller.explorer.files.open(file);
  controller.settle();
  CHECK(controller.message().find("/nowhere/m") != std::string::npos);
  controller.explorer.jobs.dismiss();
  controller.settle();
  CHECK(controller.message() == "");
  controller.explorer.run.open_model(reference("gpt2-random"));
  controller.settle();
  REQUIRE(controller.results().run);
  CHECK(controller.results().run->trace->text == "a");
}

TEST_CASE("a text that is typed while the example opens is kept, and opening the first model is no step of undo") {
  Controller controller;
  controller.explorer.files.open_example();
  controller.settle();
  REQUIRE(controller.results().run);
  CHECK(controller.document().text == read_file(source_dir() / "assets/examples/induction.txt"));
  CHECK_FALSE(controller.explorer.editor.history().can_undo());
  Controller other;
  other.explorer.files.open_example();
  other.explorer.editor.set_text("typed meanwhile");
  other.settle();
  CHECK(other.document().text == "typed meanwhile");
  CHECK_FALSE(other.explorer.editor.history().can_undo());
  other.explorer.files.open_example();
  other.settle();
  CHECK(other.document().text == controller.document().text);
  CHECK(other.explorer.editor.history().can_undo());
}

TEST_CASE("the example of a translator brings its source, and that of another model takes it away") {
  Controller controller;
  controller.explorer.files.open_example("tiny-translate");
  controller.settle();
  REQUIRE(controller.results().run);
  CHECK(controller.document().source == read_file(source_dir() / "assets/examples/tiny-translate.source.txt"));
  CHECK(controller.document().text == read_file(source_dir() / "assets/examples/tiny-translate.txt"));
  CHECK(controller.results().run->trace->encoder->text == controller.document().source);
  CHECK(controller.explorer.files.unsaved() == "");
  controller.explorer.files.open_example();
  controller.settle();
  CHECK(controller.document().source.empty());
  CHECK(controller.results().run->trace->encoder == nullptr);
}

TEST_CASE("what is unsaved is told in words: not what came with the program, not what was saved or opened") {
  const auto file = scratch_dir("unsaved") / "session.json";
  Controller controller;
  CHECK(controller.explorer.files.unsaved() == "");
  controller.explorer.files.open_example();
  controller.settle();
  CHECK(controller.explorer.files.unsaved() == "");  // its own text
  controller.explorer.editor.select({1, 1});
  controller.explorer.editor.view().scale = Scale::log;
  CHECK(controller.explorer.files.unsaved() == "");  // looking is no work
  controller.explorer.editor.set_text("my own");
  CHECK(controller.explorer.files.unsaved() == "a text");
  controller.explorer.editor.set_edits({{{0, 1}, SetTemperature{2}}});
  CHECK(controller.explorer.files.unsaved() == "an edit and a text");
  controller.explorer.editor.set_edits({{{0, 1}, SetTemperature{2}}, {{1, 0}, Ablate{}}});
  controller.explorer.files.save_soon(file);
  CHECK(controller.explorer.files.unsaved() == "2 edits and a text");  // until it is on the disk
  controller.settle();
  CHECK(controller.explorer.files.unsaved() == "");
  controller.explorer.editor.set_edits({{{0, 1}, SetTemperature{3}}});
  CHECK(controller.explorer.files.unsaved() == "an edit");
  controller.explorer.editor.undo();
  CHECK(controller.explorer.files.unsaved() == "");
  controller.explorer.editor.set_text("");
  controller.explorer.editor.set_edits({});
  CHECK(controller.explorer.files.unsaved() == "");  // nothing is left that could be lost

  Controller other;
  other.explorer.files.open_soon(file);
  other.settle();
  CHECK(other.explorer.files.unsaved() == "");
  Controller after_crash;
  after_crash.explorer.files.take_up_soon(file);
  after_crash.settle();
  CHECK(after_crash.document().edits.size() == 2);
  CHECK(after_crash.explorer.files.unsaved() == "2 edits and a text");
}

}  // namespace headscope::explorer_document_test
