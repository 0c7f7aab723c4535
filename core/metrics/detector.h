#pragma once
// How much of its attention each head puts on cells that somebody has chosen, by a rule or by painting them: a head
// class of one's own. Score = mean, over the query rows that have at least one chosen key they may see, of the weight
// on those keys; chance = the same for a head that spreads its weight evenly under the same mask.

#include <stop_token>
#include <string>
#include <vector>

#include "core/metrics/cell_rule.h"
#include "core/trace/attention_map.h"
#include "core/trace/head_id.h"

namespace headscope {

/// Chosen cells of a text, by absolute positions. A value.
struct CellPattern {
  Index size = 0;                        ///< positions of the text
  std::vector<std::vector<Index>> keys;  ///< [query] ascending
  bool has(Index query, Index key) const;
  /// Switches one cell.
  void set(Index query, Index key, bool chosen);
  Index count() const;
  bool operator==(const CellPattern&) const = default;
};
/// The cells of a rule, key ≤ query or not. Reads n² cells. Throws Cancelled.
CellPattern cells_of(const CellRule& rule, const std::vector<Token>& tokens, std::stop_token stop = {});
CellPattern no_cells(Index size);

struct Detection {
  HeadId id;
  /// NaN when no row has a chosen key that it may see; the score also when the weights are no probabilities.
  double score = 0, chance = 0;
  Index rows = 0;  ///< rows that count
};
Detection detect(const AttentionMap& map, const CellPattern& pattern);
/// Every head of the trace, in its order. Throws Cancelled; Error when the pattern is of another size.
std::vector<Detection> detect_all(const Trace& trace, const CellPattern& pattern, std::stop_token stop = {});

/// Rules for the classes that have a metric of their own, for choosers.
struct DetectorPreset {
  std::string id, title, rule;
};
const std::vector<DetectorPreset>& detector_presets();

}  // namespace headscope
