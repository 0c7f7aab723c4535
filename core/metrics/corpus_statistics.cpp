#include "core/metrics/corpus_statistics.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>

#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/thread_pool.h"
#include "core/trace/map_kinds.h"

namespace headscope {

namespace {

bool higher(const CorpusExample& a, const CorpusExample& b) {
  return a.value != b.value ? a.value > b.value : a.place < b.place;
}
bool lower(const CorpusExample& a, const CorpusExample& b) {
  return a.value != b.value ? a.value < b.value : a.place < b.place;
}

using Before = bool (*)(const CorpusExample&, const CorpusExample&);

bool belongs(const std::vector<CorpusExample>& list, const CorpusExample& example, Before before) {
  return list.size() < CorpusStatistics::examples || before(example, list.back());
}

void insert(std::vector<CorpusExample>& list, const CorpusExample& example, Before before) {
  if (!belongs(list, example, before)) return;
  list.insert(std::upper_bound(list.begin(), list.end(), example, before), example);
  if (list.size() > CorpusStatistics::examples) list.pop_back();
}

/// The rows of one head, each as a map of its own: what a metric says of one row is the metric itself.
class Rows {
 public:
  Rows(const AttentionMap& map, const TextMarks& text) : text_(text) {
    const auto rule = map.rule() ? std::shared_ptr<const AttentionRule>(std::shared_ptr<void>(), map.rule()) : nullptr;
    AttentionMap::Place place = map.place();
    const bool one_text = !place.between_texts;  // else links of the keys' text say nothing of a query
    for (Index query = 0; query < map.n_query(); ++query, place.offset += one_text ? 1 : 0) {
      Tensor row = Tensor::uninitialized({1, map.n_key()});
      map.row(query, row.mutable_values());
      const auto stats = stats_of_weights(row, one_text ? &text.links : nullptr, place.offset);
      rows_.push_back(AttentionMap::dense(place, std::move(row), rule, stats));
    }
  }
  /// The first row in which the metric is most extreme; −1 where it says nothing of single rows.
  std::int32_t extreme(const Metric& metric, bool largest) const {
    std::int32_t best = -1;
    double best_value = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const double value = metric.value({rows_[i], text_});
      if (std::isnan(value)) continue;
      if (best < 0 || (largest ? value > best_value : value < best_value))
        best = static_cast<std::int32_t>(i), best_value = value;
    }
    return best;
  }

 private:
  const TextMarks& text_;
  std::vector<AttentionMap> rows_;
};

/// A number for every passage that nobody chose: the smallest of them are a random sample, however work is shared out.
std::uint64_t hash_of(const PassagePlace& place) {
  Random first(static_cast<std::uint64_t>(place.piece) + 0x5851F42D4C957F2Dull);
  Random second(first.next() ^ static_cast<std::uint64_t>(place.window));
  return second.next();
}

constexpr double row_unit = 0x1.0p-20;

}  // namespace

CorpusStatistics::RowSums CorpusStatistics::RowSums::of(const RowEvidence& evidence) {
  const auto whole = [](double sum) { return static_cast<std::int64_t>(std::llround(sum / row_unit)); };
  return {evidence.rows, whole(evidence.score), whole(evidence.chance), whole(evidence.log_candidates)};
}

RowEvidence CorpusStatistics::RowSums::evidence() const {
  const auto sum = [](std::int64_t whole) { return static_cast<double>(whole) * row_unit; };
  return {static_cast<Index>(rows), sum(score), sum(chance), sum(log_candidates)};
}

CorpusStatistics::RowSums& CorpusStatistics::RowSums::operator+=(const RowSums& other) {
  rows += other.rows, score += other.score, chance += other.chance, log_candidates += other.log_candidates;
  return *this;
}

bool CorpusStatistics::fine_tokens() const {
  return chance_.empty() || std::ranges::any_of(chance_, [](const Distribution& d) { return d.range().fine; });
}

Distribution::Range CorpusStatistics::range_of(const Metric& metric, int window, bool fine_tokens) {
  const double n = std::max(window, 2);
  const double unbounded = metric.unit == "nats" ? std::log(n) : metric.unit == "tokens" ? n : 2;
  return {std::isfinite(metric.low) ? metric.low : -unbounded, std::isfinite(metric.high) ? metric.high : unbounded,
          fine_tokens && metric.unit == "tokens"};
}

CorpusStatistics::CorpusStatistics(int layers, int heads, int window)
    : layers_(layers), heads_(heads), window_(window) {
  for (const Metric& metric : metrics()) chance_.emplace_back(range_of(metric, window));
  for (int head = 0; head < layers * heads; ++head)
    for (const Distribution& like : chance_) cells_.push_back({like, {}, {}, {}});
}

bool CorpusStatistics::has(int head) const {
  if (passages_ == 0) return true;
  for (std::size_t m = 0; m < metrics().size(); ++m)
    if (of(head, m).count() > 0) return true;
  return false;
}

