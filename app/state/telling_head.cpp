#include "app/state/telling_head.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>

namespace headscope {

namespace {
constexpr std::string_view by_interest[] = {"induction",
                                            "pronoun_to_antecedent",
                                            "verb_to_subject",
                                            "duplicate_token",
                                            "previous_token",
                                            "next_token",
                                            "object_to_verb",
                                            "noun_to_determiner",
                                            "adjective_to_noun",
                                            "preposition_to_noun",
                                            "noun_to_preposition",
                                            "fixed_offset",
                                            "rare_words",
                                            "punctuation",
                                            "self",
                                            "local",
                                            "own_sentence",
                                            "separator",
                                            "sink",
                                            "broad",
                                            "uniform"};
constexpr double clearly = 0.5;
}  // namespace

std::optional<HeadId> telling_head(const HeadFacts& facts) {
  std::optional<HeadId> best;
  // Clear ones before others, then by interest, then by evidence.
  std::pair<std::ptrdiff_t, double> best_rank{};
  for (std::size_t row = 0; row < facts.verdicts.size(); ++row)
    for (const HeadVerdict& verdict : facts.verdicts[row]) {
      const double chance = std::isnan(verdict.chance) ? 0 : std::clamp(verdict.chance, 0.0, 1.0);
      const double above = (verdict.score - chance) / std::max(1 - chance, 1e-9);
      const auto interest = std::end(by_interest) - std::ranges::find(by_interest, verdict.rule->id);
      const std::pair<std::ptrdiff_t, double> rank{above >= clearly ? interest : -1, above};
      if (best && rank <= best_rank) continue;
      best_rank = rank;
      best = HeadId{facts.trace->maps[row].layer(), facts.trace->maps[row].head()};
    }
  return best;
}

std::optional<HeadId> softer_head(const HeadFacts& facts) {
  const auto column = static_cast<std::size_t>(&metric("entropy") - metrics().data());
  std::optional<HeadId> best;
  double nearest = std::numeric_limits<double>::infinity();
  for (std::size_t row = 0; row < facts.table.value.size(); ++row) {
    const double distance = std::abs(facts.table.value[row][column] / facts.table.chance[row][column] - 0.5);
    if (!(distance < nearest)) continue;  // NaN is no number to be near to
    nearest = distance;
    best = facts.trace->maps[row].id();
  }
  return best;
}

}  // namespace headscope
