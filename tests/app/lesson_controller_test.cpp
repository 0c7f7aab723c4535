// Taking a lesson without a window: its steps are shown, told, answered; wandering off and coming back; one's own work.

#include <doctest/doctest.h>

#include <algorithm>

#include "app/assets.h"
#include "app/state/lesson_record.h"
#include "app/state/lesson_session.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/edits/ablate_edit.h"
#include "tests/app/explorer_controller.h"
#include "tests/support/variable.h"

namespace headscope::lesson_controller_test {

namespace {
const char* const file = R"(---
title: Two heads
model: induction
text: Mr and Mrs Quill of Fox Hythe kept bees. Now Mr and Mrs Qu
---
## Who copies?
After {tokens()} tokens comes {answer()}.
```show
head: 1.0
row: -1
view: row
```
```question
kind: head
ask: Which head does it need?
answer: needed_head()
because: It costs {cost(needed_head()):.1f} nats.
```
## Elsewhere
Another head, another row.
```show
head: 0.1
cell: 9 4
```
## By hand
Three keys.
```show
mechanism: softmax temperature=2
on: one-query
view: steps
```
```question
kind: number
ask: What comes out?
answer: output(0, 0)
within: 0.1
because: {output(0, 0):.1f}
```
## Break it
Take it out.
```question
kind: until
ask: Until it says something else.
answer: answer() != "i"
because: It says {answer()}.
```
)";

struct Student : testing::Controller {
  LessonController& lessons = explorer.lessons;
  Student() {
    explorer.run.open_model(testing::example());
    explorer.editor.set_text("one two one");
    settle();
    explorer.lessons.open(std::make_shared<const Lesson>(parse_lesson(file, "01-two", "01-two.md")));
    settle();
  }
};
}  // namespace

TEST_CASE("a step shows its model, text, head and row, and tells its numbers") {
  Student s;
  REQUIRE(s.lessons.told());
  CHECK(s.lessons.told()->prose.front() == "After 58 tokens comes i.");
  CHECK(s.document().text.starts_with("Mr and Mrs"));
  CHECK(s.document().selected == HeadId{1, 0});
  CHECK(s.document().query == Index{57});
  CHECK(s.explorer.state().view.head_view == HeadView::row);
  CHECK(s.results().run->request.text == s.document().text);
  CHECK_FALSE(s.lessons.wandered());
  CHECK(s.lessons.error() == "");
}

TEST_CASE("lessons are read in a language; one that is taken goes on in it, where it was, with its score") {
  const testing::Variable locale("LC_ALL", "C");
  testing::Controller c;
  LessonController& lessons = c.explorer.lessons;
  const auto title = [&](const char* id) {
    for (const auto& each : lessons.list())
      if (each->id == id) return each->title;
    return std::string("none");
  };
  const auto meaning = [&](const char* term) {
    const auto found = std::ranges::find(lessons.glossary(), term, &GlossaryEntry::term);
    return found == lessons.glossary().end() ? GlossaryEntry() : *found;
  };
  lessons.open("01-who-is-she:2");
  c.settle();
  CHECK(lessons.languages() == std::set<std::string>{"de", "zh"});
  CHECK(lessons.step().title == "Ask a head");
  CHECK(meaning("residual stream").title == "residual stream");
  const std::string page = meaning("residual stream").page;
  CHECK(page != "");
  lessons.answer(Index{10});
  c.settle();
  REQUIRE(lessons.score() == std::pair{1, 1});
  lessons.set_language("de");
  c.settle();
  CHECK(title("01-who-is-she") == "Welches Wort sieht „she“ an?");
  CHECK(meaning("residual stream").title == "Residualstrom");
  CHECK(meaning("residual stream").page == page);
  CHECK(lessons.lesson()->language == "de");
  CHECK(lessons.step().title == "Einen Kopf fragen");
  CHECK(lessons.score() == std::pair{1, 1});
  REQUIRE(lessons.told());
  CHECK(lessons.told()->ask == "Welches Token sieht Kopf 0.2 von „sold“ aus am meisten an?");
  CHECK(c.document().query == Index{20});
  lessons.set_language("zh");
  c.settle();
  CHECK(title("03-query-key-value") == "Query, key, value by hand");  // in English, where there is no other
  lessons.set_language("");                                           // the system's
  c.settle();
  CHECK(lessons.step().title == "Ask a head");
  CHECK(meaning("residual stream").title == "residual stream");
  CHECK(c.message() == "");
}

