// Lessons in other languages: which file is whose, and what a translation may not change.

#include "core/lesson/translation.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/language.h"
#include "tests/support/paths.h"
#include "tests/support/variable.h"

namespace headscope::translation_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {
const std::string original_text = R"(---
title: Two
level: 2
minutes: 7
model: induction
text: Mr and Mrs Qu
words: a, b
---
## One
It has {tokens()} tokens.
```show
head: 1.0
```
```question
kind: choice
ask: More?
choices: more than {tokens()} | less | as many
answer: "less" if tokens() > 20 else "more than " ~ tokens()
because: Count.
```
```expect
tokens() == 13
tokens() < 20
```
## Two
Nothing.
)";

std::string with(std::string text, const std::string& before, const std::string& after) {
  const auto at = text.find(before);
  CAPTURE(before);
  REQUIRE(at != std::string::npos);
  return text.replace(at, before.size(), after);
}

std::vector<TranslationFault> faults(const std::string& translation) {
  return translation_faults(parse_lesson(original_text, "x", "x.md"), parse_lesson(translation, "x", "x.de.md"));
}
}  // namespace

TEST_CASE("a language is read from what locales are called, and the first variable that is set decides") {
  CHECK(parse_language("de") == "de");
  CHECK(parse_language("de_AT.UTF-8") == "de_AT");
  CHECK(parse_language("pt-BR") == "pt_BR");
  CHECK(parse_language("sr_RS@latin") == "sr_RS");
  CHECK(parse_language("C.UTF-8") == "en");
  CHECK(parse_language("POSIX") == "en");
  for (const char* none : {"", "d", "German", "de_", "de_at", "DE", "de_ATX", "../x"}) {
    CAPTURE(none);
    CHECK_FALSE(parse_language(none));
  }
  const Variable all("LC_ALL", ""), messages("LC_MESSAGES", "zh_CN.UTF-8"), lang("LANG", "de_DE.UTF-8");
  CHECK(system_language() == "zh_CN");
  {
    const Variable over("LC_ALL", "C");
    CHECK(system_language() == "en");
  }
  const Variable unset("LC_MESSAGES", "");
  CHECK(system_language() == "de_DE");
  const Variable wrong("LANG", "what");
  CHECK(system_language() == "en");
}

TEST_CASE("a translation stands beside its lesson: a language that there is, of a lesson that there is") {
  const fs::path folder = scratch_dir("translations");
  for (const char* name : {"a.md", "a.de.md", "a.pt_BR.md", "a.pt.md", "a.notes.md", "b.de.md"})
    write_file_atomically(folder / name, original_text);
  CHECK(language_of(folder / "a.md") == "");
  CHECK(language_of(folder / "a.de.md") == "de");
  CHECK(language_of(folder / "a.pt_BR.md") == "pt_BR");
  CHECK(language_of(folder / "a.notes.md") == "");
  CHECK(language_of(folder / "b.de.md") == "");  // of nothing
  CHECK(original_of(folder / "a.de.md") == folder / "a.md");
  CHECK(original_of(folder / "b.de.md") == folder / "b.de.md");
  CHECK(translations_of(folder / "a.md") ==
        std::vector<fs::path>{folder / "a.de.md", folder / "a.pt.md", folder / "a.pt_BR.md"});
  CHECK(translations_of(folder / "b.md").empty());
  CHECK(in_language(folder / "a.md", "de_AT") == folder / "a.de.md");
  CHECK(in_language(folder / "a.md", "pt_BR") == folder / "a.pt_BR.md");
  CHECK(in_language(folder / "a.md", "pt_PT") == folder / "a.pt.md");
  CHECK(in_language(folder / "a.md", "fr") == folder / "a.md");
  CHECK(in_language(folder / "a.md", "") == folder / "a.md");
  const Lesson lesson = read_lesson(folder / "a.pt_BR.md");
  CHECK(lesson.id == "a");
  CHECK(lesson.language == "pt_BR");
  CHECK(read_lesson(folder / "a.notes.md").id == "a.notes");
}

TEST_CASE("a translation may say all in other words, choices and their answer among them") {
  std::string german = original_text;
  for (const auto& [before, after] : std::vector<std::pair<std::string, std::string>>{
           {"title: Two", "title: Zwei"},
           {"words: a, b", "words: c"},
           {"## One\nIt has {tokens()} tokens.", "## Eins\nEs hat\n{tokens()} Tokens.\n\n> Mit Notiz."},
           {"ask: More?", "ask: Mehr?"},
           {"choices: more than {tokens()} | less | as many", "choices: mehr als {tokens()} | weniger | gleich viele"},
           {"\"less\" if tokens() > 20 else \"more than \" ~ tokens()",
            "\"weniger\" if tokens() > 20 else \"mehr als \" ~ tokens()"},
           {"because: Count.", "because: Zählen."},
           {"## Two\nNothing.", "## Zwei\nNichts."}})
    german = with(german, before, after);
  CHECK(faults(german).empty());
  // Exchanged, the choices give another answer.
  const auto exchanged = faults(with(german, "weniger | gleich viele", "gleich viele | weniger"));
  REQUIRE(exchanged.size() == 1);
  CHECK(exchanged[0].what.find("answer") != std::string::npos);
}

TEST_CASE("what a translation changes of scene, question, claim or steps is named by its line") {
  struct Case {
    const char *before, *after, *told;
    int line;
  };
  const Case cases[] = {
      {"head: 1.0", "head: 1.1", "step 1: expected head “1.0” as in line 12 of the lesson, found head “1.1”", 12},
      {"level: 2", "level: 3", "front matter: expected level “2” as in line 3 of the lesson, found level “3”", 3},
      {"text: Mr and Mrs Qu", "text: Mr", "found text “Mr”", 6},
      {"tokens() == 13\n", "tokens() == 14\n", "expected expect “tokens() == 13”", 22},
      {"tokens() < 20\n", "", "step 1: expected expect “tokens() < 20” as in line 23 of the lesson, found nothing more",
       9},
      {"tokens() > 20", "tokens() > 21", "answer", 18},
      {" | as many", "", "expected choices “3” as in line 17 of the lesson, found choices “2”", 17},
      {"```show\nhead: 1.0\n```\n", "", "expected block “show”", 12},
      {"## Two\nNothing.\n", "", "expected 2 steps, as the lesson has, found 1", 9}};
  for (const Case& each : cases) {
    CAPTURE(each.before);
    const auto found = faults(with(original_text, each.before, each.after));
    REQUIRE(found.size() == 1);
    CAPTURE(found[0].what);
    CHECK(found[0].what.find(each.told) != std::string::npos);
    CHECK(found[0].line == each.line);
  }
}

}  // namespace headscope::translation_test
