#include "core/metrics/cell_rule.h"

#include <doctest/doctest.h>

#include <functional>

namespace headscope::cell_rule_test {

namespace {

/// "the cat saw the dog": ids repeat with the words.
std::vector<Token> words() {
  std::vector<Token> tokens;
  for (const auto& [id, bytes] : {std::pair{1, "the"}, {2, " cat"}, {3, " saw"}, {4, " the"}, {5, " dog"}, {2, " cat"}})
    tokens.push_back({id, bytes, bytes});
  tokens.push_back({9, "", "<|end|>"});
  return tokens;
}

void check_all(const char* text, const std::function<bool(Index, Index)>& expected) {
  CAPTURE(text);
  const std::vector<Token> tokens = words();
  const CellRule rule(text);
  CHECK(rule.text() == text);
  for (Index q = 0; q < 7; ++q)
    for (Index k = 0; k < 7; ++k) {
      CAPTURE(q);
      CAPTURE(k);
      CHECK(rule.matches(tokens, q, k) == expected(q, k));
    }
}

}  // namespace

TEST_CASE("rules mean what they say, on every cell") {
  const std::vector<Token> t = words();
  const auto id = [&](Index i) { return t[static_cast<std::size_t>(i)].id; };
  const auto inside = [](Index i) { return i >= 0 && i < 7; };
  check_all("k == q - 1", [](Index q, Index k) { return k == q - 1; });
  check_all("k==q-1", [](Index q, Index k) { return k == q - 1; });
  check_all("q - k - 1 == 0", [](Index q, Index k) { return q - k - 1 == 0; });
  check_all("q - (k - 1) == 2", [](Index q, Index k) { return q - (k - 1) == 2; });
  check_all("0 < q - k <= 3", [](Index q, Index k) { return 0 < q - k && q - k <= 3; });
  check_all("k < 2 and q - k > 3 or k == q", [](Index q, Index k) { return (k < 2 && q - k > 3) || k == q; });
  check_all("k == q or k < 2 and q - k > 3", [](Index q, Index k) { return k == q || (k < 2 && q - k > 3); });
  check_all("not k == q and not (q < 3 or k > 4)", [](Index q, Index k) { return k != q && !(q < 3 || k > 4); });
  check_all("!(k == q) && k < 3 || q == 6", [](Index q, Index k) { return (k != q && k < 3) || q == 6; });
  check_all("(q - k) % 3 == 0", [](Index q, Index k) { return (q - k) % 3 == 0; });
  check_all("q * 2 + k / 2 >= n", [](Index q, Index k) { return q * 2 + k / 2 >= 7; });
  check_all("abs(q - k) == 2", [](Index q, Index k) { return q - k == 2 || k - q == 2; });
  check_all("-k + q != - - 1", [](Index q, Index k) { return q - k != 1; });
  check_all("q / k == 2", [](Index q, Index k) { return k != 0 && q / k == 2; });
  check_all("not q % k == 1", [](Index q, Index k) { return k == 0 || q % k != 1; });
  check_all("token[k] == token[q]", [&](Index q, Index k) { return id(k) == id(q); });
  check_all("token[k] != token[q]", [&](Index q, Index k) { return id(k) != id(q); });
  check_all("token[k-1] == token[q]", [&](Index q, Index k) { return inside(k - 1) && id(k - 1) == id(q); });
  check_all("token[k+1] != token[q]", [&](Index q, Index k) { return inside(k + 1) && id(k + 1) != id(q); });
  check_all("token[k] == \" the\"", [](Index, Index k) { return k == 3; });
  check_all("'␣cat' == token[q]", [](Index q, Index) { return q == 1 || q == 5; });
  check_all("token[k] != \"the\" and token[99] != \"the\"", [](Index, Index) { return false; });
  check_all("token[k] == \"<|end|>\"", [](Index, Index k) { return k == 6; });
  check_all("token[q - k] == token[0] and q >= k", [](Index q, Index k) { return q == k; });
  check_all("1000000 * 1000000 * 1000000 > 0", [](Index, Index) { return false; });  // no such number
}

TEST_CASE("a mistake in a rule is named with its place") {
  struct Wrong {
    const char* rule;
    std::size_t begin, end;
    const char* says;
  };
  for (const auto& [rule, begin, end, says] : {
           Wrong{"", 0, 0, "found nothing more"},
           Wrong{"k == ", 5, 5, "expected a number, q, k, n, token[…] or a text in quotes, found nothing more"},
           Wrong{"k = q", 2, 3, "expected == to compare"},
           Wrong{"k == q - 1 )", 11, 12, "found \")\""},
           Wrong{"(k == q", 7, 7, "expected a closing )"},
           Wrong{"token[k == token[q]", 8, 10, "expected a closing ]"},
           Wrong{"token == q", 6, 8, "expected [ after token"},
           Wrong{"k", 0, 1, "expected a condition, found a number"},
           Wrong{"k + 1", 0, 5, "expected a condition, found a number"},
           Wrong{"token[k]", 0, 8, "expected a condition, found a token"},
           Wrong{"token[k] == q", 12, 13, "expected a token to compare with a token, found a number"},
           Wrong{"q == \"the\"", 5, 10, "expected a number to compare with a number, found a token"},
           Wrong{"token[k] < token[q]", 9, 10, "expected == or != between tokens"},
           Wrong{"\"a\" == \"b\"", 7, 10, "expected token[…] on one side"},
           Wrong{"token[token[k]] == token[q]", 6, 14, "expected a number, found a token"},
           Wrong{"(k == q) + 1 == 2", 1, 7, "expected a number, found a condition"},
           Wrong{"(k == q) == (q == k)", 1, 7, "expected a number or a token to compare, found a condition"},
           Wrong{"k == q and 3", 11, 12, "expected a condition, found a number"},
           Wrong{"not 3", 4, 5, "expected a condition, found a number"},
           Wrong{"key == q", 0, 3, "found \"key\""},
           Wrong{"k == 1.5", 5, 7, "expected a whole number"},
           Wrong{"k == 99999999999999999999", 5, 25, "expected a number up to"},
           Wrong{"token[k] == \"the", 12, 16, "expected a closing \""},
           Wrong{"token[k] == \"\\x\"", 13, 15, "expected \\n, \\t"},
           Wrong{"k == q §", 7, 9, "found \"§\""},
           Wrong{"k == q q", 7, 8, "expected the end, or and, or, an operator"},
       }) {
    CAPTURE(rule);
    try {
      const CellRule parsed{rule};
      FAIL_CHECK("taken");
    } catch (const RuleError& error) {
      CHECK(error.begin == begin);
      CHECK(error.end == end);
      CHECK_MESSAGE(std::string(error.what()).find(says) != std::string::npos, error.what());
    }
  }
  CHECK_THROWS_WITH_AS(CellRule("token[k] == \"␣\" and k = 1"), doctest::Contains("at character 23"), RuleError);
}

TEST_CASE("rules that are too long or too deep are refused, not followed") {
  CHECK_THROWS_AS(CellRule(std::string(100'000, '(')), RuleError);
  CHECK_THROWS_AS(CellRule(std::string(5'000, '(') + "k"), RuleError);
  std::string nots;
  for (int i = 0; i < 2000; ++i) nots += "not ";
  CHECK_THROWS_AS(CellRule(nots + "k == q"), RuleError);
}

TEST_CASE("a rule that is too long says how long it is, at its beginning") {
  const std::string most = "k == q" + std::string(10'000 - 6, ' ');
  CHECK_NOTHROW(CellRule{most});
  try {
    const CellRule parsed{most + " "};
    FAIL_CHECK("taken");
  } catch (const RuleError& error) {
    CHECK(error.begin == 0);
    CHECK(error.end == 0);
    CHECK(error.where.find("k == q") != std::string::npos);
    CHECK(std::string(error.what()).find("at most 10000 characters, found 10001") != std::string::npos);
  }
}

}  // namespace headscope::cell_rule_test