TEST_CASE("where no font has a translation's characters, the lesson is in English, and why is said once") {
  const testing::Variable locale("LC_ALL", "C");
  const auto folder = testing::scratch_dir("lesson-fonts");
  const std::string text = "---\ntitle: Bare\nmodel: induction\ntext: a b\n---\n## One\nProse.\n";
  std::filesystem::create_directories(folder / "headscope/lessons");
  write_file_atomically(folder / "headscope/lessons/x.md", text);
  std::string other = text;
  other.replace(other.find("Prose"), 5, "Prose \u0378");  // no character has that number
  write_file_atomically(folder / "headscope/lessons/x.xx.md", other);
  const testing::Variable own("XDG_DATA_HOME", folder.string());
  std::string why;
  CHECK(read_lesson_in(folder / "headscope/lessons/x.md", "xx", why).language == "");
  CHECK(why.find("no font on this machine has “\u0378”, which x.xx.md is written with") != std::string::npos);
  testing::Controller c;
  c.explorer.lessons.set_language("xx");
  c.explorer.lessons.list();
  c.settle();
  CHECK(c.message() == why);
  c.explorer.jobs.dismiss();
  c.explorer.lessons.read_again();
  c.settle();
  CHECK(c.message() == "");
}

TEST_CASE("the next step shows its own head and row, and so does the one before") {
  Student s;
  s.lessons.go(1);
  CHECK_FALSE(s.lessons.told());  // of the step before
  s.settle();
  CHECK(s.document().selected == HeadId{0, 1});
  CHECK(s.document().query == Index{9});
  CHECK(s.document().key == Index{4});
  CHECK(s.lessons.told()->prose.front() == "Another head, another row.");
  s.lessons.go(0);
  s.settle();
  CHECK(s.document().selected == HeadId{1, 0});
  CHECK(s.document().query == Index{57});
  CHECK_FALSE(s.document().key);
  // A lesson that is taken within another.
  s.lessons.go(1);
  s.settle();
  s.lessons.open(std::make_shared<const Lesson>(parse_lesson(file, "02-again", "02-again.md")));
  s.settle();
  CHECK(s.document().selected == HeadId{1, 0});
  CHECK(s.lessons.told()->prose.front() == "After 58 tokens comes i.");
}

TEST_CASE("a step that cannot be shown says why, is told nothing of another one, and the others go on") {
  for (const char* wrong :
       {"view: upside down", "edit: 0.2: ablat zero", "stack: decoder", "workspace: Nowhere", "page: masks",
        "session: {", "session: {\"document\": {\"nothing\": 1}}", "image: none.png"}) {
    CAPTURE(wrong);
    Student s;
    const std::string text =
        "---\ntitle: t\nmodel: induction\ntext: Mr and Mrs Qu\n---\n## a\nb\n## c\n{tokens()}\n```show\n" +
        std::string(wrong) + "\n```\n## d\ne\n";
    s.lessons.open(std::make_shared<const Lesson>(parse_lesson(text, "x", "x.md")));
    s.settle();
    CHECK(s.lessons.error() == "");
    s.lessons.go(1);
    s.settle();
    CHECK(s.lessons.error() != "");
    CHECK_FALSE(s.lessons.told());
    s.lessons.go(2);
    s.settle();
    CHECK(s.lessons.error() == "");
    CHECK(s.lessons.told());
  }
}

TEST_CASE("a step without a model, or of one that is not there, is told nothing") {
  Student s;
  s.lessons.open(std::make_shared<const Lesson>(parse_lesson("---\ntitle: t\n---\n## a\nb\n", "x", "x.md")));
  s.settle();
  CHECK(s.lessons.error().find("a model") != std::string::npos);
  s.lessons.open(std::make_shared<const Lesson>(
      parse_lesson("---\ntitle: t\nmodel: no-such-model\ntext: a\n---\n## a\nb\n", "x", "x.md")));
  s.settle();
  CHECK_FALSE(s.lessons.told());
  CHECK(s.message().find("no-such-model") != std::string::npos);
}

TEST_CASE("guesses are answered by the model; the score is of first guesses") {
  Student s;
  CHECK_FALSE(s.lessons.answer());
  s.lessons.answer(HeadId{0, 1});
  s.settle();
  REQUIRE(s.lessons.answer());
  CHECK_FALSE(s.lessons.answer()->right);
  CHECK(s.lessons.answer()->truth == "head 1.0");
  s.lessons.answer(HeadId{1, 0});
  s.settle();
  CHECK(s.lessons.answer()->right);
  CHECK(s.lessons.score() == std::pair{0, 1});
  s.lessons.go(2);
  s.settle();
  CHECK_FALSE(s.lessons.answer());
  s.lessons.answer(20.0);
  s.settle();
  REQUIRE(s.lessons.answer());
  CHECK(s.lessons.answer()->right);
  CHECK(s.lessons.score() == std::pair{1, 2});
  s.lessons.go(7);  // there is none
  CHECK(s.lessons.at() == 2);
}

