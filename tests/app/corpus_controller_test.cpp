#include "app/state/corpus_controller.h"
#include "app/state/explorer.h"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "core/base/file.h"
#include "core/io/picture.h"
#include "core/io/shapes.h"
#include "core/tensor/backend.h"
#include "tests/support/paths.h"

namespace headscope::corpus_controller_test {

using testing::scratch_dir;

namespace {

struct Room {
  Explorer explorer{{1, nullptr}};
  CorpusController controller{explorer.jobs, explorer.editor, explorer.run};
  double now = 0;

  explicit Room(const char* example = "induction") {
    explorer.files.open_example(example);
    REQUIRE(until([&] { return explorer.results().facts != nullptr; }));
    controller.draft().count = 4;
    controller.draft().window = 24;
  }
  void turn() {
    explorer.frame(now += 0.01);
    controller.frame();
  }
  template <class Done>
  bool until(Done done) {
    const auto begin = std::chrono::steady_clock::now();
    while (!done()) {
      turn();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (std::chrono::steady_clock::now() - begin > std::chrono::seconds(120)) return false;
    }
    return true;
  }
  bool finished() {
    return until([&] { return controller.phase() == CorpusController::Phase::finished; });
  }
  /// What one run on the calling thread gives.
  CorpusResults direct(std::int64_t stories) {
    CorpusRun run(explorer.results().model, "induction", corpus_of_stories(stories, 1), 24);
    Backend here(1);  // the explorer's belongs to its worker, which may still be reading a head
    while (run.step(Ctx{here})) {
    }
    return run.results();
  }
  std::string message() const { return explorer.jobs.message() ? explorer.jobs.message()->text : ""; }
};

}  // namespace

TEST_CASE("the corpus desk's run is one run, whatever the slices; stopped, saved, loaded and gone on with, too") {
  Room room;
  room.controller.start();
  REQUIRE(room.finished());
  CHECK(*room.controller.results() == room.direct(4));
  CHECK(room.controller.tokens_per_second() > 0);
  CHECK(room.controller.progress() == 1);
  CHECK_FALSE(room.controller.can_resume());

  room.controller.draft().count = 60;
  room.controller.start();
  REQUIRE(room.until([&] { return room.controller.results() != nullptr; }));
  room.controller.stop();
  REQUIRE(room.until([&] { return !room.explorer.jobs.busy(); }));
  room.turn();  // takes what was ready
  REQUIRE(room.controller.phase() == CorpusController::Phase::stopped);
  CHECK_FALSE(room.controller.results()->finished);
  const auto file = scratch_dir("corpus-desk") / "half.json";
  room.controller.save(file);
  REQUIRE(room.until([&] { return room.message().find("Saved") != std::string::npos; }));

  Room other;
  other.controller.load(file);
  REQUIRE(other.until([&] { return other.controller.results() != nullptr; }));
  CHECK(*other.controller.results() == *room.controller.results());
  REQUIRE(other.controller.can_resume());
  other.controller.resume();
  REQUIRE(other.finished());
  CHECK(*other.controller.results() == room.direct(60));
}

TEST_CASE("examples are read with their places, and open in the explorer as the pass that was measured") {
  Room room;
  room.controller.start();
  REQUIRE(room.finished());
  const HeadId head{1, 0};
  const auto induction = static_cast<std::size_t>(&metric("prefix_matching") - metrics().data());
  for (const ExampleKind kind : {ExampleKind::typical, ExampleKind::lowest, ExampleKind::highest}) {
    const std::size_t before = room.controller.results()->statistics.passages();
    REQUIRE(before > 0);
    REQUIRE(room.until([&] {
      const auto* shown = room.controller.examples(head, induction, kind);
      return shown && !shown->empty();
    }));
  }
  const ShownExample shown = room.controller.examples(head, induction, ExampleKind::highest)->front();
  CHECK(shown.place.text().starts_with("story "));
  CHECK(shown.error.empty());
  REQUIRE(shown.example.query >= 0);
  CHECK_FALSE(shown.focus.empty());
  const std::string text = passage_text(room.controller.results()->source, shown.example.place);
  CHECK((shown.before + shown.focus + shown.after) == text);  // short enough to be shown whole

  room.controller.open(shown, head);
  REQUIRE(room.until([&] {
    const auto& run = room.explorer.results().run;
    return run && run->trace->text == text && room.explorer.results().facts &&
           room.explorer.results().facts->trace == run->trace;
  }));
  CHECK(room.explorer.state().document.selected == head);
  CHECK(room.explorer.state().document.query == shown.example.query);
  const HeadFacts& facts = *room.explorer.results().facts;
  CHECK(facts.table.value[static_cast<std::size_t>(facts.row(head))][induction] ==
        doctest::Approx(Distribution::value(shown.example.value)).epsilon(1e-8));
}

TEST_CASE("a folder of shards loads as one run") {
  Room room;
  Backend here(1);
  const auto folder = scratch_dir("corpus-desk-shards");
  for (const int shard : {0, 1}) {
    CorpusRun run(room.explorer.results().model, "induction", corpus_of_stories(4, 1), 24, shard, 2);
    while (run.step(Ctx{here})) {
    }
    save_corpus_results(run.results(), folder / (std::to_string(shard) + ".json"));
    if (shard > 0) break;
    room.controller.load(folder);  // one of two
    REQUIRE(room.until([&] { return room.message().find("none of 1/2") != std::string::npos; }));
  }
  room.controller.load(folder);
  REQUIRE(room.until([&] { return room.controller.results() != nullptr; }));
  CHECK(*room.controller.results() == room.direct(4));
}

TEST_CASE("what cannot be read is said, and what was there stays") {
  Room room;
  room.controller.draft().drawn = false;
  room.controller.start();
  REQUIRE(room.until([&] { return room.controller.phase() == CorpusController::Phase::failed; }));
  CHECK(room.controller.error().find("text file or a folder") != std::string::npos);
  const auto folder = scratch_dir("corpus-desk-broken");
  write_file_atomically(folder / "no.json", "{}");
  room.controller.load(folder / "no.json");
  REQUIRE(room.until([&] { return room.message().find("no.json") != std::string::npos; }));
  write_file_atomically(folder / "some.txt", "Mr and Mrs Quill of Fox Hythe kept bees. Now Mr and Mrs Quill sleep.");
  room.controller.draft().path = (folder / "some.txt").string();
  room.controller.start();
  REQUIRE(room.finished());
  CHECK(room.controller.results()->statistics.passages() > 0);
}

TEST_CASE("a corpus of pairs: its examples are pairs, and open at the stack that they are of") {
  Room room("tiny-translate");
  CHECK(room.controller.kind() == CorpusKind::pairs);
  room.controller.draft().count = 8;
  room.controller.start();
  REQUIRE(room.finished());
  const auto results = room.controller.results();
  CHECK(results->stacks().size() == 3);
  CorpusRun direct(room.explorer.results().model, "tiny-translate", drawn_corpus(CorpusKind::pairs, 8, 1), 24);
  Backend here(1);
  while (direct.step(Ctx{here})) {
  }
  CHECK(*results == direct.results());
  const HeadId head{1, 2};
  const auto sharp = static_cast<std::size_t>(&metric("max_weight") - metrics().data());
  for (const Stack stack : {Stack::cross, Stack::encoder, Stack::decoder}) {
    CAPTURE(name_in(stack_names, stack));
    REQUIRE(room.until([&] {
      const auto* read = room.controller.examples(head, sharp, ExampleKind::lowest, stack);
      return read && !read->empty();
    }));
    const ShownExample shown = room.controller.examples(head, sharp, ExampleKind::lowest, stack)->front();
    CHECK(shown.error.empty());
    CHECK(shown.place.text().starts_with("pair "));
    const RunRequest pair = passage_request(CorpusKind::pairs, passage_text(results->source, shown.example.place));
    CHECK_FALSE(shown.focus.empty());
    const std::string& looked_at = stack == Stack::encoder ? pair.source : pair.text;
    const bool special = looked_at.find(shown.focus) == std::string::npos;  // the token that a target begins with
    CHECK((shown.before + (special ? "" : shown.focus) + shown.after) == looked_at);
    CHECK(shown.beside == (stack == Stack::encoder ? pair.text : pair.source));
    room.controller.open(shown, head, stack);
    REQUIRE(room.until([&] {
      const Results& now = room.explorer.results();
      return now.run && now.run->whole->text == pair.text && now.run->stack == stack && now.facts &&
             now.facts->trace == now.run->trace;
    }));
    CHECK(room.explorer.state().document.source == pair.source);
    CHECK(room.explorer.state().document.selected == head);
    CHECK(room.explorer.state().document.query == shown.example.query);
    const HeadFacts& facts = *room.explorer.results().facts;
    CHECK(facts.table.value[static_cast<std::size_t>(facts.row(head))][sharp] ==
          doctest::Approx(Distribution::value(shown.example.value)).epsilon(1e-8));
  }
  room.explorer.editor.undo();  // one step: both texts, stack, head and row
  CHECK(room.explorer.state().document.stack == Stack::encoder);
}

TEST_CASE("a corpus of pictures: its examples show their picture, and open as the pass that was measured") {
  Room room("tiny-vit");
  CHECK(room.controller.kind() == CorpusKind::pictures);
  room.controller.start();  // whatever length of texts the draft says
  REQUIRE(room.finished());
  const auto results = room.controller.results();
  CHECK(results->source == drawn_corpus(CorpusKind::pictures, 4, 1));
  const HeadId head{2, 1};
  const auto entropy = static_cast<std::size_t>(&metric("entropy") - metrics().data());
  REQUIRE(room.until([&] {
    const auto* read = room.controller.examples(head, entropy, ExampleKind::highest);
    return read && !read->empty();
  }));
  const ShownExample shown = room.controller.examples(head, entropy, ExampleKind::highest)->front();
  REQUIRE(shown.picture);
  const std::string path = passage_text(results->source, shown.example.place);
  const Picture drawn = read_picture(path);
  CHECK(shown.picture->rgb == drawn.rgb);
  CHECK(shown.picture->keys() == 65);
  CHECK(shown.focus == room.explorer.results().run->trace->tokens[static_cast<std::size_t>(shown.example.query)].label);
  const std::string& shape = shape_names()[static_cast<std::size_t>(drawn_shapes(1, shown.example.place.piece).shape)];
  CHECK(shown.place == shape + " " + std::to_string(shown.example.place.piece));
  room.controller.open(shown, head);
  REQUIRE(room.until([&] {
    const Results& now = room.explorer.results();
    return now.run && now.run->request.image == path && now.facts && now.facts->trace == now.run->trace;
  }));
  CHECK(room.explorer.state().document.query == shown.example.query);
  const HeadFacts& facts = *room.explorer.results().facts;
  CHECK(facts.table.value[static_cast<std::size_t>(facts.row(head))][entropy] ==
        doctest::Approx(Distribution::value(shown.example.value)).epsilon(1e-8));
}

TEST_CASE("files that the open model does not read are refused in one sentence") {
  const auto folder = scratch_dir("corpus-desk-kinds");
  write_file_atomically(folder / "notes.txt", "a text, and no pair");
  const auto says = [&](const char* model, const std::string& path, const std::string& said) {
    Room room(model);
    room.controller.draft().drawn = false;
    room.controller.draft().path = path;
    room.controller.start();
    REQUIRE(room.until([&] { return room.controller.phase() == CorpusController::Phase::failed; }));
    CAPTURE(room.controller.error());
    CHECK(room.controller.error().find(said) != std::string::npos);
  };
  says("tiny-vit", (folder / "notes.txt").string(), "expected a picture, PNG or JPEG");
  says("tiny-vit", folder.string(), "at least one picture");
  says("tiny-vit", "", "a picture or a folder");
  says("tiny-translate", (folder / "notes.txt").string(), "line 1: expected source<TAB>target");
  says("tiny-translate", "", "a file of pairs or a folder");
}

}  // namespace headscope::corpus_controller_test
