#pragma once
// Metrics that ask which words of a text belong together, which tokens alone do not tell.

#include <algorithm>
#include <string_view>

namespace headscope::testing {

/// tests/trace/word_links_test.cpp and tests/metrics/word_classes_test.cpp hold these to their definitions.
inline bool reads_words(std::string_view metric) {
  constexpr std::string_view all[] = {"verb_to_subject",       "noun_to_determiner",  "adjective_to_noun",
                                      "preposition_to_noun",   "noun_to_preposition", "object_to_verb",
                                      "pronoun_to_antecedent", "rare_words",          "own_sentence"};
  return std::ranges::find(all, metric) != std::end(all);
}

}  // namespace headscope::testing
