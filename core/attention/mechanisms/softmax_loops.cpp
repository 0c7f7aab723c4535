// Softmax as loops over a row in slow memory, each with its reads and writes counted while it runs:
//   as defined     Σ eˣ, then eˣ ÷ Σ: two reads and one write of every score. In float32 Σ is ∞ once a score passes 88
//                  or several come near it, and 0 where all lie below −104
//   safe           the maximum first: three reads, one write
//   online         maximum and sum in one loop (Milakov & Gimelshein, Online Normalizer Calculation for Softmax, 2018):
//                  m ← max(m, x), l ← l e^(m_old − m) + e^(x − m): two reads, one write
//   with V         the mixture Σ e^(x − m) v goes along in the same loop and is rescaled too (Rabe & Staats 2021): one
//                  read, and no weight is ever written. FlashAttention makes the scores on the chip as well: no read.
// A learned sink is one more score, which stands in the maximum and the sum from the start.
// Shapes: a row (m). Cost: m steps a loop.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

/// A row in slow memory, which counts what is done to it.
class Row {
 public:
  explicit Row(std::vector<float> values) : values_(std::move(values)) {}
  Index size() const { return static_cast<Index>(values_.size()); }
  float read(Index j) {
    ++reads;
    return nth(values_, j);
  }
  void write(Index j, float value) {
    ++writes;
    nth(values_, j) = value;
  }
  const std::vector<float>& values() const { return values_; }
  Index reads = 0, writes = 0;

 private:
  std::vector<float> values_;
};

/// Gives back Σ eˣ.
float as_defined(Row& row, float sink) {
  float sum = std::exp(sink);
  for (Index j = 0; j < row.size(); ++j) sum += std::exp(row.read(j));
  for (Index j = 0; j < row.size(); ++j) row.write(j, std::exp(row.read(j)) / sum);
  return sum;
}

void safe(Row& row, float sink) {
  float max = sink;
  for (Index j = 0; j < row.size(); ++j) max = std::max(max, row.read(j));
  float sum = std::exp(sink - max);
  for (Index j = 0; j < row.size(); ++j) sum += std::exp(row.read(j) - max);
  for (Index j = 0; j < row.size(); ++j) row.write(j, std::exp(row.read(j) - max) / sum);
}

struct Running {
  explicit Running(float sink) : max(sink), sum(std::isfinite(sink) ? 1 : 0) {}
  float max, sum;
  /// What everything so far has to be multiplied by.
  float take(float x) {
    const float next = std::max(max, x), shrink = sum > 0 ? std::exp(max - next) : 0;
    sum = sum * shrink + std::exp(x - next), max = next;
    return shrink;
  }
};

void online(Row& row, float sink, Tensor& maxima, Tensor& sums) {
  Running so_far(sink);
  for (Index j = 0; j < row.size(); ++j) {
    so_far.take(row.read(j));
    maxima.ref(0, j) = so_far.max, sums.ref(0, j) = so_far.sum;
  }
  for (Index j = 0; j < row.size(); ++j) row.write(j, std::exp(row.read(j) - so_far.max) / so_far.sum);
}

/// Σ softmax(row)_j v_j, (1, d_v).
Tensor with_values(Row& row, float sink, const std::vector<Index>& keys, const Tensor& v) {
  Running so_far(sink);
  Tensor mixed = Tensor::zeros({1, v.dim(1)});
  for (Index j = 0; j < row.size(); ++j) {
    const float x = row.read(j), shrink = so_far.take(x), weight = std::exp(x - so_far.max);
    for (Index c = 0; c < v.dim(1); ++c) mixed.ref(0, c) = mixed.at(0, c) * shrink + weight * v.at(nth(keys, j), c);
  }
  return times(mixed, 1 / so_far.sum);
}

Tensor row_tensor(const std::vector<float>& values) {
  return Tensor::from({1, static_cast<Index>(values.size())}, values);
}

std::string times_text(Index times, std::string_view what) {
  return times == 0 ? say("no {}", what) : fmt::format("{} {}{}", times, what, times == 1 ? "" : "s");
}

