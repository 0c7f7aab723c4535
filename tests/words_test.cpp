// assets/words/en.json holds exactly the texts that the source marks, so that whoever translates it translates all of
// the window. HEADSCOPE_WRITE_WORDS=1 in the environment writes it anew.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "app/actions/action.h"
#include "core/base/file.h"
#include "core/base/words.h"
#include "tests/support/marked_texts.h"
#include "tests/support/paths.h"

namespace headscope::words_table_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {
const std::string how_to_write =
    "\n  write it anew: HEADSCOPE_WRITE_WORDS=1 build/release/tests/headscope-tests "
    "--source-file='*tests/words_test.cpp'";

std::vector<std::string> texts_in(std::string_view source) {
  std::vector<std::string> faults, out;
  for (const MarkedText& each : marked_texts(source, faults)) out.push_back(each.text);
  CHECK(faults.empty());
  return out;
}
}  // namespace

TEST_CASE("marked texts are read as a compiler reads them") {
  using Texts = std::vector<std::string>;
  CHECK(texts_in(R"cpp(x = said("one");)cpp") == Texts{"one"});
  CHECK(texts_in(R"cpp(say("{} of {}", 1, f("no")) + to_say("two"))cpp") == Texts{"{} of {}", "two"});
  CHECK(texts_in("said(\"a \"\n  // \"not this\"\n  \"b \" /* \"nor this\" */ \"c\")") == Texts{"a b c"});
  CHECK(texts_in(R"cpp(said(
                           "tab\t, quote \", slash \\, \u03c4\x41\101, a\
b"))cpp") == Texts{"tab\t, quote \", slash \\, τAA, ab"});
  CHECK(texts_in("said(R\"(raw \\n \"text\")\") say(R\"x(a )\" b)x\", 1)") == Texts{"raw \\n \"text\"", "a )\" b"});
  CHECK(texts_in(R"cpp("said(\"in a text\")" '"' said("out") 1'000 said("behind"))cpp") == Texts{"out", "behind"});
  // No marks: a variable, a declaration, a member, another name, a comment.
  CHECK(texts_in("said(text) const char* said(const char* english); console.say(\"a\"); c->say(\"b\"); essay(\"c\") "
                 "// said(\"d\")\n say(x, \"e\")")
            .empty());
  CHECK(texts_in("headscope::say(\"a\")") == Texts{"a"});
  std::vector<std::string> faults;
  CHECK(marked_texts("\nsaid(\"a\" + b); to_say(\"c\", d)", faults).empty());
  REQUIRE(faults.size() == 2);
  CHECK(faults[0] == "line 2: said(\"a\" …): expected literals alone, found another operand");
  CHECK(faults[1] == "line 2: to_say(\"c\" …): expected literals alone, found another operand");
}

TEST_CASE("the English table holds exactly what the source marks, each said by itself") {
  const fs::path file = source_dir() / "assets/words/en.json";
  std::vector<std::string> faults;
  const auto marked = marked_texts_of(source_dir(), faults);
  for (const std::string& each : faults) FAIL_CHECK(each);
  CHECK(marked.size() > 300);
  if (const char* write = std::getenv("HEADSCOPE_WRITE_WORDS"); write && *write) {
    nlohmann::ordered_json table = nlohmann::ordered_json::object();
    for (const auto& [text, place] : marked) table[text] = text;
    fs::create_directories(file.parent_path());
    write_file_atomically(file, table.dump(2) + "\n");
    MESSAGE("written: " << file.string() << ", " << marked.size() << " texts");
  }
  REQUIRE_MESSAGE(fs::exists(file), file.string() << how_to_write);
  const auto table = nlohmann::json::parse(read_file(file)).get<std::map<std::string, std::string>>();
  for (const auto& [text, place] : marked) {
    CHECK_MESSAGE(!text.empty(), place << ": a text to say is empty");
    CHECK_MESSAGE(table.contains(text), place << ": “" << text << "” is not in " << file.string() << how_to_write);
  }
  for (const auto& [english, text] : table) {
    CHECK_MESSAGE(marked.contains(english), file.string()
                                                << ": “" << english << "” is nowhere in the source" << how_to_write);
    CHECK_MESSAGE(english == text, file.string() << ": “" << english << "” is said otherwise" << how_to_write);
  }
  const WordTable words = WordTable::read(file);
  CHECK(words.refused().empty());
  CHECK(words.entries().size() == table.size());
}

TEST_CASE("tables of other languages say texts that the window has, with their fields") {
  const auto english = nlohmann::json::parse(read_file(source_dir() / "assets/words/en.json"));
  int tables = 0;
  for (const fs::directory_entry& each : fs::directory_iterator(source_dir() / "assets/words")) {
    if (each.path().filename() == "en.json") continue;
    ++tables;
    const WordTable words = WordTable::read(each.path());
    for (const auto& refused : words.refused()) FAIL_CHECK(each.path().string() << ": “" << refused.english << "”");
    for (const auto& [text, other] : words.entries())
      CHECK_MESSAGE(english.contains(text), each.path().string() << ": “" << text << "” is nowhere in the window");
  }
  CHECK(tables == 1);
}

TEST_CASE("every action is of a group that the table knows") {
  for (const Action& action : actions())
    CHECK_MESSAGE(std::ranges::count(action_groups, action.group) == 1, action.id << ": " << action.group);
}

}  // namespace headscope::words_table_test
