#include "core/attention/mechanism_compare.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/attention/mechanisms/spectrum.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/base/words.h"

namespace headscope {

namespace {

// Below this an error is float32's rounding, not a property of the mechanism.
constexpr double rounding = 2e-5;

Index largest(const Tensor& weights, Index row, const std::vector<std::uint8_t>& hidden) {
  Index best = -1;
  for (Index j = 0; j < weights.dim(1); ++j) {
    if (!hidden.empty() && nth(hidden, row * weights.dim(1) + j)) continue;
    if (best < 0 || weights.at(row, j) > weights.at(row, best)) best = j;
  }
  return best;
}

}  // namespace

MechanismComparison compare(const MechanismInput& in, const MechanismResult& result, Index most_ranks) {
  MechanismComparison c;
  c.reference = mechanism::softmax_reference(in);
  if (!result.weights.defined()) return c;
  c.difference = mechanism::minus(result.weights, c.reference.weights);
  const double size = mechanism::norm(c.reference.output);
  c.output_error = size > 0 ? mechanism::norm(mechanism::minus(result.output, c.reference.output)) / size : nan;
  c.entropy = mechanism::mean_entropy(result.weights);
  c.entropy_reference = mechanism::mean_entropy(c.reference.weights);
  const auto hidden = mechanism::hidden_cells(*in.rule, in.n(), in.m());
  Index agree = 0, rows = 0, negative = 0, seen = 0;
  c.least_sum = std::numeric_limits<double>::infinity();
  c.largest_sum = -c.least_sum;
  for (Index i = 0; i < in.n(); ++i) {
    Index visible = 0;
    double sum = 0;
    for (Index j = 0; j < in.m(); ++j) {
      const bool shown = hidden.empty() || !nth(hidden, i * in.m() + j);
      visible += shown;
      negative += shown && result.weights.at(i, j) < 0;
      sum += static_cast<double>(result.weights.at(i, j));
    }
    seen += visible;
    c.least_sum = std::min(c.least_sum, sum);
    c.largest_sum = std::max(c.largest_sum, sum);
    if (visible < 2) continue;
    ++rows;
    agree += largest(result.weights, i, hidden) == largest(c.reference.weights, i, hidden);
  }
  c.top1 = rows > 0 ? static_cast<double>(agree) / static_cast<double>(rows) : nan;
  c.negative = seen > 0 ? static_cast<double>(negative) / static_cast<double>(seen) : 0;
  c.rank = c.rank_reference = c.rank90 = c.rank90_reference = -1;
  if (std::max(in.n(), in.m()) <= most_ranks) {
    mechanism::check(in);
    const auto own = singular_values(result.weights), other = singular_values(c.reference.weights);
    c.rank = numeric_rank(own), c.rank_reference = numeric_rank(other);
    c.rank90 = energy_rank(own, 0.9), c.rank90_reference = energy_rank(other, 0.9);
  }
  return c;
}

std::string what_to_look_for(const Mechanism& mechanism, const MechanismInput& in, const MechanismValues& values,
                             const MechanismResult& result, const MechanismComparison& c) {
  std::string words = mechanism.note ? mechanism.note(in, values, result) : "";
  const auto add = [&](const std::string& sentence) {
    if (!sentence.empty()) words += (words.empty() ? "" : " ") + sentence;
  };
  if (mechanism.study || !result.weights.defined()) return words;
  if (c.output_error < rounding) return words;
  if (c.negative > 0)
    add(say("{:.0f} % of the visible weights are negative: the output is no average of values.", 100 * c.negative));
  else if (c.entropy > c.entropy_reference + 0.1)
    add(say("Rows are flatter than softmax's: a query spreads over {:.1f} keys in place of {:.1f}.",
            std::exp(c.entropy), std::exp(c.entropy_reference)));
  else if (c.entropy < c.entropy_reference - 0.1)
    add(say("Rows are sharper than softmax's: a query spreads over {:.1f} keys in place of {:.1f}.",
            std::exp(c.entropy), std::exp(c.entropy_reference)));
  if (c.top1 >= 0.9)
    add(said("The strongest key of nearly every row is still the same."));
  else if (c.top1 < 0.5)
    add(say("In only {:.0f} % of the rows the strongest key is still the same.", 100 * c.top1));
  return words;
}

}  // namespace headscope
