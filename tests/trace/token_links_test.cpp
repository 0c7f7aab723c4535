#include "core/trace/token_links.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/base/random.h"

namespace headscope::token_links_test {

namespace {
std::vector<std::int32_t> row(const TokenLinks::List& list, int i) {
  const auto span = list.row(i);
  return {span.begin(), span.end()};
}
using Keys = std::vector<std::int32_t>;
}  // namespace

TEST_CASE("links of a short text are what the definition says, by hand") {
  // position  0 1 2 3 4 5
  // token     7 8 7 7 9 8
  const TokenLinks links = TokenLinks::of(Keys{7, 8, 7, 7, 9, 8});
  REQUIRE(links.duplicate.rows() == 6);
  CHECK(row(links.duplicate, 0) == Keys{});
  CHECK(row(links.duplicate, 1) == Keys{});
  CHECK(row(links.duplicate, 2) == Keys{0});
  CHECK(row(links.duplicate, 3) == Keys{0, 2});
  CHECK(row(links.duplicate, 4) == Keys{});
  CHECK(row(links.duplicate, 5) == Keys{1});
  CHECK(row(links.induction, 2) == Keys{1});
  CHECK(row(links.induction, 3) == Keys{1, 3});  // the key after position 2 is the query itself
  CHECK(row(links.induction, 5) == Keys{2});
  CHECK(TokenLinks::of(Keys{}).duplicate.rows() == 0);
}

TEST_CASE("links of random texts agree with a search over all pairs") {
  Random random(5);
  for (int n = 1; n <= 60; ++n) {
    Keys tokens;
    for (int i = 0; i < n; ++i) tokens.push_back(static_cast<std::int32_t>(random.below(7)) - 3);
    const TokenLinks links = TokenLinks::of(tokens);
    for (int i = 0; i < n; ++i) {
      Keys duplicate, induction;
      for (int j = 0; j < i; ++j)
        if (tokens[static_cast<std::size_t>(j)] == tokens[static_cast<std::size_t>(i)]) {
          duplicate.push_back(j);
          induction.push_back(j + 1);
        }
      REQUIRE(row(links.duplicate, i) == duplicate);
      REQUIRE(row(links.induction, i) == induction);
    }
  }
}

TEST_CASE("one token repeated a million times takes memory for a million links, not half a trillion") {
  const TokenLinks links = TokenLinks::of(Keys(1000000, 42));
  CHECK(links.duplicate.keys.size() == 1000000);
  CHECK(links.duplicate.row(999999).size() == 999999);
  CHECK(links.induction.row(999999).back() == 999999);
}

}  // namespace headscope::token_links_test
