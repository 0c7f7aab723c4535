// Every bundled lesson is true of its models; and what the command says of one that is not.

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "tests/support/variable.h"

namespace headscope::lesson_cli_test {

using namespace testing;

TEST_CASE("every step of every bundled lesson opens, and every claim is true") {
  const Finished checked = run_cli({"lesson", "check"});
  CHECK_MESSAGE(checked.code == 0, checked.out);
  CHECK(checked.out.ends_with("lessons are good\n"));
  const auto all = nlohmann::json::parse(run_cli({"lesson", "list", "--json"}).out).at("lessons");
  CHECK(all.size() >= 24);
  for (const auto& each : all) {
    CHECK(each.at("minutes").get<int>() >= 5);
    CHECK(each.at("minutes").get<int>() <= 12);
    CHECK(each.at("steps").get<int>() >= 3);
  }
}

TEST_CASE("the list says how long a lesson takes only where the lesson says it") {
  const auto data = scratch_dir("lesson-list");
  std::filesystem::create_directories(data / "headscope/lessons");
  write_file_atomically(data / "headscope/lessons/scenes.md", "---\ntitle: Scenes\n---\n## One\nProse.\n");
  const testing::Variable own("XDG_DATA_HOME", data.string());
  const auto all = nlohmann::json::parse(run_cli({"lesson", "list", "--json"}).out).at("lessons");
  const auto scenes = std::ranges::find_if(all, [](const auto& each) { return each.at("title") == "Scenes"; });
  REQUIRE(scenes != all.end());
  CHECK(scenes->at("minutes").is_null());
}

TEST_CASE("a claim that is not true is named, and ends with 1") {
  const auto file = scratch_dir("lesson") / "wrong.md";
  write_file_atomically(file,
                        "---\ntitle: Wrong\nmodel: induction\ntext: Mr and Mrs Qu\n---\n## One\nIt has {tokens()} "
                        "tokens.\n```expect\ntokens() == 13\ntokens() == 14\n```\n");
  const Finished checked = run_cli({"lesson", "check", file.string()});
  CHECK(checked.code == 1);
  CHECK(checked.out.find("line 10") != std::string::npos);
  CHECK(checked.out.find("tokens() == 14") != std::string::npos);
  CHECK(checked.out.find("0 of 1 steps in 1 lessons are good") != std::string::npos);
  const Finished shown = run_cli({"lesson", "show", file.string()});
  CHECK(shown.code == 0);
  CHECK(shown.out.find("It has 13 tokens.") != std::string::npos);
  const Finished none = run_cli({"lesson", "check", "no-such-lesson", file.string()});  // one does not keep from others
  CHECK(none.code == 1);
  CHECK(none.out.find("no-such-lesson") != std::string::npos);
  CHECK(none.out.find("0 of 1 steps in 1 lessons are good") != std::string::npos);
}

TEST_CASE("notes of who presents it are told only where they are asked for; a formula in one is checked") {
  const auto folder = scratch_dir("notes");
  const std::string file = folder / "notes.md", page = folder / "page.html";
  const std::string text =
      "---\ntitle: Notes\nmodel: induction\ntext: Mr and Mrs Qu\n---\n## One\nProse.\n> Say *{tokens()}* aloud.\n## "
      "Bare\n"
      "```show\nhead: 1.0\n```\n";
  write_file_atomically(file, text);
  CHECK(run_cli({"lesson", "check", file}).code == 0);
  CHECK(run_cli({"lesson", "show", file}).out.find("aloud") == std::string::npos);
  CHECK(run_cli({"lesson", "show", file, "--notes"}).out.find("> Say *13* aloud.") != std::string::npos);
  REQUIRE(run_cli({"lesson", "export", file, "-o", page}).code == 0);
  const std::string plain = read_file(page);
  CHECK(plain.find("aloud") == std::string::npos);
  CHECK(plain.find("2. Bare") != std::string::npos);  // a scene without words has its picture
  CHECK(plain.find("<img", plain.find("2. Bare")) != std::string::npos);
  REQUIRE(run_cli({"lesson", "export", file, "-o", page, "--notes"}).code == 0);
  CHECK(read_file(page).find("<p class=\"note\">Say <em>13</em> aloud.</p>") != std::string::npos);
  std::string wrong = text;
  wrong.replace(wrong.find("tokens()"), 8, "nothing()");
  write_file_atomically(file, wrong);
  CHECK(run_cli({"lesson", "check", file}).code == 1);
}

TEST_CASE("a lesson is shown, listed and checked in another language; what a translation changes is named") {
  const testing::Variable all("LC_ALL", "C");
  const Finished german = run_cli({"lesson", "show", "01-who-is-she", "--language", "de", "--answers"});
  CHECK(german.code == 0);
  CHECK(german.out.starts_with("Welches Wort sieht „she“ an?\n"));
  CHECK(german.out.find("Answer: Anna, position 10. Sein Gewicht ist 0.9") != std::string::npos);
  CHECK(run_cli({"lesson", "show", "01-who-is-she"}).out.starts_with("Which word does"));
  {
    const testing::Variable messages("LC_ALL", "de_AT.UTF-8");
    CHECK(run_cli({"lesson", "show", "01-who-is-she"}).out.starts_with("Welches Wort"));
    CHECK(run_cli({"lesson", "show", "01-who-is-she", "--language", "en"}).out.starts_with("Which word"));
  }
  const Finished none = run_cli({"lesson", "show", "01-who-is-she", "--language", "fr"});
  CHECK(none.out.starts_with("Which word"));
  CHECK(none.err.find("01-who-is-she is not translated to fr") != std::string::npos);
  CHECK(run_cli({"lesson", "show", "01-who-is-she", "--language", "German"}).code == 2);
  const auto listed =
      nlohmann::json::parse(run_cli({"lesson", "list", "--json", "--language", "de"}).out).at("lessons");
  CHECK(listed.at(0).at("languages") == "en de zh");
  CHECK(listed.at(0).at("title") == "Welches Wort sieht „she“ an?");
  CHECK(listed.at(30).at("languages") == "en de");
  CHECK(listed.size() == nlohmann::json::parse(run_cli({"lesson", "list", "--json"}).out).at("lessons").size());
  // One lesson in three languages, and in one.
  CHECK(run_cli({"lesson", "check", "01-who-is-she"}).out == "12 of 12 steps in 3 lessons are good\n");
  CHECK(run_cli({"lesson", "check", "01-who-is-she", "--language", "zh"}).out ==
        "4 of 4 steps in 1 lessons are good\n");
  CHECK(run_cli({"lesson", "check", "01-who-is-she", "--language", "en_GB"}).out ==
        "4 of 4 steps in 1 lessons are good\n");
  const Finished untranslated = run_cli({"lesson", "check", "01-who-is-she", "--language", "fr"});
  CHECK(untranslated.code == 1);
  CHECK(untranslated.err.find("expected a translation to fr, found en, de, zh") != std::string::npos);
  CHECK(run_cli({"lesson", "check", "--language", "fr"}).out == "0 of 0 steps in 0 lessons are good\n");
  // A list says nothing of what is not translated; what scripts read does not follow the system.
  CHECK(run_cli({"lesson", "list", "--language", "fr"}).err.empty());
  {
    const testing::Variable system("LC_ALL", "de_AT.UTF-8");
    const auto title = [](const Finished& run) {
      return nlohmann::json::parse(run.out).at("lessons").at(0).at("title").get<std::string>();
    };
    CHECK(title(run_cli({"lesson", "list", "--json"})).starts_with("Which word"));
    CHECK(title(run_cli({"lesson", "list", "--json", "--language", "de"})).starts_with("Welches Wort"));
    CHECK(run_cli({"lesson", "list"}).out.find("Welches Wort") != std::string::npos);
  }
  const auto folder = scratch_dir("lesson-language");
  const std::string text =
      "---\ntitle: One\nmodel: induction\ntext: Mr and Mrs Qu\n---\n## One\nProse.\n```expect\n"
      "tokens() == 13\n```\n";
  std::string other = text;
  other.replace(other.find("== 13"), 5, "> 12");
  write_file_atomically(folder / "x.md", text);
  write_file_atomically(folder / "x.de.md", other);
  const Finished checked = run_cli({"lesson", "check", (folder / "x.md").string()});
  CHECK(checked.code == 1);
  CHECK(checked.out.find("x.de.md, line 9: step 1: expected expect “tokens() == 13”") != std::string::npos);
  CHECK(checked.out.find("2 of 2 steps in 2 lessons are good") != std::string::npos);
  const auto page = folder / "page.html";
  REQUIRE(run_cli({"lesson", "export", "01-who-is-she", "-o", page.string(), "--language", "de"}).code == 0);
  CHECK(read_file(page).find("Kommt es darauf an?") != std::string::npos);
  CHECK(read_file(page).find("<html lang=\"de\">") != std::string::npos);
}

TEST_CASE("a handout holds prose, a picture of each step and, where asked for, the answers") {
  const auto folder = scratch_dir("handout");
  const std::string plain = (folder / "a.html").string(), told = (folder / "b.html").string();
  REQUIRE(run_cli({"lesson", "export", "01-who-is-she", "-o", plain}).code == 0);
  REQUIRE(run_cli({"lesson", "export", "who-is-she", "-o", told, "--answers"}).code == 0);
  const std::string page = read_file(plain), answers = read_file(told);
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  const auto steps = nlohmann::json::parse(run_cli({"lesson", "list", "--json"}).out).at("lessons").at(0).at("steps");
  CHECK(count(page, "<section>") == steps.get<int>());
  CHECK(count(page, "data:image/svg+xml") == steps.get<int>());
  CHECK(count(page, "</section>") == steps.get<int>());
  CHECK(count(page, "class=\"answer\"") == 0);
  CHECK(count(answers, "class=\"answer\"") == count(answers, "class=\"question\""));
  CHECK(answers.find("Anna, position 10") != std::string::npos);
  CHECK(page.find("“pies”") != std::string::npos);
  CHECK(page.find("<html lang=\"en\">") != std::string::npos);
  CHECK(run_cli({"lesson", "export", "01-who-is-she", "-o", "x.odt"}).code == 2);
  CHECK(run_cli({"lesson", "export", "01-who-is-she", "-o", "x.html", "--paper", "a4"}).code == 2);
}

TEST_CASE(
    "a handout as PDF has a page for each step of the first lesson, its pictures as vectors, the same bytes again") {
  const auto folder = scratch_dir("handout-pdf");
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
  };
  const auto exported = [&](const std::vector<std::string>& more, const std::string& name = "a.pdf") {
    std::vector<std::string> words{"lesson", "export", "01-who-is-she", "-o", (folder / name).string()};
    words.insert(words.end(), more.begin(), more.end());
    const Finished done = run_cli(words);
    CAPTURE(done.err);
    REQUIRE(done.code == 0);
    return read_file(folder / name);
  };
  const std::string plain = exported({}), told = exported({"--answers", "--notes"});
  CHECK(plain.starts_with("%PDF-1.4"));
  CHECK(count(plain, "/Type /Page %") == 4);
  CHECK(count(told, "/Type /Page %") == 4);
  CHECK(count(plain, "/Subtype /Image") == 0);
  CHECK(count(plain, "(1. A model that has to look back)") == 1);  // in the list of contents
  CHECK(plain != told);
  CHECK(exported({}) == plain);
  CHECK(plain.find("/MediaBox [ 0 0 595.275591 841.889764 ]") != std::string::npos);
  CHECK(exported({"--paper", "letter"}).find("/MediaBox [ 0 0 612 792 ]") != std::string::npos);
  CHECK(run_cli({"lesson", "export", "01-who-is-she", "-o", "x.pdf", "--paper", "a3"}).code == 2);
  const Finished nowhere = run_cli({"lesson", "export", "01-who-is-she", "-o", (folder / "no" / "a.pdf").string()});
  CHECK(nowhere.code == 1);
  CHECK(nowhere.first_error().find("a.pdf") != std::string::npos);
}

TEST_CASE("bundled lessons become handouts of at least a page for two steps") {
  const auto folder = scratch_dir("handouts");
  const auto all = nlohmann::json::parse(run_cli({"lesson", "list", "--json"}).out).at("lessons");
  for (std::size_t i = 2; i < all.size(); i += 4) {  // all of them take 20 s
    const auto& each = all.at(i);
    const auto id = each.at("lesson").get<std::string>();
    CAPTURE(id);
    const std::string file = (folder / (id + ".pdf")).string();
    const Finished done = run_cli({"lesson", "export", id, "-o", file, "--answers", "--notes"});
    CAPTURE(done.err);
    REQUIRE(done.code == 0);
    const std::string pdf = read_file(file);
    int pages = 0;
    for (auto at = pdf.find("/Type /Page %"); at != std::string::npos; at = pdf.find("/Type /Page %", at + 1)) ++pages;
    CHECK(2 * pages >= each.at("steps").get<int>());
  }
}

TEST_CASE("the terms that formulas may use are listed with what they mean") {
  const Finished terms = run_cli({"lesson", "terms"});
  CHECK(terms.code == 0);
  CHECK(terms.out.find("weight(head, row, key)") != std::string::npos);
}

}  // namespace headscope::lesson_cli_test
