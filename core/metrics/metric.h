#pragma once
// A metric is one number per head, a pure function of an AttentionMap and the token links of its text. It carries unit,
// range, formula and the value that chance would give, so that no number on screen stands alone.
// A new metric is one entry in the table of metrics.cpp (or a file of its own when it is long) and one test.

#include <cmath>
#include <limits>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/metrics/cells.h"
#include "core/trace/text_marks.h"
#include "core/trace/trace.h"

namespace headscope {

struct MetricInput {
  const AttentionMap& map;
  const TextMarks& text;  ///< of the whole text, cached tokens included: rows are absolute positions
};

struct Metric {
  std::string_view id;       ///< "entropy", "prefix_matching": stable, used in CSV, JSON and on the command line
  std::string_view title;    ///< "Entropy"
  std::string_view unit;     ///< "nats", "tokens", "" for a share
  double low, high;          ///< range; high = +inf when it depends on the text
  std::string_view formula;  ///< for tooltips and the README
  std::string_view source;   ///< paper, or ""
  double (*value)(const MetricInput&);  ///< NaN when the text offers no evidence (no repeated token, one token …)
  double (*chance)(
      const MetricInput&);  ///< value for a head that spreads its weight evenly over visible keys; NaN if none
  KeysOfRow (*cells)(const MetricInput&);  ///< which cells the metric sums, so that its evidence can be shown
  /// Holds for weights that are signed or do not sum to 1, too: it asks only where the largest stand, or for their sum.
  /// Every other metric takes a row for probabilities, and is NaN for such a map.
  bool any_weights = false;
  /// Compares places of queries with places of keys, or looks for what the text said before: NaN where queries and keys
  /// are of two texts.
  bool one_text = false;
  Index (*best_of)(const MetricInput&) = nullptr;  ///< of how many candidates it takes the best; nullptr = of one
  /// Of a metric whose cells are the same keys in every row: these, ascending. Their sums are known without the cells.
  std::span<const std::int32_t> (*columns)(const MetricInput&) = nullptr;
  bool english = false;  ///< reads links between words, which are told of English texts alone
};

/// Whether the rows of a map are probabilities (exact zeros or not), which most metrics and all classes speak of.
bool has_probabilities(const AttentionMap& map);

/// Why a metric says nothing about a map, whatever its weights, as a sentence; "" where it says something.
std::string why_silent(const Metric& metric, const AttentionMap& map);

std::span<const Metric> metrics();
/// Throws Error listing the known ids.
const Metric& metric(std::string_view id);

/// One metric for every map of a trace, in its order. Empty when the trace has no maps.
std::vector<double> evaluate(const Metric& metric, const Trace& trace);

/// All metrics of all heads: rows as in trace.maps, columns as in metrics(). NaN for a head whose map was not recorded.
struct HeadTable {
  std::vector<std::vector<double>> value, chance;
};
HeadTable head_table(const Trace& trace);
/// With the marks of the trace's tokens, where they are made already. Throws Cancelled when asked to stop.
HeadTable head_table(const Trace& trace, const TextMarks& text, const std::stop_token& stop = {});

}  // namespace headscope
