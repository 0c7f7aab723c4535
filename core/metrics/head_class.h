#pragma once
// Head classes from thresholds that are data (assets/head_classes.json; a file of the same form can replace it). A head
// gets a class only with its score, what chance would score, how many rows speak for it, how often chance would do as
// well on as many rows (chance_bound.h), and the cells that show it: never a bare label, and none from too little
// evidence.

#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/words.h"
#include "core/metrics/metric.h"

namespace headscope {

struct ClassRule {
  std::string id, title;                                   ///< "previous_token", "previous token"
  std::string metric;                                      ///< id of the metric that scores it
  double at_least = 0;                                     ///< threshold on the score
  double below = std::numeric_limits<double>::infinity();  ///< above which another class says more
  double times_chance = 1;                                 ///< and at least this many times what chance gives
  /// And at least this many times what its usual weight by distance would give: a link that distance explains is no
  /// grammar. 0 = distance does not matter.
  double times_distance = 0;
  std::string color;         ///< "#RRGGBB", fixed hue of the class
  Index rows_at_least = 5;   ///< query rows that count
  double p_at_most = 0.001;  ///< what chance_bound() may be, times the candidates of which the metric takes the best
};

struct Evidence {
  Index query = 0, key = 0;
  float weight = 0;
};

struct HeadVerdict {
  const ClassRule* rule = nullptr;
  double score = 0, chance = 0;
  /// Strongest cells of this class, at most 5; where the class is of whole columns, of the 5 that get most weight.
  std::vector<Evidence> evidence;
  Index rows = 0;  ///< that count: they see two keys or more, and a cell of the class (any cell, for whole rows)
  double p = 0;    ///< bound on how often chance scores as much; NaN for a metric of whole rows, which has none
  /// What distance alone explains: the mean over these rows of Σ (mean weight of the other rows at the cell's
  /// distance). NaN where the rule does not ask.
  double by_distance = std::numeric_limits<double>::quiet_NaN();
  bool weak = false;  ///< HeadClasses::nearest: the thresholds are not met
  double margin = 0;  ///< class_margin() of these numbers: how far above the threshold
};

/// Throws Error naming file and key on malformed JSON, an unknown metric, or a threshold outside the metric's range.
std::vector<ClassRule> parse_class_rules(std::string_view json, std::string_view where);
/// The rules built into the program from assets/head_classes.json.
const std::vector<ClassRule>& default_class_rules();

/// What rows say for a class: of one text, or of many, added up.
struct RowEvidence {
  Index rows = 0;  ///< that count: they see two keys or more, and a cell of the class (any cell, for whole rows)
  double score = 0, chance = 0;  ///< sums over these rows; 0 for a metric of whole rows
  double log_candidates = 0;     ///< ln of among how many the metric took its best; of texts, their sum
  double by_distance = 0;        ///< as score, of HeadVerdict::by_distance; 0 of many texts
  /// Bound on how often chance scores as much; NaN for a metric of whole rows, which has none.
  double p() const;
  /// Whether that is enough for the class.
  bool enough_for(const ClassRule& rule) const;
};
/// `by_distance`: whether that is asked for; else it stays 0.
RowEvidence row_evidence(const MetricInput& head, const Metric& scored, bool by_distance = false);

/// Score ÷ the threshold that the rule sets where chance scores `chance` (NaN = none); below 1, or NaN, the class is
/// not met. `by_distance`: HeadVerdict's, for a rule that asks.
double class_margin(const ClassRule& rule, double score, double chance, double by_distance = 0);

/// "chance 0.064, by distance 0.210, 14 rows, p ≤ 1e-12"; of a weak one "weak: 1.4 × chance 0.064, 3 rows", and what is
/// missing: rows, or sureness.
std::string beside_chance(const HeadVerdict& verdict);
/// "14 rows, p ≤ 1e-12": how much evidence there is, and how sure it is. Powers of ten, rounded up; nothing of a p near
/// 1.
Worded sureness(const HeadVerdict& verdict);

struct HeadClasses {
  std::vector<HeadVerdict> met;  ///< every class whose thresholds the head meets, the largest margin first
  /// Where none is met, the class of cells whose thresholds it comes nearest to, above chance, marked as weak. Nothing
  /// where no score exceeds chance.
  std::optional<HeadVerdict> nearest;
};
/// Of all heads of a trace, whose table knows every score already. `rules` must outlive the result. Throws
/// Cancelled when asked to stop.
std::vector<HeadClasses> head_classes(const Trace& trace, const TextMarks& text, const HeadTable& table,
                                      const std::vector<ClassRule>& rules, const std::stop_token& stop = {});

/// Titles of the rules for which this text holds no cell that the head may see, "; "-separated; "" = none.
Worded not_measurable(const MetricInput& head, const std::vector<ClassRule>& rules);

}  // namespace headscope
