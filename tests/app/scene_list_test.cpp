// Lists of scenes: states of the window in a lesson's file that the window writes.

#include <doctest/doctest.h>

#include "app/actions/action.h"
#include "app/state/lesson_record.h"
#include "core/base/file.h"
#include "tests/app/explorer_controller.h"
#include "tests/support/variable.h"

namespace headscope::scene_list_test {

namespace {
struct Speaker : testing::Controller {
  std::filesystem::path own = testing::scratch_dir("scene-list");
  testing::Variable data{"XDG_DATA_HOME", own.string()};
  SceneList& scenes = explorer.scenes;
  Settings settings;
  UiRequests ui;
  AppContext app{explorer, settings, ui};
  std::filesystem::path file = own / "headscope/lessons/my-scenes.md";

  Speaker() {
    explorer.run.open_model(testing::example());
    explorer.editor.set_text("one two one");
    settle();
  }
  void does(const char* action) {
    find_action(action)->run(app);
    settle();
  }
  std::vector<std::string> titles() const {
    std::vector<std::string> out;
    for (const std::string& each : scenes.pages().steps) out.push_back(step_title(each));
    return out;
  }
};
using Titles = std::vector<std::string>;
}  // namespace

TEST_CASE("a state is put on the list by an action, and is presented as it was") {
  Speaker s;
  s.explorer.editor.select({1, 0});
  s.explorer.editor.pin(3);
  s.explorer.editor.view().scale = Scale::log;
  s.settle();
  s.does("scenes.add");
  const std::string token = s.results().run->trace->queries()[3].label;
  CHECK(s.titles() == Titles{"Head 1.0 · " + token});
  CHECK(s.message().find("Scene 1 of “My scenes”") != std::string::npos);
  s.explorer.editor.set_text("something else");
  s.explorer.editor.select({0, 2});
  s.explorer.editor.view().scale = Scale::linear;
  s.explorer.editor.set_edits({parse_intervention("0.2: ablate zero", "here")});
  s.settle();
  s.does("scenes.add");
  CHECK(s.titles().back() == "Head 0.2 · " + s.results().run->trace->queries()[3].label + " · 0.2: ablate zero");
  // One's own work is set aside meanwhile.
  s.explorer.editor.set_text("my own");
  s.explorer.editor.set_edits({});
  s.settle();
  s.does("scenes.present");
  CHECK(s.ui.presenting);
  REQUIRE(s.explorer.lessons.lesson());
  CHECK(s.explorer.lessons.lesson()->title == "My scenes");
  CHECK(s.explorer.lessons.error() == "");
  REQUIRE(s.explorer.lessons.told());
  CHECK(s.document().text == "one two one");
  CHECK(s.document().selected == HeadId{1, 0});
  CHECK(s.document().query == Index{3});
  CHECK(s.explorer.state().view.scale == Scale::log);
  s.explorer.lessons.go(1);
  s.settle();
  CHECK(s.document().text == "something else");
  CHECK(s.document().edits.size() == 1);
  CHECK(s.explorer.state().view.scale == Scale::linear);
  CHECK_FALSE(s.explorer.lessons.wandered());
  s.explorer.lessons.close();
  s.settle();
  CHECK(s.document().text == "my own");
  // It is a lesson among the others.
  CHECK(std::ranges::any_of(s.explorer.lessons.list(), [](const auto& each) { return each->id == "my-scenes"; }));
}

TEST_CASE("scenes are renamed, moved and taken off; each of these can be taken back") {
  Speaker s;
  const std::string block = lesson_show_block(s.explorer.files.session());
  for (const char* title : {"a", "b", "c"}) s.scenes.add(title, block);  // one right after the other
  s.settle();
  CHECK(s.titles() == Titles{"a", "b", "c"});
  s.scenes.move(2, -1);
  s.scenes.rename(0, "first\nof all");
  s.settle();
  CHECK(s.titles() == Titles{"first of all", "c", "b"});
  s.scenes.move(0, -1);
  s.scenes.move(2, 1);
  s.settle();
  CHECK(s.titles() == Titles{"first of all", "c", "b"});
  s.scenes.remove(1);
  s.scenes.rename_list("A talk");
  s.settle();
  CHECK(s.titles() == Titles{"first of all", "b"});
  CHECK(read_lesson(s.file).title == "A talk");
  CHECK(s.scenes.undoable() == "renamed the list");
  s.scenes.undo();
  s.settle();
  CHECK(s.scenes.undoable() == "removed: c");
  s.scenes.undo();
  s.settle();
  CHECK(s.titles() == Titles{"first of all", "c", "b"});
  CHECK(read_lesson(s.file).steps.size() == 3);
  // Nothing on it: no file, so that nothing is listed that is no lesson.
  for (int i = 0; i < 3; ++i) {
    s.scenes.remove(0);
    s.settle();
  }
  CHECK(s.titles().empty());
  CHECK_FALSE(std::filesystem::exists(s.file));
  s.does("scenes.present");
  CHECK(s.message().find("F7") != std::string::npos);
  CHECK_FALSE(s.ui.presenting);
  s.scenes.undo();
  s.settle();
  CHECK(s.titles() == Titles{"b"});
}

TEST_CASE("what somebody writes into the file stays, and nothing is changed that is no longer there") {
  Speaker s;
  const std::string block = lesson_show_block(s.explorer.files.session());
  s.scenes.add("a", block);
  s.scenes.add("b", block);
  s.settle();
  std::string text = read_file(s.file);
  text.replace(text.find("## a\n"), 5, "## a\n> Say {tokens()}.\n\nIn words.\n");
  text.replace(text.find("about:"), 6, "minutes: 9\nabout:");
  write_file_atomically(s.file, text);
  s.scenes.add("c", block);  // read anew before it is written
  s.settle();
  CHECK(s.titles() == Titles{"a", "b", "c"});
  Lesson lesson = read_lesson(s.file);
  CHECK(lesson.minutes == 9);
  CHECK(lesson.steps[0].notes.size() == 1);
  s.scenes.move(0, 1);
  s.settle();
  lesson = read_lesson(s.file);
  CHECK(lesson.steps[1].title == "a");
  CHECK(lesson.steps[1].prose.size() == 1);
  // Another program takes one away that the window still shows.
  LessonPages pages = lesson_pages(read_file(s.file));
  pages.steps.erase(pages.steps.begin());
  write_file_atomically(s.file, joined(pages));
  s.scenes.remove(0);
  s.settle();
  CHECK(s.message().find("\"b\"") != std::string::npos);
  CHECK(joined(lesson_pages(read_file(s.file))) == joined(pages));
  s.explorer.jobs.dismiss();
  s.scenes.undo();  // would take back more than the window did
  s.settle();
  CHECK(s.message().find("another program") != std::string::npos);
  CHECK(joined(lesson_pages(read_file(s.file))) == joined(pages));
  // That is said once: what the file holds now is on the list, and what is done from here on can be undone.
  CHECK(s.titles() == Titles{"a", "c"});
  CHECK(s.scenes.undoable() == "");
  s.explorer.jobs.dismiss();
  s.scenes.undo();
  s.settle();
  CHECK(s.message() == "");
  s.scenes.rename(0, "d");
  s.settle();
  CHECK(s.scenes.undoable() == "renamed: a");
  s.scenes.undo();
  s.settle();
  CHECK(s.titles() == Titles{"a", "c"});
}

TEST_CASE("there may be several lists; without a folder of one's own there is none, and that is said") {
  Speaker s;
  const std::string block = lesson_show_block(s.explorer.files.session());
  s.scenes.add("a", block);
  s.settle();
  CHECK(s.scenes.unused_id() == "my-scenes-2");
  s.scenes.use("my-scenes-2");
  s.settle();
  CHECK(s.titles().empty());
  CHECK(s.scenes.undoable() == "");
  s.scenes.add("other", block);
  s.settle();
  CHECK(head_value(s.scenes.pages(), "title") == "My scenes 2");
  CHECK(s.scenes.others() == Titles{"my-scenes", "my-scenes-2"});
  s.scenes.use("../escape");
  CHECK(s.scenes.id() == "my-scenes-2");
  s.scenes.use("my-scenes");
  s.settle();
  CHECK(s.titles() == Titles{"a"});
  const testing::Variable data("XDG_DATA_HOME", ""), home("HOME", "");
  s.scenes.add("b", block);
  s.settle();
  CHECK(s.message().find("XDG_DATA_HOME") != std::string::npos);
}

TEST_CASE("what Undo brings back is kept until it is written") {
  Speaker s;
  const std::string block = lesson_show_block(s.explorer.files.session());
  s.scenes.add("a", block);
  s.settle();
  s.scenes.remove(0);
  s.settle();
  const std::filesystem::path folder = s.file.parent_path();
  std::filesystem::remove_all(folder);
  write_file_atomically(folder, "no folder");
  s.scenes.undo();
  s.settle();
  CHECK(s.message().find("a folder for lists of scenes") != std::string::npos);
  CHECK(s.scenes.undoable() == "removed: a");
  std::filesystem::remove(folder);
  s.scenes.undo();
  s.settle();
  CHECK(s.titles() == Titles{"a"});
}

TEST_CASE("Undo waits for a change that is still to be written") {
  Speaker s;
  const std::string block = lesson_show_block(s.explorer.files.session());
  s.scenes.add("a", block);
  s.scenes.add("b", block);
  s.settle();
  s.explorer.jobs.dismiss();
  s.scenes.remove(0);
  CHECK(s.scenes.undoable() == "");
  s.scenes.undo();
  s.settle();
  CHECK(s.message() == "");
  CHECK(s.scenes.undoable() == "removed: a");
  s.scenes.undo();
  s.scenes.undo();
  s.settle();
  CHECK(s.titles() == Titles{"a", "b"});
  CHECK(s.scenes.undoable() == "added: b");
  // A change that fails is waited for no longer.
  write_file_atomically(s.file, "no lesson");
  s.scenes.add("c", block);
  s.settle();
  CHECK(s.message().find("my-scenes.md") != std::string::npos);
  CHECK(s.scenes.undoable() == "added: b");
}

TEST_CASE("a lesson that somebody wrote is not taken away with its last step") {
  Speaker s;
  const std::string text = "---\ntitle: By hand\nminutes: 9\n---\n\n## Alone\nIn words.\n";
  std::filesystem::create_directories(s.file.parent_path());
  write_file_atomically(s.file.parent_path() / "by-hand.md", text);
  s.scenes.use("by-hand");
  s.settle();
  REQUIRE(s.titles() == Titles{"Alone"});
  s.scenes.remove(0);
  s.settle();
  CHECK(s.message().find("a step to be left") != std::string::npos);
  CHECK(s.titles() == Titles{"Alone"});
  REQUIRE(std::filesystem::exists(s.scenes.file()));
  CHECK(read_file(s.scenes.file()) == text);
}

TEST_CASE("each list has its own Undo, which is still there when one comes back to it") {
  Speaker s;
  const std::string block = lesson_show_block(s.explorer.files.session());
  s.scenes.add("a", block);
  s.scenes.add("b", block);
  s.settle();
  s.scenes.remove(0);
  s.scenes.use("my-scenes-2");  // before it is written
  s.settle();
  CHECK(s.scenes.undoable() == "");
  s.scenes.use("my-scenes");
  s.settle();
  CHECK(s.scenes.undoable() == "removed: a");
  s.scenes.undo();
  s.settle();
  CHECK(s.titles() == Titles{"a", "b"});
}

TEST_CASE("a scene that is moved twice at once goes two places") {
  Speaker s;
  const std::string block = lesson_show_block(s.explorer.files.session());
  for (const char* title : {"a", "b", "c", "d"}) s.scenes.add(title, block);
  s.settle();
  s.scenes.move(2, -1);
  s.scenes.move(2, -1);
  s.settle();
  CHECK(s.titles() == Titles{"c", "a", "b", "d"});
  for (int i = 0; i < 3; ++i) s.scenes.move(2, 1);  // the last of them at the end already
  s.settle();
  CHECK(s.titles() == Titles{"c", "a", "d", "b"});
}

}  // namespace headscope::scene_list_test
