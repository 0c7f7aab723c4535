#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/lesson/glossary.h"

namespace headscope::glossary_test {

TEST_CASE("entries of the glossary are read; an empty line ends one, a comment says nothing") {
  const auto all = parse_glossary(
      "\xEF\xBB\xBF# words\n\nterm: query\r\nwords: Q, W_Q\r\ntext: What a token asks.\n  It goes on.\nformula: q = x "
      "W_Q\nlesson: "
      "03\npage: mechanisms/softmax\n\n\n# more\nterm: key\ntext: What it is compared with.\n",
      "g.txt");
  REQUIRE(all.size() == 2);
  CHECK(all[0].term == "query");
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

}  // namespace headscope::glossary_test
