#include "core/trace/words.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/attention/masks.h"
#include "core/base/error.h"
#include "core/base/utf8.h"
#include "core/metrics/metric.h"
#include "tests/support/random_tensor.h"

namespace headscope::words_test {

namespace {

std::vector<Token> tokens_of(const std::vector<std::string>& pieces) {
  std::vector<Token> tokens;
  int at = 0;
  for (const std::string& piece : pieces) {
    Token token;
    token.id = static_cast<std::int32_t>(tokens.size());
    token.bytes = piece;
    token.label = piece.empty() ? "<end>" : visible_label(piece);
    token.begin = at;
    token.end = at += static_cast<int>(piece.size());
    tokens.push_back(token);
  }
  return tokens;
}

/// The pieces of every word joined by "·", the words by "|".
std::string grouped(const std::vector<std::string>& pieces) {
  const WordGroups words = word_groups(tokens_of(pieces));
  std::string out;
  for (Index word = 0; word < words.words(); ++word) {
    if (word > 0) out += "|";
    const KeyRange range = words.tokens_of(word);
    for (Index i = range.begin; i < range.end; ++i)
      out += (i > range.begin ? "·" : "") + pieces[static_cast<std::size_t>(i)];
  }
  return out;
}

/// A random causal map over n tokens, dense or in factors.
AttentionMap random_map(Index n, bool factored, std::shared_ptr<const AttentionRule> rule = causal_rule()) {
  constexpr Index depth = 4;
  const Tensor q = testing::random_tensor({n, depth}, 1), k = testing::random_tensor({n, depth}, 2);
  auto stats = std::make_shared<HeadStats>();
  Tensor weights = Tensor::zeros({n, n});
  for (Index i = 0; i < n; ++i) {
    std::vector<double> scores(static_cast<std::size_t>(n), -1e300);
    double sum = 0;
    for (Index j = 0; j < n; ++j) {
      if (masked(*rule, i, j, n)) continue;
      double score = 0;
      for (Index d = 0; d < depth; ++d) score += static_cast<double>(q.at(i, d)) * static_cast<double>(k.at(j, d));
      scores[static_cast<std::size_t>(j)] = score;
      sum += std::exp(score);
    }
    stats->log_sum_exp.push_back(std::log(sum));
    for (Index j = 0; j < n; ++j)
      weights.ref(i, j) = static_cast<float>(std::exp(scores[static_cast<std::size_t>(j)]) / sum);
  }
  if (factored) return AttentionMap::factored({}, q, k, 1, rule, stats);
  return AttentionMap::dense({}, weights, rule, stats_of_weights(weights, nullptr));
}

}  // namespace

TEST_CASE("tokens become words at spaces, punctuation, line breaks and special tokens") {
  CHECK(grouped({"Mr", " Qu", "ill", " sl", "ept", "."}) == "Mr| Qu·ill| sl·ept|.");
  CHECK(grouped({" ", " ", "a", "b"}) == " · ·a·b");
  CHECK(grouped({"don", "'", "t", " '", "quoted", "'"}) == "don·'·t| '|quoted|'");
  CHECK(grouped({"the", " dogs", "'", " tails"}) == "the| dogs|'| tails");
  CHECK(grouped({"a", "\n", "\n", "b", " ", "\n"}) == "a|\n·\n|b| |\n");
  CHECK(grouped({"x", "=", "=", "4", "2", "_", "z"}) == "x|=·=|4·2·_·z");
  CHECK(grouped({"a b", "c", " d"}) == "a b·c| d");  // a token that holds two words stays whole
  CHECK(grouped({"", "a", "", "", "b"}) == "|a|||b");
  CHECK(grouped({"日", "本", "カ"}) == "日|本|カ");
  CHECK(grouped({"caf", "\xC3", "\xA9", " x"}) == "caf·\xC3·\xA9| x");  // é in two tokens
  CHECK(grouped({"\xC3", "\xA9", "t", "\xA9"}) == "\xC3·\xA9·t|\xA9");  // a stray byte breaks nothing but the word
  CHECK(grouped({}).empty());
  const WordGroups words = word_groups(tokens_of({"a", "b", " c", "d"}));
  CHECK(words.words() == 2);
  CHECK(words.word_of(0) == 0);
  CHECK(words.word_of(1) == 0);
  CHECK(words.word_of(2) == 1);
  CHECK(words.word_of(3) == 1);
}

TEST_CASE("attention to a word is the sum over its tokens, from a word the mean") {
  // Tokens a b | c: rows a (1 0 0), b (0.25 0.75 0), c (0.2 0.3 0.5).
  const Tensor weights = Tensor::from({3, 3}, std::vector<float>{1, 0, 0, 0.25f, 0.75f, 0, 0.2f, 0.3f, 0.5f});
  const AttentionMap map = AttentionMap::dense({}, weights, causal_rule(), stats_of_weights(weights, nullptr));
  const AttentionMap words = map_in_words(map, {{0, 2, 3}}, nullptr);
  CHECK(words.n_query() == 2);
  CHECK(words.n_key() == 2);
  CHECK(words.weight(0, 0) == doctest::Approx(1));
  CHECK(words.weight(1, 0) == doctest::Approx(0.5));
  CHECK(words.weight(1, 1) == doctest::Approx(0.5));
  CHECK(words.masked(0, 1));
  CHECK_FALSE(words.masked(1, 0));
  const AttentionMap halves = map_in_words(map, {{0, 1, 3}}, nullptr);  // a | b c: the mean of rows b and c
  CHECK(halves.weight(1, 0) == doctest::Approx((0.25 + 0.2) / 2));
  CHECK(halves.weight(1, 1) == doctest::Approx((0.75 + 0.8) / 2));
  CHECK(halves.stats().column_mass[0] == doctest::Approx(1 + 0.225));
}

TEST_CASE("rows of words sum to 1, of dense and of factored maps, which agree") {
  constexpr Index n = 150;  // more than one band
  WordGroups words;
  Random random(3);
  for (Index at = 0; at < n; at += 1 + static_cast<Index>(random.below(4))) words.begin.push_back(at);
  words.begin.push_back(n);
  for (const bool window : {false, true}) {
    const auto rule = window ? parse_mask("window 7") : causal_rule();
    const AttentionMap tokens_map = random_map(n, false, rule);
    const AttentionMap dense = map_in_words(tokens_map, words, nullptr);
    const AttentionMap factored = map_in_words(random_map(n, true, rule), words, nullptr);
    for (Index i = 0; i < words.words(); ++i) {
      double sum = 0;
      for (Index j = 0; j < words.words(); ++j) {
        sum += static_cast<double>(dense.weight(i, j));
        CHECK(factored.weight(i, j) == doctest::Approx(dense.weight(i, j)).epsilon(1e-4));
        // A masked cell is one where every pair of tokens is masked.
        bool any = false;
        for (Index q = words.tokens_of(i).begin; q < words.tokens_of(i).end; ++q)
          for (Index k = words.tokens_of(j).begin; k < words.tokens_of(j).end; ++k) any |= !masked(*rule, q, k, n);
        REQUIRE(dense.masked(i, j) == !any);
        const float one = weight_in_words(tokens_map, words, i, j);
        if (any)
          CHECK(one == doctest::Approx(dense.weight(i, j)).epsilon(1e-5));
        else
          CHECK(std::isnan(one));
      }
      CHECK(sum == doctest::Approx(1).epsilon(1e-6));
    }
  }
}

TEST_CASE("a trace in words has words for tokens, and metrics that find repeated words") {
  Trace trace;
  trace.tokens = tokens_of({" Qu", "ill", " a", " Qu", "ill"});
  trace.maps = {random_map(5, false)};
  const Trace words = in_words(trace);
  REQUIRE(words.tokens.size() == 3);
  CHECK(words.tokens[0].label == "␣Quill");
  CHECK(words.tokens[0].id == words.tokens[2].id);
  CHECK(words.tokens[0].id != words.tokens[1].id);
  CHECK(words.tokens[2].begin == 8);
  CHECK(words.tokens[2].end == 14);
  CHECK(words.merged_tokens == 5);
  // The only row with an earlier copy of its word is the last: duplicate_token is that weight.
  const double weight = static_cast<double>(words.maps[0].weight(2, 0));
  CHECK(evaluate(metric("duplicate_token"), words)[0] == doctest::Approx(weight));
  CHECK(in_words(trace, word_groups(trace.tokens), [](HeadId) { return false; }).maps.empty());
}

TEST_CASE("words of another text, and too many, are refused") {
  CHECK_THROWS_AS(map_in_words(random_map(5, false), {{0, 2, 4}}, nullptr), Error);
  WordGroups many;
  for (Index i = 0; i <= most_words + 1; ++i) many.begin.push_back(i);
  const Tensor q = Tensor::zeros({most_words + 1, 1});
  auto stats = std::make_shared<HeadStats>();
  stats->log_sum_exp.assign(static_cast<std::size_t>(most_words) + 1, 0);
  CHECK_THROWS_AS(map_in_words(AttentionMap::factored({}, q, q, 1, causal_rule(), stats), many, nullptr), Error);
}

TEST_CASE("query rows that begin inside a word, as a pass with cached tokens has them, count where they are") {
  // Keys 0 1 | 2 3, queries 3 alone: row (0.1 0.2 0.3 0.4).
  const Tensor weights = Tensor::from({1, 4}, std::vector<float>{0.1f, 0.2f, 0.3f, 0.4f});
  AttentionMap::Place place;
  place.offset = 3;
  const AttentionMap map = AttentionMap::dense(place, weights, causal_rule(), stats_of_weights(weights, nullptr, 3));
  const AttentionMap words = map_in_words(map, {{0, 2, 4}}, nullptr);
  CHECK(words.place().offset == 1);
  CHECK(words.n_query() == 1);
  CHECK(words.weight(0, 0) == doctest::Approx(0.3));
  CHECK(words.weight(0, 1) == doctest::Approx(0.7));
  CHECK_FALSE(words.masked(0, 1));
}

}  // namespace headscope::words_test
