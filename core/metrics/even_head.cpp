#include "core/metrics/even_head.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/nth.h"
#include "core/base/special_values.h"

namespace headscope {

namespace {

// The mask of another rule without its biases.
class MaskOnly final : public AttentionRule {
 public:
  explicit MaskOnly(const AttentionRule* rule) : rule_(rule) {}
  KeyRange keys(Index query, Index n_key) const override {
    return rule_ ? rule_->keys(query, n_key) : KeyRange{0, n_key};
  }
  bool plain() const override { return !rule_ || rule_->plain(); }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    std::vector<float> inner(scores.size(), 0.0f);
    if (rule_) rule_->apply(query, first_key, inner);
    for (std::size_t i = 0; i < scores.size(); ++i)
      if (inner[i] == -float_infinity) scores[i] = -float_infinity;
  }
  std::string describe() const override { return rule_ ? rule_->describe() + ", even" : "even"; }

 private:
  const AttentionRule* rule_;
};

// Visible keys of one row as runs without holes, so that sums over a row cost per run and not per key.
void visible_runs(const AttentionMap& map, Index query, std::vector<KeyRange>& runs, std::vector<float>& scratch) {
  runs.clear();
  const KeyRange range = visible_range(map, query);
  if (range.size() <= 0) return;
  if (!map.rule() || map.rule()->plain()) {
    runs.push_back(range);
    return;
  }
  scratch.assign(static_cast<std::size_t>(range.size()), 0.0f);
  map.rule()->apply(map.place().offset + query, range.begin, scratch);
  for (Index key = range.begin; key < range.end; ++key) {
    if (nth(scratch, key - range.begin) == -float_infinity) continue;
    if (!runs.empty() && runs.back().end == key) {
      ++runs.back().end;
    } else {
      runs.push_back({key, key + 1});
    }
  }
}

Index total(const std::vector<KeyRange>& runs) {
  Index sum = 0;
  for (const KeyRange& run : runs) sum += run.size();
  return sum;
}

// The share of the row's links that the query may see; links ascend.
Index links_inside(std::span<const std::int32_t> links, const std::vector<KeyRange>& runs) {
  Index inside = 0;
  for (const KeyRange& run : runs)
    inside +=
        std::lower_bound(links.begin(), links.end(), run.end) - std::lower_bound(links.begin(), links.end(), run.begin);
  return inside;
}

// Turns differences (add w at begin, take it back at end) into values.
std::vector<double> accumulated(std::vector<double> steps) {
  steps.pop_back();
  double sum = 0;
  for (double& step : steps) step = sum += step;
  return steps;
}

}  // namespace

KeyRange visible_range(const AttentionMap& map, Index query) {
  return map.rule() ? map.rule()->keys(map.place().offset + query, map.n_key()) : KeyRange{0, map.n_key()};
}

Index visible_count(const AttentionMap& map, Index query) {
  if (!map.rule() || map.rule()->plain()) return std::max<Index>(visible_range(map, query).size(), 0);
  std::vector<KeyRange> runs;
  std::vector<float> scratch;
  visible_runs(map, query, runs, scratch);
  return total(runs);
}

void keep_visible(const AttentionMap& map, Index query, std::vector<Index>& keys) {
  const KeyRange range = visible_range(map, query);
  keys.erase(std::ranges::lower_bound(keys, range.end), keys.end());
  keys.erase(keys.begin(), std::ranges::lower_bound(keys, range.begin));
  if (keys.empty() || !map.rule() || map.rule()->plain()) return;
  const Index first = keys.front();
  std::vector<float> scores(static_cast<std::size_t>(keys.back() + 1 - first), 0.0f);
  map.rule()->apply(map.place().offset + query, first, scores);
  std::erase_if(keys, [&](Index key) { return nth(scores, key - first) == -float_infinity; });
}

AttentionMap even_head(const AttentionMap& like, const TokenLinks& links) {
  const Index n_query = like.n_query(), n_key = like.n_key(), offset = like.place().offset;
  const auto queries = static_cast<std::size_t>(n_query);
  auto stats = std::make_shared<HeadStats>();
  const bool linked = links.duplicate.rows() >= offset + n_query;
  std::vector<double> column_steps(static_cast<std::size_t>(n_key) + 1);
  std::vector<double> distance_steps(queries + static_cast<std::size_t>(n_key));
  std::vector<KeyRange> runs;
  std::vector<float> scratch;
  for (Index query = 0; query < n_query; ++query) {
    visible_runs(like, query, runs, scratch);
    const Index visible = total(runs);
    const double weight = visible > 0 ? 1 / static_cast<double>(visible) : 0;
    const bool sees_first = visible > 0 && runs.front().begin == 0;
    const Index others = visible - sees_first;
    stats->log_sum_exp.push_back(std::log(static_cast<double>(visible)));  // −∞ for a row that sees nothing
    stats->entropy.push_back(visible > 0 ? static_cast<float>(std::log(static_cast<double>(visible))) : 0.0f);
    stats->entropy_without_first.push_back(
        static_cast<float>(others > 0 ? std::log(static_cast<double>(others)) : nan));
    stats->max_weight.push_back(static_cast<float>(weight));
    stats->max_key.push_back(visible > 0 ? static_cast<std::int32_t>(runs.front().begin) : -1);
    stats->first.push_back(sees_first ? static_cast<float>(weight) : 0.0f);
    if (linked) {
      const auto row = static_cast<int>(offset + query);
      stats->duplicate.push_back(
          static_cast<float>(weight * static_cast<double>(links_inside(links.duplicate.row(row), runs))));
      stats->induction.push_back(
          static_cast<float>(weight * static_cast<double>(links_inside(links.induction.row(row), runs))));
    }
    for (const KeyRange& run : runs) {
      nth(column_steps, run.begin) += weight;
      nth(column_steps, run.end) -= weight;
      // Entry query + n_key − 1 − key: the run's last key comes first.
      nth(distance_steps, query + n_key - run.end) += weight;
      nth(distance_steps, query + n_key - run.begin) -= weight;
    }
  }
  stats->column_mass = accumulated(std::move(column_steps));
  stats->distance_mass = accumulated(std::move(distance_steps));
  AttentionMap::Place place = like.place();
  place.kind = MapKind::probability;  // whatever the weights of `like` are
  // Scores of zero everywhere: exp(0 − ln visible) = 1 / visible.
  return AttentionMap::factored(place, Tensor::zeros({n_query, 1}), Tensor::zeros({n_key, 1}), 1,
                                std::make_shared<MaskOnly>(like.rule()), stats);
}

}  // namespace headscope
