// Metrics and classes of encoders (Clark et al., What Does BERT Look At?, 2019): next token, separators, punctuation,
// broad attention.

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/metrics/head_class.h"
#include "core/trace/trace.h"
#include "tests/metrics/classes.h"
#include "tests/metrics/maps.h"

namespace headscope::text_marks_test {

using namespace testing;
using doctest::Approx;

namespace {
Token token(std::int32_t id, const std::string& label, const std::string& bytes) {
  Token out;
  out.id = id, out.label = label, out.bytes = bytes;
  return out;
}
/// [CLS] the cat sat . [SEP] no , no . [SEP]
std::vector<Token> two_sentences() {
  return {token(1, "[CLS]", ""), token(2, "the", "the"), token(3, "cat", "cat"), token(4, "sat", "sat"),
          token(5, ".", "."),    token(6, "[SEP]", ""),  token(7, "no", "no"),   token(8, ",", ","),
          token(7, "no", "no"),  token(5, ".", "."),     token(6, "[SEP]", "")};
}
constexpr Index n = 11;

/// A head that gives `share` of every row to `keys`, evenly, and spreads the rest evenly over all that are seen.
template <class KeysOf>
Head head_on(const std::vector<Token>& tokens, double share, std::shared_ptr<const AttentionRule> rule,
             KeysOf&& keys_of) {
  const auto size = static_cast<Index>(tokens.size());
  Tensor weights = Tensor::zeros({size, size});
  const bool causal = rule->describe() == causal_rule()->describe();
  for (Index q = 0; q < size; ++q) {
    const Index seen = causal ? q + 1 : size;
    std::vector<Index> keys;
    for (const Index k : keys_of(q))
      if (k < seen) keys.push_back(k);
    const double rest = keys.empty() ? 1 : 1 - share;
    for (Index k = 0; k < seen; ++k) weights.ref(q, k) = static_cast<float>(rest / static_cast<double>(seen));
    for (const Index k : keys) weights.ref(q, k) += static_cast<float>(share / static_cast<double>(keys.size()));
  }
  return head_of_text(weights, tokens, std::move(rule));
}

std::string first_class(const Head& head) {
  const auto verdicts = classes_of(head.input(), default_class_rules()).met;
  return verdicts.empty() ? "" : verdicts.front().rule->id;
}
}  // namespace

TEST_CASE("a separator is told by its name, punctuation by its characters, marks of word pieces apart") {
  for (const char* name : {"[SEP]", "</s>", "<|endoftext|>", "<eos>"}) CHECK(is_separator(token(0, name, "")));
  for (const char* name : {"[CLS]", "[MASK]", "SEP", "<s>", "."}) CHECK_FALSE(is_separator(token(0, name, "")));
  for (const char* bytes : {".", " ,", "...", "—", "。", "«", "?!"}) CHECK(is_punctuation(token(0, "", bytes)));
  for (const char* label : {"Ġ,", "▁.", "##.", "␣;", "##"}) CHECK(is_punctuation(token(0, label, "")));
  for (const char* bytes : {"a", " ", "a.", "3", "$", "\xe2\x80", ".\xff", ""})
    CHECK_FALSE(is_punctuation(token(0, "", bytes)));
  CHECK_FALSE(is_punctuation(token(0, "[SEP]", "")));
  const TokenLinks links = TokenLinks::of(two_sentences());
  CHECK(links.separators == std::vector<std::int32_t>{5, 10});
  CHECK(links.punctuation == std::vector<std::int32_t>{4, 7, 9});
  CHECK(links.duplicate.row(9).size() == 1);
}

TEST_CASE("mass on separators and punctuation, by hand, in both directions and one") {
  const auto on_separators = [](Index) { return std::vector<Index>{5, 10}; };
  const Head both = head_on(two_sentences(), 0.78, full_rule(), on_separators);
  CHECK(both.value("separator") == Approx(0.78 + 0.22 * 2 / n));
  CHECK(both.chance("separator") == Approx(2.0 / n));
  CHECK(both.value("punctuation") == Approx(0.22 * 3 / n));
  CHECK(both.chance("punctuation") == Approx(3.0 / n));
  // A decoder's query 0 … 4 sees no separator: they do not count. Those after see one, the last two.
  const Head one = head_on(two_sentences(), 0.5, causal_rule(), on_separators);
  double value = 0, chance = 0;
  for (int q = 5; q < n; ++q) {
    const double share = (q == n - 1 ? 2.0 : 1.0) / (q + 1);
    value += 0.5 + 0.5 * share;
    chance += share;
  }
  CHECK(one.value("separator") == Approx(value / 6));
  CHECK(one.chance("separator") == Approx(chance / 6));
  CHECK(std::isnan(one.value("next_token")));
  CHECK(std::isnan(one.chance("next_token")));
  // Numbers alone do not say what is a separator.
  const Head numbers = head_of(rows_of({{0.5f, 0.5f}, {0.5f, 0.5f}}), {6, 6}, full_rule());
  CHECK(std::isnan(numbers.value("separator")));
  CHECK(std::isnan(numbers.value("punctuation")));
}

TEST_CASE("heads of an encoder get their class: next token, separator, punctuation, broad") {
  const std::vector<Token> tokens = two_sentences();
  const auto planted = [&](double share, auto keys_of) { return head_on(tokens, share, full_rule(), keys_of); };
  using Keys = std::vector<Index>;
  CHECK(first_class(planted(0.9, [](Index q) { return q + 1 < n ? Keys{q + 1} : Keys{}; })) == "next_token");
  CHECK(first_class(planted(0.9, [](Index) { return Keys{5, 10}; })) == "separator");
  CHECK(first_class(planted(0.9, [](Index) { return Keys{4, 7, 9}; })) == "punctuation");
  CHECK(first_class(planted(0.9, [](Index) { return Keys{0}; })) == "sink");
  CHECK(first_class(planted(0.0, [](Index) { return Keys{0}; })) == "uniform");
  CHECK(first_class(planted(0.5, [](Index) { return Keys{1, 2, 3, 6, 8}; })) == "broad");
  // Evidence lies on the cells of the class.
  const auto verdicts = classes_of(planted(0.9,
                                           [](Index) {
                                             return Keys{4, 7, 9};
                                           })
                                       .input(),
                                   default_class_rules())
                            .met;
  REQUIRE_FALSE(verdicts.empty());
  CHECK(verdicts.front().rows == n);
  for (const Evidence& cell : verdicts.front().evidence) CHECK((cell.key == 4 || cell.key == 7 || cell.key == 9));
}

TEST_CASE("a class ends where its rule says `below`, and only there") {
  const auto rules = parse_class_rules(R"({"classes": [{"id": "b", "title": "b", "metric": "sink", "at_least": 0.3,
      "below": 0.6, "times_chance": 0, "p_at_most": 1, "color": "#000000"}]})",
                                       "rules.json");
  for (const auto& [share, met] : {std::pair{0.2, false}, {0.4, true}, {0.7, false}}) {
    const Head head = head_on(two_sentences(), share, full_rule(), [](Index) { return std::vector<Index>{0}; });
    CHECK(classes_of(head.input(), rules).met.empty() == !met);
    CHECK((class_margin(rules.front(), share, 0.1) >= 1) == met);
  }
  CHECK_THROWS(parse_class_rules(R"({"classes": [{"id": "b", "title": "b", "metric": "sink", "at_least": 0.5,
      "below": 0.4, "color": "#000000"}]})",
                                 "rules.json"));
}

}  // namespace headscope::text_marks_test
