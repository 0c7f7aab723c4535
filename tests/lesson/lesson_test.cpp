// Lessons as files: what is read of them, what is refused and where, and how formulas come into their text.

#include <doctest/doctest.h>

#include <cmath>

#include "core/base/error.h"
#include "core/lesson/lesson.h"

namespace headscope::lesson_test {

using jinja::Callable;
using jinja::Members;
using jinja::Value;

namespace {
const std::string whole = R"(---
title: Two steps
about: What a lesson holds
minutes: 7
level: 2
model: tiny-gpt2
text: one two
needs: a, b
words: first word, second
edit: 0.1: ablate zero
---

## First

A sentence with {half:.2f} in it
that goes on here.

Another paragraph.
- a point
- and one more

```show
head: 0.2
edit: 1.0: temperature 2
session: {"view": {"scale":
  "log"}}
```
```expect
half == 0.5
half < 1
```

## Second

Prose.

```question
kind: choice
ask: Which?
choices: {half:.1f} | another
answer: "0.5"
because: It is {half:.1f}.
```
)";

const Members names{{"half", Value(0.5)},
                    {"minus", Value(-2.25)},
                    {"count", Value(std::int64_t{-3})},
                    {"word", Value("sold")},
                    {"nothing", Value(std::nan(""))},
                    {"twice", Callable{[](const jinja::Arguments& a) -> Value { return 2 * a.at(0, "x").real(); }}}};

std::string told(const std::string& text) {
  return LessonText(text, "here").told(names);
}

std::string refusal(const std::string& markdown) {
  try {
    parse_lesson(markdown, "x", "x.md");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
}  // namespace

TEST_CASE("a lesson's front matter, steps, scenes, questions and claims are read") {
  const Lesson lesson = parse_lesson(whole, "03-two", "03-two.md");
  CHECK(lesson.id == "03-two");
  CHECK(lesson.title == "Two steps");
  CHECK(lesson.about == "What a lesson holds");
  CHECK(lesson.minutes == 7);
  CHECK_FALSE(parse_lesson("---\ntitle: t\n---\n## a\nb\n", "t", "t.md").minutes);  // nobody said how long
  CHECK(lesson.level == 2);
  CHECK(lesson.needs == std::vector<std::string>{"a", "b"});
  CHECK(lesson.words == std::vector<std::string>{"first word", "second"});
  REQUIRE(lesson.steps.size() == 2);
  const LessonStep &first = lesson.steps[0], &second = lesson.steps[1];
  CHECK(first.title == "First");
  CHECK(first.line == 13);
  REQUIRE(first.prose.size() == 4);
  CHECK(first.prose[0].told(names) == "A sentence with 0.50 in it that goes on here.");
  CHECK(first.prose[2].told(names) == "- a point");
  // What a step does not name is the lesson's; its edits come after the lesson's.
  CHECK(first.scene.model == "tiny-gpt2");
  CHECK(first.scene.text == "one two");
  CHECK(first.scene.head == "0.2");
  CHECK(first.scene.edits == std::vector<std::string>{"0.1: ablate zero", "1.0: temperature 2"});
  CHECK(first.scene.session == R"({"view": {"scale": "log"}})");
  CHECK(first.expect.size() == 2);
  CHECK(first.expect[1].where() == "03-two.md, line 30");
  CHECK_FALSE(first.question);
  CHECK(second.scene.head == "");
  CHECK(second.scene.edits.size() == 1);
  REQUIRE(second.question);
  CHECK(second.question->kind == LessonQuestion::Kind::choice);
  REQUIRE(second.question->choices.size() == 2);
  CHECK(second.question->choices[0].told(names) == "0.5");
  CHECK(second.question->because.told(names) == "It is 0.5.");
  CHECK(second.question->answer->value(names).printed() == "0.5");
}

TEST_CASE("another workspace leaves the lesson's page behind") {
  const Lesson lesson = parse_lesson(
      "---\ntitle: t\nworkspace: Analyse\npage: scan\nmechanism: softmax\non: 0.0\n---\n## a\nb\n## c\nd\n```show\n"
      "workspace: Explore\n```\n## e\nf\n```show\npage: masks\n```\n## g\nh\n```show\npage: a\nworkspace: "
      "Compare\n```\n",
      "x", "x.md");
  CHECK(lesson.steps[0].scene.page == "scan");
  CHECK(lesson.steps[1].scene.page == "");
  CHECK(lesson.steps[1].scene.mechanism == "");
  CHECK(lesson.steps[2].scene.page == "masks");
  CHECK(lesson.steps[2].scene.mechanism == "softmax");
  CHECK(lesson.steps[3].scene.page == "a");
}

TEST_CASE("formulas come into the text in their format, a minus as one sees it elsewhere") {
  CHECK(told("{half}") == "0.5");
  CHECK(told("{minus:.1f} and {count}") == "−2.2 and −3");
  CHECK(told("{half:.0%} of {half:%}, {half:.1%}") == "50 % of 50 %, 50.0 %");
  CHECK(told("{nothing:.2f}") == "–");
  CHECK(told("{-half}") == "−0.5");  // in a template "{{-" would take white space along
  CHECK(told("“{word}” {{as it stands}}") == "“sold” {as it stands}");
  CHECK(told("{'a:b' ~ word}") == "a:bsold");     // a colon in quotes begins no format
  CHECK(told("{[1, 2, 3][0:2]|length}") == "2");  // nor one in brackets
  CHECK(told("{twice(half):.3g}") == "1");
  CHECK(told("{half:g} {half:.1e} {half:f}") == "0.5 5.0e-01 0");
  CHECK(told("{word if half > 0.4 else 'no'}") == "sold");
}

TEST_CASE("what cannot be told is refused, with the place") {
  CHECK_THROWS_AS(told("{nobody}"), Error);
  CHECK_THROWS_AS(told("{word:.2f}"), Error);
  CHECK_THROWS_AS(told("{half:.2z}"), Error);
  for (const char* format : {">2000000000", ".2000000000f", ".f", "2f", ".123f", ".", "%%", "d"}) {
    CAPTURE(format);
    CHECK_THROWS_AS(told("{half:" + std::string(format) + "}"), Error);
  }
  CHECK_THROWS_AS(LessonText("{half", "here"), Error);
  CHECK_THROWS_AS(LessonText("half}", "here"), Error);
  CHECK_THROWS_AS(LessonText("{half +}", "here"), Error);
  CHECK_THROWS_AS(LessonText("{half}{half half}", "here"), Error);
}

TEST_CASE("a file that is no lesson is refused, with the line") {
  CHECK(holds(refusal("# title\n"), "x.md, line 1"));
  CHECK(holds(refusal("---\ntitle: t\n"), "\"---\""));
  CHECK(holds(refusal("---\nminutes: 5\n---\n## a\nb\n"), "a title"));
  CHECK(holds(refusal("---\ntitle: t\nminutes: 0\n---\n## a\nb\n"), "x.md, line 3"));
  CHECK(holds(refusal("---\ntitle: t\nminuts: 5\n---\n## a\nb\n"), "minutes"));  // the nearest name
  CHECK(holds(refusal("---\ntitle: t\n---\n"), "a step"));
  CHECK(holds(refusal("---\ntitle: t\n---\nprose\n"), "x.md, line 4"));
  CHECK(holds(refusal("---\ntitle: t\n---\n## a\n"), "a sentence or more in \"a\", or what it shows"));
  CHECK(holds(refusal("---\ntitle: t\n---\n## a\nb\n```shew\n```\n"), "show, question or expect"));
  CHECK(holds(refusal("---\ntitle: t\n---\n## a\nb\n```show\nhead: 0.0\n"), "the end of the file"));
  CHECK(holds(refusal("---\ntitle: t\n---\n## a\nb\n```expect\n1 +\n```\n"), "x.md, line 7"));
  const std::string asks = "---\ntitle: t\n---\n## a\nb\n```question\nkind: ";
  CHECK(holds(refusal(asks + "token\nask: a\nanswer: 1\n```\n"), "ask, answer and because"));
  CHECK(holds(refusal(asks + "tokens\nask: a\nanswer: 1\nbecause: c\n```\n"), "token, head, number, choice, until"));
  CHECK(holds(refusal(asks + "choice\nask: a\nanswer: 1\nbecause: c\n```\n"), "two choices"));
  CHECK(holds(refusal(asks + "number\nask: a\nanswer: 1\nbecause: c\nchoices: a | b\n```\n"), "two choices"));
  // A bar inside of a formula is its own.
  const std::string bars =
      asks + "choice\nask: a\nanswer: 'b|c'\nbecause: c\nchoices: {'b|c'} | {2.5|round} | d\n```\n";
  CHECK(parse_lesson(bars, "x", "x.md").steps.front().question->choices.size() == 3);
  CHECK(holds(refusal("---\ntitle: t\n---\n## a\n" + std::string(10001, 'b') + "\n"), "10000 bytes"));
  CHECK(holds(refusal(std::string(300 << 10, 'b')), "262144"));
  CHECK(refusal("\xEF\xBB\xBF---\r\ntitle: t\r\n---\r\n## a\r\nb\r\n") == "");
  CHECK(refusal(asks + "number\nask: a\nanswer: 1\nbecause: c\nwithin: 0.5\n```\n") == "");
}

}  // namespace headscope::lesson_test
