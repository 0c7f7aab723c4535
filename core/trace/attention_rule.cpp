#include "core/trace/attention_rule.h"

#include <algorithm>
#include <limits>

namespace headscope {

namespace {

class FullRule final : public AttentionRule {
 public:
  KeyRange keys(Index, Index n_key) const override { return {0, n_key}; }
  std::string describe() const override { return "full"; }
};

class CausalRule final : public AttentionRule {
 public:
  KeyRange keys(Index query, Index n_key) const override { return {0, std::clamp<Index>(query + 1, 0, n_key)}; }
  std::string describe() const override { return "causal"; }
};

}  // namespace

void AttentionRule::apply(Index, Index, std::span<float>) const {}
float AttentionRule::factor(Index) const {
  return 1;
}

float AttentionRule::cap(Index) const {
  return 0;
}

float AttentionRule::sink(Index) const {
  return -std::numeric_limits<float>::infinity();
}

std::optional<DistanceTerms> AttentionRule::distance_terms(Index, Index) const {
  return std::nullopt;
}

std::shared_ptr<const AttentionRule> full_rule() {
  return std::make_shared<FullRule>();
}
std::shared_ptr<const AttentionRule> causal_rule() {
  return std::make_shared<CausalRule>();
}

bool masked(const AttentionRule& rule, Index query, Index key, Index n_key) {
  const KeyRange visible = rule.keys(query, n_key);
  if (key < visible.begin || key >= visible.end) return true;
  if (rule.plain()) return false;
  float score = 0;
  rule.apply(query, key, {&score, 1});
  return score == -std::numeric_limits<float>::infinity();
}

}  // namespace headscope