MechanismResult run_softmax_loops(const MechanismInput& in, const MechanismValues& values, Detail) {
  check(in);
  const RowScores row = row_scores(in, values.number("query"));
  const auto raise = static_cast<float>(values.number("raise"));
  const float sink = row.sink + raise;
  std::vector<float> scores;
  std::vector<Index> keys;  // that the row sees
  for (Index j = 0; j < in.m(); ++j)
    if (!nth(row.hidden, j)) {
      scores.push_back(row.scores.at(0, j) + raise);
      keys.push_back(j);
    }
  MechanismResult result;
  if (scores.empty()) {
    result.facts = {{said("Row"), said("sees no key"), said("nothing to divide by")}};
    result.steps.push_back(given("k", "K", in.k, MechanismAxis::key));
    return result;
  }
  const auto m = static_cast<Index>(scores.size());
  Row defined(scores), safely(scores), at_once(scores), mixing(scores);
  Tensor maxima = Tensor::zeros({1, m}), sums = Tensor::zeros({1, m});
  const float sum = as_defined(defined, sink);
  const bool overflows = !std::isfinite(sum), underflows = sum == 0;
  safe(safely, sink), online(at_once, sink, maxima, sums);
  const Tensor mixed = with_values(mixing, sink, keys, in.v);
  const bool sinks = std::isfinite(sink);
  const auto step = [&](const char* id, const char* title, const std::string& formula, const Tensor& value,
                        MechanismStep::Range range, MechanismAxis columns = MechanismAxis::other) {
    result.steps.push_back({.id = id,
                            .title = title,
                            .formula = formula,
                            .value = value,
                            .range = range,
                            .rows = MechanismAxis::other,
                            .columns = columns});
  };
  using enum MechanismStep::Range;
  step("row-scores", said("Scores x of the row"),
       sinks ? say("of the keys that the query sees; its sink, {}, is in m and l from the start",
                   text(static_cast<double>(sink)))
             : said("of the keys that the query sees"),
       row_tensor(scores), signed_values);
  step("maxima", said("m so far"), said("online: m ← max(m, x)"), maxima, signed_values);
  step("sums", said("l so far"), said("online: l ← l · e^(m before − m) + e^(x − m)"), sums, positive);
  step("weights", said("Weights, online"), said("e^(x − m) ÷ l, in a second loop"), row_tensor(at_once.values()),
       probability);
  if (!overflows && !underflows)
    step("defined", said("Weights, as defined"), sinks ? said("eˣ ÷ Σ eˣ, the sink in the sum") : "eˣ ÷ Σ eˣ",
         row_tensor(defined.values()), probability);
  step("mixed", said("Output, in one loop"), said("Σ e^(x − m) v ÷ l: no weight is written"), mixed, signed_values,
       MechanismAxis::dimension);
  const auto told = [&](const Row& r) {
    return say("{} and {} of {} scores: {} bytes", times_text(r.reads / m, said("read")),
               times_text(r.writes / m, said("write")), m, 4 * (r.reads + r.writes));
  };
  const std::string counted = said("counted while the loops ran, 4 bytes each");
  float gap = 0;
  for (Index j = 0; j < m; ++j) gap = std::max(gap, std::abs(nth(at_once.values(), j) - nth(safely.values(), j)));
  result.facts = {
      {said("As defined, two loops"),
       told(defined) + (overflows    ? say("; overflows: Σ eˣ is {} in float32, no weight comes out",
                                        std::isnan(sum) ? said("not a number") : "∞")
                        : underflows ? said("; underflows: Σ eˣ is 0 in float32, no weight comes out")
                                     : ""),
       counted},
      {said("Safe, three loops"), told(safely), counted},
      {said("Online, two loops"), told(at_once), counted},
      {said("Online with V, one loop"), told(mixing), counted},
      {said("Online − safe"), text(static_cast<double>(gap)), said("largest difference of a weight, float32")}};
  MechanismCurve curve{
      said("Bytes of scores that one row moves, over the keys it sees"), said("keys"), said("bytes"), {}, false, {}};
  const std::pair<const char*, const Row*> methods[] = {
      {said("safe"), &safely}, {said("online"), &at_once}, {said("with V"), &mixing}};
  for (const auto& [name, each] : methods) {
    MechanismCurve::Line line{name, {}, {}};
    for (double keys_seen = 0; keys_seen <= 65536; keys_seen += 16384) {
      line.x.push_back(keys_seen);
      line.y.push_back(keys_seen * 4 * static_cast<double>((each->reads + each->writes) / m));
    }
    curve.lines.push_back(std::move(line));
  }
  result.curves.push_back(std::move(curve));
  return result;
}

}  // namespace

Mechanism make_softmax_loops() {
  Mechanism m;
  m.id = "softmax-loops";
  m.title = to_say("Softmax as loops: how often a row is read and written");
  m.name = to_say("Softmax as loops, online form");
  m.group = to_say("Softmax and scaling");
  m.source = "Milakov & Gimelshein 2018";
  m.formula = to_say("m ← max(m, x),  l ← l e^(m before − m) + e^(x − m)");
  m.meaning = to_say(
      "By its definition softmax reads a row twice and writes it once, a safe one three times. Keeping the maximum and "
      "the sum as it goes saves a loop; taking the values along saves the writing: the idea of FlashAttention.");
  m.keywords =
      "online softmax loops passes memory reads writes safe softmax overflow max subtraction numerically stable bytes "
      "memory bandwidth";
  m.parameters = {
      number_parameter("query", to_say("Query"), to_say("Which row, 0 the first, 1 the last."), 0, 1, 1),
      number_parameter("raise", to_say("Raise scores by"),
                       to_say("Added to every score: softmax stays the same, until e^x overflows."), 0, 120, 0)};
  m.run = run_softmax_loops;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    if (r.facts.size() < 5) return said("This row sees no key: choose another.");
    return say("As defined: {}. Safe: {}. Online: {}. With V: {}.", r.facts[0].value, r.facts[1].value,
               r.facts[2].value, r.facts[3].value);
  };
  return m;
}

}  // namespace headscope::mechanism
