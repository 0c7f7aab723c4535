#pragma once
// The heads of a trace with their classes, and what pictures say about them: one place for the command line and for the
// window's exports.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/metrics/head_class.h"
#include "core/trace/trace.h"
#include "viz/scene/annotations.h"
#include "viz/scene/head_grid.h"

namespace headscope {

/// A head of a trace with its verdicts, strongest first.
struct HeadReport {
  const AttentionMap* map = nullptr;
  std::vector<HeadVerdict> verdicts;
  std::optional<HeadVerdict> nearest = {};  ///< of a head without class, the one that it comes nearest to
};
/// Every recorded head, layer-major. `rules` must outlive the result.
std::vector<HeadReport> report_heads(const Trace& trace, const std::vector<ClassRule>& rules);

/// "previous token 0.998 (chance 0.171, 14 rows, p ≤ 1e-12)", "sink 0.22 (weak: 1.4 × chance 0.157, 14 rows, …)"
std::string verdict_text(const HeadVerdict& verdict);
/// The strongest class with score and chance, in the hue of the class; empty for a head without class.
Badge badge_of(const std::vector<HeadReport>& heads, HeadId head);
/// The strongest class of every head, for the grid.
std::vector<HeadMark> marks_of(const std::vector<HeadReport>& heads);
/// ("Entropy", "0.94 nats") and the like, for the title block of one head.
std::vector<std::pair<std::string, std::string>> facts_of(const std::vector<HeadReport>& heads, const Trace& trace,
                                                          HeadId head);

/// A number with `decimals` digits; "–" for NaN (the text offers no evidence).
std::string number(double value, int decimals = 3);
/// "1.234 nats"; "–" for NaN.
std::string nats(double value, int decimals = 3);

}  // namespace headscope
