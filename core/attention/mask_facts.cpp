#include "core/attention/mask_facts.h"

#include <algorithm>
#include <limits>

#include "core/base/nth.h"

namespace headscope {

namespace {
/// Calls seen(key) for every key that the query sees.
template <class Seen>
void each_key(const AttentionRule& rule, Index query, Index n_key, std::vector<float>& scratch, Seen seen) {
  const KeyRange keys = rule.keys(query, n_key);
  scratch.assign(static_cast<std::size_t>(std::max<Index>(keys.size(), 0)), 0.0f);
  if (!rule.plain()) rule.apply(query, keys.begin, scratch);
  for (std::size_t c = 0; c < scratch.size(); ++c)
    if (scratch[c] != -std::numeric_limits<float>::infinity()) seen(keys.begin + static_cast<Index>(c));
}
}  // namespace

MaskFacts mask_facts(const AttentionRule& rule, Index tokens) {
  MaskFacts facts;
  facts.tokens = tokens;
  facts.causal_cells = tokens * (tokens + 1) / 2;
  std::vector<float> scratch;
  for (Index i = 0; i < tokens; ++i) {
    const Index before = facts.cells;
    each_key(rule, i, tokens, scratch, [&](Index j) {
      ++facts.cells;
      facts.ahead += j > i;
    });
    if (facts.cells == before) facts.empty_rows.push_back(i);
  }
  std::vector<bool> kept(static_cast<std::size_t>(tokens), false);
  for (Index i = tokens; i < 2 * tokens; ++i)
    each_key(rule, i, i + 1, scratch, [&](Index j) {
      if (j < tokens) nth(kept, j) = true;
    });
  facts.kept_keys = std::ranges::count(kept, true);
  return facts;
}

std::vector<std::uint8_t> hidden_cells(const AttentionRule& rule, Index tokens) {
  std::vector<std::uint8_t> hidden(static_cast<std::size_t>(tokens * tokens), 1);
  std::vector<float> scratch;
  for (Index i = 0; i < tokens; ++i)
    each_key(rule, i, tokens, scratch, [&](Index j) { nth(hidden, i * tokens + j) = 0; });
  return hidden;
}

}  // namespace headscope