void CorpusStatistics::add(const Trace& trace, const PassagePlace& place, ThreadPool& pool) {
  assert(trace.maps.size() * metrics().size() <= cells_.size());
  const auto all = metrics();
  const TextMarks text = TextMarks::of(trace.tokens);
  std::vector<std::int64_t> rounded(cells_.size(), no_value);
  pool.parallel(static_cast<int>(trace.maps.size()), [&](int index, int) {
    const AttentionMap& map = nth(trace.maps, index);
    assert(map.layer() < layers_ && map.head() < heads_);
    const int head = map.layer() * heads_ + map.head();
    std::optional<Rows> rows;  // made when the passage is an example of anything
    for (std::size_t m = 0; m < all.size(); ++m) {
      const std::size_t at = static_cast<std::size_t>(head) * all.size() + m;
      Cell& cell = cells_[at];
      const double value = all[m].value({map, text});
      cell.values.add(value);
      if (std::isnan(value)) continue;
      cell.rows += RowSums::of(row_evidence({map, text}, all[m]));
      rounded[at] = Distribution::rounded(value);
      CorpusExample example{rounded[at], place, -1};
      for (const bool largest : {true, false}) {
        auto& list = largest ? cell.highest : cell.lowest;
        const Before before = largest ? higher : lower;
        if (!belongs(list, example, before)) continue;
        if (!rows) rows.emplace(map, text);
        example.query = rows->extreme(all[m], largest);
        insert(list, example, before);
      }
    }
  });
  if (!trace.maps.empty())
    for (std::size_t i = 0; i < all.size(); ++i) chance_[i].add(all[i].chance({first_of_shares(trace.maps), text}));
  ++passages_;
  tokens_ += trace.tokens.size();
  sample(place, std::move(rounded));
}

void CorpusStatistics::sample(const PassagePlace& place, std::vector<std::int64_t> values) {
  Sampled passage{hash_of(place), place, std::move(values)};
  const auto before = [](const Sampled& a, const Sampled& b) {
    return std::tie(a.hash, a.place) < std::tie(b.hash, b.place);
  };
  if (sample_.size() == sampled && !before(passage, sample_.back())) return;
  sample_.insert(std::upper_bound(sample_.begin(), sample_.end(), passage, before), std::move(passage));
  if (sample_.size() > sampled) sample_.pop_back();
}

void CorpusStatistics::merge(const CorpusStatistics& other) {
  assert(same_shape(other));
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    cells_[i].values.merge(other.cells_[i].values);
    cells_[i].rows += other.cells_[i].rows;
    for (const CorpusExample& example : other.cells_[i].highest) insert(cells_[i].highest, example, higher);
    for (const CorpusExample& example : other.cells_[i].lowest) insert(cells_[i].lowest, example, lower);
  }
  for (std::size_t i = 0; i < chance_.size(); ++i) chance_[i].merge(other.chance_[i]);
  for (const Sampled& passage : other.sample_) sample(passage.place, passage.values);
  passages_ += other.passages_;
  tokens_ += other.tokens_;
}

std::vector<CorpusExample> CorpusStatistics::typical(int head, std::size_t metric) const {
  const std::int64_t median = Distribution::rounded(of(head, metric).quantile(0.5));
  std::vector<CorpusExample> all;
  for (const Sampled& passage : sample_)
    if (const std::int64_t value = passage.values[static_cast<std::size_t>(head) * metrics().size() + metric];
        value != no_value)
      all.push_back({value, passage.place, -1});
  std::ranges::sort(all, [&](const CorpusExample& a, const CorpusExample& b) {
    const auto off_a = std::abs(a.value - median), off_b = std::abs(b.value - median);
    return off_a != off_b ? off_a < off_b : a.place < b.place;
  });
  if (all.size() > examples) all.resize(examples);
  return all;
}

const ClassRule* CorpusStatistics::class_of(int head, const std::vector<ClassRule>& rules) const {
  const ClassRule* best = nullptr;
  double largest = 0;
  for (const ClassRule& rule : rules) {
    if (rule.times_distance > 0) continue;  // what distance explains is told of one text, and is not added up
    const auto column = static_cast<std::size_t>(&metric(rule.metric) - metrics().data());
    const double margin = class_margin(rule, of(head, column).mean(), chance(column).mean());
    if (margin >= 1 && margin > largest && cell(head, column).rows.evidence().enough_for(rule))
      largest = margin, best = &rule;
  }
  return best;
}

CorpusStatistics CorpusStatistics::from(int layers, int heads, int window, Parts parts) {
  CorpusStatistics out(layers, heads, window);
  assert(parts.cells.size() == out.cells_.size() && parts.chance.size() == out.chance_.size());
  out.passages_ = parts.passages;
  out.tokens_ = parts.tokens;
  out.cells_ = std::move(parts.cells);
  out.chance_ = std::move(parts.chance);
  out.sample_ = std::move(parts.sample);
  return out;
}

}  // namespace headscope
