#include "core/trace/token_search.h"

#include <doctest/doctest.h>

namespace headscope::token_search_test {

namespace {

std::vector<Token> tokens(const std::vector<std::string>& texts) {
  std::vector<Token> out;
  for (const std::string& text : texts) {
    Token token;
    token.bytes = text;
    token.label = text;
    out.push_back(token);
  }
  return out;
}
using Places = std::vector<Index>;

}  // namespace

TEST_CASE("a word that is cut into tokens is found where it begins") {
  const auto text = tokens({"In", " Zo", "zi", "ford", " she", " sold", " Zoz", "iford", " pies"});
  CHECK(find_tokens(text, "Zoziford") == Places{1, 6});
  CHECK(find_tokens(text, "zoziford") == Places{1, 6});
  CHECK(find_tokens(text, "ford sh") == Places{3});
  CHECK(find_tokens(text, "o") == Places{1, 3, 5, 6, 7});
  CHECK(find_tokens(text, "s") == Places{4, 5, 8});
  CHECK(find_tokens(text, "").empty());
  CHECK(find_tokens(text, "Ben").empty());
  CHECK(find_tokens({}, "Ben").empty());
}

TEST_CASE("occurrences may overlap, and each token is told once; special tokens go by their name") {
  CHECK(find_tokens(tokens({"aa", "a", "aaa"}), "aa") == Places{0, 1, 2});
  auto text = tokens({"", "Grüße", " grüße"});
  text[0].label = "<s>";
  CHECK(find_tokens(text, "<s>") == Places{0});
  CHECK(find_tokens(text, "GRüßE") == Places{1, 2});  // ASCII letters alone match in either case
  CHECK(find_tokens(text, "ße g") == Places{1});
}

}  // namespace headscope::token_search_test
