// A lesson's file as the texts of its steps: what a program moves about in it leaves the rest as somebody wrote it; and
// the notes of who presents it.

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/lesson/lesson.h"
#include "core/lesson/lesson_pages.h"

namespace headscope::lesson_pages_test {

namespace {
const std::string file =
    "---\ntitle: Two\nabout: long and\n  longer\nminutes: 7\n---\n\n## First  \n\n> Say it\n> slowly.\n\nProse.\n"
    "```show\nhead: 0.1\n```\n\n## Second\n```show\nhead: 0.2\n```\n";
}

TEST_CASE("a file falls into its front matter and its steps, and comes back as it was") {
  const LessonPages pages = lesson_pages(file);
  CHECK(joined(pages) == file);
  REQUIRE(pages.steps.size() == 2);
  CHECK(step_title(pages.steps[0]) == "First");
  CHECK(step_title(pages.steps[1]) == "Second");
  CHECK(head_value(pages, "title") == "Two");
  CHECK(head_value(pages, "about") == "long and   longer");
  CHECK(head_value(pages, "level") == "");
}

TEST_CASE("titles change and nothing else does; steps change places and are still the same lesson") {
  LessonPages pages = lesson_pages(file);
  CHECK(with_title(pages.steps[1], " other\nwords ") == "## other words\n```show\nhead: 0.2\n```\n");
  CHECK(with_title(pages.steps[1], " ") == pages.steps[1]);
  set_lesson_title(pages, "Three: of them");
  CHECK(head_value(pages, "title") == "Three: of them");
  CHECK(head_value(pages, "minutes") == "7");
  std::swap(pages.steps[0], pages.steps[1]);
  const Lesson lesson = parse_lesson(joined(pages), "x", "x.md");
  CHECK(lesson.title == "Three: of them");
  CHECK(lesson.steps[0].title == "Second");
  CHECK(lesson.steps[1].scene.head == "0.1");
  const LessonPages made = new_lesson("a\nb", "c");
  CHECK(head_value(made, "title") == "a b");
  CHECK(made.steps.empty());
}

TEST_CASE("a step that shows something needs no words; its notes are not among its prose") {
  const jinja::Members names{{"half", jinja::Value(0.5)}};
  const Lesson lesson = parse_lesson(file + "> {half:.1f} of it\n>\n>another\nand prose\n", "x", "x.md");
  REQUIRE(lesson.steps.size() == 2);
  REQUIRE(lesson.steps[0].notes.size() == 1);
  CHECK(lesson.steps[0].notes[0].told(names) == "Say it slowly.");
  REQUIRE(lesson.steps[0].prose.size() == 1);
  CHECK(lesson.steps[0].prose[0].told(names) == "Prose.");
  REQUIRE(lesson.steps[1].notes.size() == 2);
  CHECK(lesson.steps[1].notes[0].told(names) == "0.5 of it");
  CHECK(lesson.steps[1].notes[1].told(names) == "another");
  REQUIRE(lesson.steps[1].prose.size() == 1);
  CHECK(lesson.steps[1].prose[0].told(names) == "and prose");
  CHECK(parse_lesson(file, "x", "x.md").steps[1].prose.empty());
  CHECK(lesson.after(0) == &lesson.steps[1]);
  CHECK(lesson.after(1) == nullptr);
  CHECK_THROWS_AS(parse_lesson("---\ntitle: t\n---\n## a\n> only a note\n", "x", "x.md"), Error);
}

}  // namespace headscope::lesson_pages_test
