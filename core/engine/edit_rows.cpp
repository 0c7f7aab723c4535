#include "core/engine/edit_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/random.h"

namespace headscope {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

}  // namespace

RulePtr shaped(RulePtr base, ForcePattern::Shape shape) {
  switch (shape) {
    case ForcePattern::Shape::uniform:
      return scaled_rule(
          std::move(base), [](Index) { return 0.0f; }, "uniform");
    case ForcePattern::Shape::previous:
      return one_key_rule(
          std::move(base), [](Index query) { return std::max<Index>(query - 1, 0); }, "previous token");
    case ForcePattern::Shape::self:
      return one_key_rule(
          std::move(base), [](Index query) { return query; }, "self");
    case ForcePattern::Shape::first:
      return one_key_rule(
          std::move(base), [](Index) { return Index{0}; }, "first token");
  }
  return base;
}

void set_weight(std::span<float> scores, Index key, double weight) {
  const auto others = [&](auto fold) {
    for (std::size_t j = 0; j < scores.size(); ++j)
      if (static_cast<Index>(j) != key) fold(scores[j]);
  };
  float max = -infinity;
  others([&](float s) { max = std::max(max, s); });
  float& own = scores[static_cast<std::size_t>(key)];
  if (max == -infinity) return;  // no other key to share with
  if (weight == 1) {
    std::ranges::fill(scores, -infinity);
    own = 0;
    return;
  }
  double sum = 0;
  others([&](float s) { sum += std::exp(static_cast<double>(s) - max); });
  own = weight == 0 ? -infinity : static_cast<float>(max + std::log(sum) + std::log(weight / (1 - weight)));
}

void set_final_weight(std::span<float> weights, Index key, double weight) {
  double sum = 0;
  for (const float each : weights) sum += static_cast<double>(each);
  float& own = weights[static_cast<std::size_t>(key)];
  const double others = sum - static_cast<double>(own);
  if (others == 0) return;  // no other key to share with
  for (float& each : weights) each = static_cast<float>(static_cast<double>(each) * (sum - weight) / others);
  own = static_cast<float>(weight);
}

void freeze_row(std::span<const float> source, std::span<const int> partner, Index query, std::span<float> row) {
  double all = 0, taken = 0;
  for (const float weight : source) all += static_cast<double>(weight);
  std::vector<float> found(row.size(), 0.0f);
  std::size_t used = 0;  // keys of the source that carry weight and are paired
  for (std::size_t key = 0; key < row.size() && static_cast<Index>(key) <= query; ++key) {
    const int from = partner[key];
    if (from < 0 || from >= static_cast<int>(source.size())) continue;
    found[key] = source[static_cast<std::size_t>(from)];
    taken += static_cast<double>(found[key]);
    used += found[key] != 0;
  }
  if (!(taken > 0)) return;
  // Nothing lost: the very same weights. Else those that are left share what is lost.
  if (used < static_cast<std::size_t>(std::ranges::count_if(
                 source, [](float weight) { return weight != 0; })))
    for (float& weight : found) weight = static_cast<float>(static_cast<double>(weight) * (all / taken));
  std::ranges::copy(found, row.begin());
}

namespace {
/// mean[i] (d) of rows 0 … i of one head for every row i; with `whole` of all rows.
std::vector<std::vector<double>> running_means(const Tensor& value, Index head, bool whole) {
  const Index n = value.dim(0), d = value.dim(2);
  std::vector<double> sum(static_cast<std::size_t>(d), 0.0);
  std::vector<std::vector<double>> means;
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < d; ++j) sum[static_cast<std::size_t>(j)] += static_cast<double>(value.at(i, head, j));
    std::vector<double>& mean = means.emplace_back(sum);
    for (double& each : mean) each /= static_cast<double>(i + 1);
  }
  if (whole) std::fill(means.begin(), means.end(), std::vector<double>(means.back()));
  return means;
}

/// A row of the reference: which tensor, and which of its rows.
using ReferenceRow = std::pair<const Tensor*, Index>;
}  // namespace

void ablate(const Ablate& action, std::span<const Tensor> reference, Tensor& value, std::pair<Index, Index> heads,
            int first, int last) {
  const Index n = value.dim(0), d = value.dim(2);
  const Tensor original = value.copy();
  std::vector<ReferenceRow> rows;
  for (const Tensor& each : reference)
    for (Index i = 0; i < each.dim(0); ++i) rows.emplace_back(&each, i);
  std::vector<ReferenceRow> taken;  // by resampling, for each position
  Random random(action.seed);
  if (action.by == Ablate::By::resample && rows.empty()) {
    for (Index i = 0; i < n; ++i) taken.emplace_back(&original, i);
    for (std::size_t i = taken.size(); i > 1; --i) std::swap(taken[i - 1], taken[random.below(i)]);
  } else if (action.by == Ablate::By::resample) {
    for (Index i = 0; i < n; ++i) taken.push_back(rows[random.below(rows.size())]);
  }
  for (Index head = heads.first; head < heads.second; ++head) {
    std::vector<std::vector<double>> means;
    if (action.by == Ablate::By::mean && rows.empty()) means = running_means(original, head, action.over_text);
    if (action.by == Ablate::By::mean && !rows.empty()) {
      std::vector<double> mean(static_cast<std::size_t>(d), 0.0);
      for (const auto& [tensor, row] : rows)
        for (Index j = 0; j < d; ++j)
          mean[static_cast<std::size_t>(j)] +=
              static_cast<double>(tensor->at(row, head, j)) / static_cast<double>(rows.size());
      means.assign(static_cast<std::size_t>(n), mean);
    }
    for (Index i = first; i <= last; ++i)
      for (Index j = 0; j < d; ++j) {
        const auto at = static_cast<std::size_t>(i);
        value.ref(i, head, j) = !taken.empty()   ? taken[at].first->at(taken[at].second, head, j)
                                : !means.empty() ? static_cast<float>(means[at][static_cast<std::size_t>(j)])
                                                 : 0.0f;
      }
  }
}

void OwnOutputs::keep(Index head, Index query, const Tensor& output) {
  rows_.insert_or_assign({head, query}, output.select(0, query));
}

void OwnOutputs::put(Tensor& z) {
  for (const auto& [of, row] : rows_)
    for (Index j = 0; j < row.dim(0); ++j) z.ref(of.second, of.first, j) = row.at(j);
  rows_.clear();
}

}  // namespace headscope
