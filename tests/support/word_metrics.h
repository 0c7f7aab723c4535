#pragma once
// Metrics that ask which words of a text belong together, which tokens alone do not tell: a text that has some of all,
// and the metrics written out cell by cell.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/random.h"
#include "core/metrics/metric.h"

namespace headscope::testing {

inline constexpr std::string_view word_metrics[] = {"verb_to_subject",       "noun_to_determiner",  "adjective_to_noun",
                                                    "preposition_to_noun",   "noun_to_preposition", "object_to_verb",
                                                    "pronoun_to_antecedent", "rare_words",          "own_sentence"};

inline bool reads_words(std::string_view metric) {
  return std::ranges::find(word_metrics, metric) != std::end(word_metrics);
}

/// English of n tokens, a word or a full stop each; equal words have equal numbers. Sentences in random order, each
/// followed by a number in words that no other has; some end in a separator.
inline std::vector<Token> english(Index n, Random& random) {
  static const std::vector<std::vector<std::string>> sentences{
      {"The", "old", "king", "saw", "the", "black", "wolf", "near", "the", "river", "."},
      {"Anna", "sold", "him", "a", "small", "cake", ".", "[SEP]"},
      {"Then", "she", "ran", "to", "the", "house", "of", "the", "king", "."}};
  std::vector<std::string> words;
  while (static_cast<Index>(words.size()) < n) {
    const auto& next = sentences[random.below(sentences.size())];
    words.insert(words.end(), next.begin(), next.end());
    words.push_back(std::string("Bo") + std::string(1 + words.size() / 26, 'x') +
                    static_cast<char>('a' + words.size() % 26));
  }
  words.resize(static_cast<std::size_t>(n));
  std::vector<Token> tokens;
  for (const std::string& word : words) {
    Token& token = tokens.emplace_back();
    token.id = static_cast<std::int32_t>(std::ranges::find(words, word) - words.begin());
    token.label = word;
    if (word != "[SEP]") token.bytes = (word == "." ? "" : " ") + word;
  }
  return tokens;
}

/// A metric of words as its definition reads, of a head of one text; with `even`, of the head that spreads its weight.
inline double by_definition(std::string_view id, const AttentionMap& map, const TextMarks& text, bool even = false) {
  const auto sentence_of = [&](Index position) {
    int found = -1;
    for (std::size_t s = 0; s < text.words.sentences.size(); ++s)
      if (position >= text.words.sentences[s].begin && position < text.words.sentences[s].end)
        found = static_cast<int>(s);
    return found;
  };
  const auto counts = [&](Index query, Index key) {
    if (id == "rare_words") return std::ranges::count(text.words.once, key) > 0;
    if (id == "own_sentence") return sentence_of(query) >= 0 && sentence_of(query) == sentence_of(key);
    const auto relation = std::ranges::find(word_metrics, id) - std::begin(word_metrics);
    constexpr WordRelation order[] = {WordRelation::subject,
                                      WordRelation::determiner,
                                      WordRelation::adjective,
                                      WordRelation::preposition_object,
                                      WordRelation::object_preposition,
                                      WordRelation::object,
                                      WordRelation::antecedent};
    const auto keys = text.words.of(order[relation]).row(static_cast<int>(query));
    return std::ranges::count(keys, key) > 0;
  };
  double sum = 0;
  int rows = 0;
  for (Index row = 0; row < map.n_query(); ++row) {
    const Index query = map.place().offset + row;
    double weight = 0;
    int cells = 0, visible = 0;
    bool other = id != "own_sentence";
    for (Index key = 0; key < map.n_key(); ++key) {
      if (map.masked(row, key)) continue;
      ++visible;
      if (counts(query, key)) ++cells, weight += static_cast<double>(map.weight(row, key));
      if (sentence_of(key) >= 0 && sentence_of(key) != sentence_of(query)) other = true;
    }
    if (cells == 0 || !other) continue;
    ++rows;
    sum += even ? static_cast<double>(cells) / visible : weight;
  }
  return rows > 0 ? sum / rows : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace headscope::testing
