#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/lesson/glossary.h"
#include "core/lesson/translation.h"
#include "tests/support/paths.h"

namespace headscope::glossary_test {

namespace {
const std::string english_text =
    "term: key\nwords: K, W_K\ntext: What it is compared with.\nformula: size = 2 · k · n\nlesson: 03\npage: a/b\n\n"
    "term: query\ntext: What it asks.\n\nterm: RoPE\ntext: Turns.\n";

std::vector<std::string> faults(const std::string& translation) {
  return glossary_faults(parse_glossary(english_text, "g.txt"), parse_glossary(translation, "g.xx.txt"));
}
}  // namespace

TEST_CASE("entries of the glossary are read; an empty line ends one, a comment says nothing") {
  const auto all = parse_glossary(
      "\xEF\xBB\xBF# words\n\nterm: query\r\nwords: Q, W_Q\r\ntext: What a token asks.\n  It goes on.\nformula: q = x "
      "W_Q\nlesson: "
      "03\npage: mechanisms/softmax\n\n\n# more\nterm: key\ntext: What it is compared with.\n",
      "g.txt");
  REQUIRE(all.size() == 2);
  CHECK(all[0].term == "query");
  CHECK(all[0].title == "query");
  CHECK(all[0].words == std::vector<std::string>{"Q", "W_Q"});
  CHECK(all[0].text == "What a token asks. It goes on.");
  CHECK(all[0].formula == "q = x W_Q");
  CHECK(all[0].lesson == "03");
  CHECK(all[0].page == "mechanisms/softmax");
  CHECK(all[1].term == "key");
  CHECK(all[1].lesson == "");
  CHECK(parse_glossary("", "g.txt").empty());
}

TEST_CASE("what is no glossary is refused, with the line") {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      parse_glossary(text, "g.txt");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal("term: a\ntext: b\n\nterm: c\n").find("g.txt, line 4") != std::string::npos);
  CHECK(refusal("term: a\ntext: b\n\nterm: a\ntext: c\n").find("every term once") != std::string::npos);
  CHECK(refusal("term: a\ntexts: b\n").find("text") != std::string::npos);
  CHECK(refusal("term: a\ntext b\n").find("g.txt, line 2") != std::string::npos);
}

TEST_CASE("a translation says titles, words and texts; lesson, page and English words stay") {
  const auto all = translated_glossary(
      parse_glossary(english_text, "g.txt"),
      parse_glossary("term: RoPE\ntext: Dreht.\n\nterm: key\ntitle: Schlüssel\nwords: K, Adresse\ntext: Womit es "
                     "verglichen wird.\nformula: Größe = 2 · k · n\n",
                     "g.de.txt"));
  REQUIRE(all.size() == 3);
  CHECK(all[0].title == "RoPE");  // in the order of the translation
  CHECK(all[0].text == "Dreht.");
  CHECK(all[1].term == "key");
  CHECK(all[1].title == "Schlüssel");
  CHECK(all[1].words == std::vector<std::string>{"K", "Adresse", "key", "W_K"});
  CHECK(all[1].text == "Womit es verglichen wird.");
  CHECK(all[1].formula == "Größe = 2 · k · n");
  CHECK(all[1].lesson == "03");
  CHECK(all[1].page == "a/b");
  CHECK(all[2].term == "query");  // what is not translated comes last, in English
  CHECK(all[2].text == "What it asks.");
}

TEST_CASE("what a translation of the glossary may not change is named") {
  const std::string rest = "term: query\ntext: a\n\nterm: RoPE\ntext: b\n";
  CHECK(faults("term: key\ntext: c\nformula: Größe = 2 · k · n\n\n" + rest).empty());
  CHECK(faults(rest) == std::vector<std::string>{"“key” is not translated"});
  CHECK(faults("term: key\ntext: c\n\nterm: kye\ntext: c\n\n" + rest) ==
        std::vector<std::string>{"“kye” is no term of the glossary"});
  CHECK(faults("term: key\ntext: c\npage: a/b\n\n" + rest) ==
        std::vector<std::string>{"“key”: its lesson and page are those of the glossary"});
  CHECK(faults("term: key\ntext: c\nformula: Größe = 3 · k · n\n\n" + rest) ==
        std::vector<std::string>{"“key”: expected the formula “size = 2 · k · n”, found “Größe = 3 · k · n”"});
  CHECK(faults("term: key\ntext: c\nformula: Größe = 2 × k · n\n\n" + rest).size() == 1);  // no umlaut
  CHECK(faults("term: key\ntext: c\n\nterm: query\ntext: a\nformula: x\n\nterm: RoPE\ntext: b\n").size() == 1);
}

TEST_CASE("every bundled translation has the glossary's terms and formulas") {
  const auto assets = testing::source_dir() / "assets";
  const auto original = parse_glossary(read_file(assets / "glossary.txt", 1 << 20), "glossary.txt");
  int translations = 0;
  for (const auto& each : std::filesystem::directory_iterator(assets)) {
    const std::string name = each.path().filename().string();
    if (!name.starts_with("glossary.") || name == "glossary.txt") continue;
    CAPTURE(name);
    ++translations;
    const auto translation = parse_glossary(read_file(each.path(), 1 << 20), name);
    for (const std::string& fault : glossary_faults(original, translation)) FAIL_CHECK(fault);
    for (const GlossaryEntry& entry : translation) CHECK_MESSAGE(entry.text.size() < 500, entry.term);
    CHECK(translated_glossary(original, translation).size() == original.size());
  }
  CHECK(translations > 0);
  CHECK(in_language(assets / "glossary.txt", "de_AT") == assets / "glossary.de.txt");
}

}  // namespace headscope::glossary_test