TEST_CASE("a step of a mechanism puts its page, values and worked example on the screen") {
  Student s;
  s.lessons.go(2);
  s.settle();
  REQUIRE(s.document().by_hand);
  CHECK(s.document().by_hand->example == "one-query");
  const Session session = lesson_session(s.lessons.step().scene, {}, "here");
  CHECK(session.window.workspace == "Mechanisms");
  CHECK(session.window.pages.at("Mechanisms") == "softmax");
  CHECK(session.window.controls.at("Mechanisms").find("\"temperature\":2") != std::string::npos);
}

TEST_CASE("what was to be reached is found in what the student does on the screen") {
  Student s;
  s.lessons.go(3);
  s.settle();
  CHECK_FALSE(s.lessons.answer());  // nothing has been done
  s.explorer.editor.set_edits({{{0, 0}, Ablate{Ablate::By::zero}}});
  s.settle();
  CHECK(s.lessons.wandered());
  s.explorer.editor.set_edits({{{1, 0}, Ablate{Ablate::By::zero}}});
  s.settle();
  REQUIRE(s.lessons.answer());
  CHECK(s.lessons.answer()->right);
  CHECK(s.lessons.answer()->because.starts_with("It says "));
  CHECK(s.lessons.answer()->because != "It says i.");
  s.lessons.show_again();
  s.settle();
  CHECK_FALSE(s.lessons.wandered());
  CHECK(s.document().edits.empty());
}

TEST_CASE("one's own text is set aside, is still unsaved, and comes back") {
  Student s;
  CHECK(s.explorer.files.aside());
  CHECK(s.explorer.files.unsaved() == "a text");
  CHECK(s.explorer.files.own().document.text == "one two one");
  View& view = s.explorer.editor.view();
  view.theme = "light", view.text_unit = TextUnit::words, view.right_open = false;
  s.lessons.go(3);
  s.settle();
  const auto kept = [&] {
    return s.explorer.state().view.theme == "light" && s.explorer.state().view.text_unit == TextUnit::words &&
           !s.explorer.state().view.right_open;
  };
  CHECK(kept());  // is the person's, not the lesson's
  s.explorer.editor.set_text("something else");
  s.lessons.close();
  s.settle();
  CHECK(s.document().text == "one two one");
  CHECK(s.explorer.files.unsaved() == "a text");
  CHECK_FALSE(s.lessons.lesson());
  CHECK(kept());
  CHECK_FALSE(s.document().by_hand);
  s.explorer.editor.undo();  // a step like others
  s.settle();
  CHECK(s.document().text == "something else");
}

TEST_CASE("a session that is opened inside a lesson ends it and stays") {
  for (const bool taken_up : {false, true}) {
    Student s;
    Session other;
    other.document.model = testing::example();
    other.document.text = "three four";
    const auto file = testing::scratch_dir("lesson-session") / "other.json";
    write_file_atomically(file, to_json(other));
    taken_up ? s.explorer.files.take_up_soon(file) : s.explorer.files.open_soon(file);
    s.settle();
    CHECK_FALSE(s.lessons.lesson());
    CHECK_FALSE(s.explorer.files.aside());
    CHECK(s.document().text == "three four");
    // What was kept of an earlier start is still to be saved.
    CHECK(s.explorer.files.unsaved() == (taken_up ? "a text" : ""));
    s.lessons.close();
    s.settle();
    CHECK(s.document().text == "three four");
  }
}

TEST_CASE("what is on the screen is written as a step that shows the same") {
  Session session;
  session.document.model = *find_bundled_model("tiny-gpt2");
  session.document.text = "Anna sold pies.";
  session.document.selected = {1, 3};
  session.document.query = 4, session.document.key = 2;
  session.document.edits = {parse_intervention("0.2: ablate zero", "here"),
                            parse_intervention("*: mask window 8", "here")};
  session.view.head_view = HeadView::arcs;
  const auto again = [](const Session& shown) {
    const std::string text = "---\ntitle: t\n---\n" + lesson_step_text(shown);
    const LessonScene scene = parse_lesson(text, "x", "x.md").steps.front().scene;
    LessonTold told;
    told.head = parse_head_id(scene.head);
    return std::pair{scene, lesson_session(scene, told, "here")};
  };
  const auto [scene, back] = again(session);
  CHECK(scene.model == "tiny-gpt2");
  CHECK(scene.cell == "4 2");
  CHECK(scene.session == "");
  CHECK(back.document.model == session.document.model);
  CHECK(back.document.text == session.document.text);
  CHECK(back.document.selected == session.document.selected);
  CHECK(back.document.edits == session.document.edits);
  CHECK(back.view.head_view == HeadView::arcs);
  // What a line cannot hold.
  session.document.text = " two\nlines ";
  session.window.workspace = "Analyse";
  session.window.pages["Analyse"] = "masks";
  const auto [page, lines] = again(session);
  CHECK(page.text == "");
  CHECK(lines.document.text == " two\nlines ");
  CHECK(lines.window.workspace == "Analyse");
  CHECK(lines.window.pages.at("Analyse") == "masks");
  session.document.ids = {5, 6, 7};
  CHECK(again(session).second.document.ids == session.document.ids);
}

