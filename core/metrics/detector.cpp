#include "core/metrics/detector.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/metrics/even_head.h"
#include "core/metrics/metric.h"

namespace headscope {

bool CellPattern::has(Index query, Index key) const {
  return query >= 0 && query < size && std::ranges::binary_search(nth(keys, query), key);
}

void CellPattern::set(Index query, Index key, bool chosen) {
  auto& row = nth(keys, query);
  const auto at = std::ranges::lower_bound(row, key);
  const bool is = at != row.end() && *at == key;
  if (chosen && !is) row.insert(at, key);
  if (!chosen && is) row.erase(at);
}

Index CellPattern::count() const {
  Index sum = 0;
  for (const auto& row : keys) sum += static_cast<Index>(row.size());
  return sum;
}

CellPattern no_cells(Index size) {
  return {size, std::vector<std::vector<Index>>(static_cast<std::size_t>(size))};
}

CellPattern cells_of(const CellRule& rule, const std::vector<Token>& tokens, std::stop_token stop) {
  const auto n = static_cast<Index>(tokens.size());
  CellPattern out = no_cells(n);
  for (Index query = 0; query < n; ++query) {
    if (stop.stop_requested()) throw Cancelled();
    for (Index key = 0; key < n; ++key)
      if (rule.matches(tokens, query, key)) nth(out.keys, query).push_back(key);
  }
  return out;
}

namespace {

/// The keys of a row that are chosen and may be seen.
std::vector<Index> visible_keys(const AttentionMap& map, const CellPattern& pattern, Index query) {
  std::vector<Index> keys;
  const Index position = map.place().offset + query;
  if (position < 0 || position >= pattern.size) return keys;
  for (const Index key : nth(pattern.keys, position))
    if (key < map.n_key() && !map.masked(query, key)) keys.push_back(key);
  return keys;
}

}  // namespace

Detection detect(const AttentionMap& map, const CellPattern& pattern) {
  Detection out{.id = map.id()};
  std::vector<float> row(static_cast<std::size_t>(map.n_key()));
  for (Index query = 0; query < map.n_query(); ++query) {
    const std::vector<Index> keys = visible_keys(map, pattern, query);
    if (keys.empty()) continue;
    ++out.rows;
    map.row(query, row);
    for (const Index key : keys) out.score += static_cast<double>(nth(row, key));
    // An even head gives each visible key the same share.
    out.chance += static_cast<double>(keys.size()) / static_cast<double>(visible_count(map, query));
  }
  const auto rows = static_cast<double>(out.rows);
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  // A share of attention, which weights that are no probabilities do not have.
  out.score = out.rows > 0 && has_probabilities(map) ? out.score / rows : nan;
  out.chance = out.rows > 0 ? out.chance / rows : nan;
  return out;
}

std::vector<Detection> detect_all(const Trace& trace, const CellPattern& pattern, std::stop_token stop) {
  if (trace.between_texts())
    throw Error("pattern", "a map within one text, whose tokens and places a rule compares",
                "queries and keys of two texts");
  const auto n = static_cast<Index>(trace.tokens.size());
  if (pattern.size != n)
    throw Error("pattern", fmt::format("cells of a text of {} tokens", n), fmt::format("of {} tokens", pattern.size));
  std::vector<Detection> all;
  for (const AttentionMap& map : trace.maps) {
    if (stop.stop_requested()) throw Cancelled();
    all.push_back(detect(map, pattern));
  }
  return all;
}

const std::vector<DetectorPreset>& detector_presets() {
  static const std::vector<DetectorPreset> all = {
      {"previous_token", to_say("previous token"), "k == q - 1"},
      {"self_attention", to_say("self"), "k == q"},
      {"sink", to_say("first token (sink)"), "k == 0 and q > 0"},
      {"duplicate_token", to_say("duplicate token"), "token[k] == token[q] and k < q"},
      {"prefix_matching", to_say("induction (prefix matching)"), "token[k - 1] == token[q] and k <= q"},
      {"after_same", to_say("the token before earlier copies"), "token[k + 1] == token[q] and k + 1 < q"},
      {"local", to_say("near: at most 4 back"), "0 <= q - k <= 4"},
      {"far_start", to_say("far back, at the beginning"), "k < 4 and q - k > 8"},
      {"every_other", to_say("every second token"), "(q - k) % 2 == 0 and k < q"},
  };
  return all;
}

}  // namespace headscope