TEST_CASE("a step keeps all that can be set of what it shows: view, controls, edits that words do not say") {
  Session session;
  session.document.model = *find_bundled_model("tiny-gpt2");
  session.document.text = "Anna sold pies.";
  session.document.add_bos = false;
  session.document.query = 2;
  session.document.edits = {parse_intervention("0.2: ablate zero", "here"),
                            parse_intervention("1.0: temperature 2", "here")};
  session.document.edits.back().enabled = false;
  session.view.scale = Scale::log, session.view.shown = Shown::before, session.view.atlas.coloring = "class";
  session.view.theme = "light", session.view.left_open = false, session.view.map_tool = MapTool::mask;
  session.window.workspace = "Analyse";
  session.window.pages = {{"Analyse", "lens"}, {"Compare", "text"}};
  session.window.controls = {{"Analyse", R"({"lens":{"row":3}})"}, {"Compare", R"({"with":1})"}};
  const std::string text = "---\ntitle: t\n---\n## a\n" + lesson_show_block(session);
  const LessonStep step = parse_lesson(text, "x", "x.md").steps.front();
  const Session back = lesson_session(step.scene, {.head = session.document.selected, .row = 2}, "here");
  CHECK(back.document == session.document);
  CHECK(back.view.scale == Scale::log);
  CHECK(back.view.shown == Shown::before);
  CHECK(back.view.atlas.coloring == "class");
  CHECK(back.window.workspace == "Analyse");
  CHECK(back.window.pages == std::map<std::string, std::string>{{"Analyse", "lens"}});
  CHECK(back.window.controls == std::map<std::string, std::string>{{"Analyse", R"({"lens":{"row":3}})"}});
  // Whoever sees it has a theme, panels and a tool of their own.
  for (const char* own : {"theme", "panels", "map_tool"}) CHECK(step.scene.session.find(own) == std::string::npos);
}

TEST_CASE("a page of mechanisms is written in the words of lessons, with its values") {
  Student s;
  s.lessons.go(2);
  s.settle();
  Session session = lesson_session(s.lessons.step().scene, {}, "here");
  const auto scene_of = [&] {
    const std::string text = "---\ntitle: t\n---\n## a\n" + lesson_show_block(session);
    return parse_lesson(text, "x", "x.md").steps.front().scene;
  };
  CHECK(scene_of().mechanism.starts_with("softmax temperature=2"));
  CHECK(scene_of().on == "one-query");
  const Session back = lesson_session(scene_of(), {}, "here");
  CHECK(nlohmann::json::parse(back.window.controls.at("Mechanisms")) ==
        nlohmann::json::parse(session.window.controls.at("Mechanisms")));
  REQUIRE(back.document.by_hand);
  CHECK(back.document.by_hand->example == "one-query");
  // Numbers of one's own are in no file: that is said, rather than other ones shown later.
  MatricesByHand own = *session.document.by_hand;
  own.example.clear();
  session.document.by_hand = std::make_shared<const MatricesByHand>(own);
  CHECK_THROWS_WITH_AS(lesson_show_block(session), doctest::Contains("made by hand"), Error);
}

TEST_CASE("a scene that cannot be shown is refused with what there is") {
  LessonScene scene;
  scene.workspace = "Nowhere";
  CHECK_THROWS_AS(lesson_session(scene, {}, "here"), Error);
  scene = {.view = "upside down"};
  CHECK_THROWS_AS(lesson_session(scene, {}, "here"), Error);
  scene = {.mechanism = "softmax", .on = "nothing"};
  CHECK_THROWS_AS(lesson_session(scene, {}, "here"), Error);
  scene = {.edits = {"9: nonsense"}};
  CHECK_THROWS_AS(lesson_request(scene), Error);
  scene = {.session = R"({"view": {"scale": "log"}, "document": {"too_long": "keep_last"}})"};
  const Session merged = lesson_session(scene, {.head = HeadId{1, 2}}, "here");
  CHECK(merged.view.scale == Scale::log);
  CHECK(merged.document.selected == HeadId{1, 2});
  CHECK(merged.document.too_long == RunRequest::TooLong::keep_last);
}

TEST_CASE("a text that is not UTF-8 is no step of a lesson, and that is said") {
  for (const char* text : {"to \xff", "to\nbe \xff"}) {
    Session session;
    session.document.text = text;
    CHECK_THROWS_WITH_AS(lesson_step_text(session), doctest::Contains("UTF-8"), Error);
  }
}

}  // namespace headscope::lesson_controller_test
