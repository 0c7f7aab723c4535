#include "core/trace/row_stats.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "core/base/special_values.h"
#include "core/trace/row_kernels.h"

namespace headscope {
namespace {

constexpr Index usual_tile_rows = 64;
// Below this share nothing but rounding is left of a row once its first key is dropped.
constexpr float nothing_left = 1e-30f;

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

/// Sums of a map of `sums.rows` rows and more, laid out as those of a map of n_query rows and n_key keys.
void lay_out(const PartialSums& sums, Index n_query, Index n_key, std::vector<double>& column_mass,
             std::vector<double>& distance_mass) {
  column_mass.assign(at(n_key), 0.0);
  distance_mass.assign(at(n_query + n_key - 1), 0.0);
  if (sums.rows == 0) return;
  std::copy_n(sums.column_mass.begin(), std::min(n_key, sums.n_key), column_mass.begin());
  // Distances of these rows to keys not behind them: 0 … rows − 1.
  std::copy_n(sums.distance_mass.begin() + (sums.n_key - 1), sums.rows, distance_mass.begin() + (n_key - 1));
}

}  // namespace

HeadStatsBuilder::HeadStatsBuilder(Index n_query, Index n_key, Index offset, const TokenLinks* links, bool have_scores,
                                   Tensor kept, const KnownRows& known)
    : n_query_(n_query),
      n_key_(n_key),
      offset_(offset),
      links_(links),
      kept_(std::move(kept)),
      stats_(std::make_shared<HeadStats>()) {
  assert(n_query > 0 && n_key > 0);
  assert(!links || links->duplicate.rows() >= offset + n_query);
  HeadStats& s = *stats_;
  const auto rows = at(n_query);
  if (have_scores)
    s.log_sum_exp.resize(rows);
  else
    s.min_weight.resize(rows);
  s.entropy.resize(rows);
  s.entropy_without_first.resize(rows);
  s.max_weight.resize(rows);
  s.max_key.resize(rows);
  s.first.resize(rows);
  if (links) {
    s.duplicate.resize(rows);
    s.induction.resize(rows);
  }
  const Index bin = (std::max(n_query, n_key) + stored_overview_cells - 1) / stored_overview_cells;
  s.overview.bin = static_cast<int>(bin);
  if (bin == 1 && !kept_.defined()) kept_ = Tensor::uninitialized({n_query, n_key});
  s.overview.values = bin == 1 ? kept_ : Tensor::uninitialized({(n_query + bin - 1) / bin, (n_key + bin - 1) / bin});
  tile_rows_ = bin * std::max<Index>(usual_tile_rows / bin, 1);
  keep_partial_ = known.keep_partial && bin > 1;
  if (known.stats && s.overview.bin == known.stats->overview.bin && known.stats->duplicate.empty() == !links)
    take_over(*known.stats, std::min(known.rows, n_query - 1));
  column_.resize(at(tiles()));
  diagonal_.resize(at(tiles()));
}

void HeadStatsBuilder::take_over(const HeadStats& before, Index known) {
  assert(offset_ == 0 && before.log_sum_exp.empty() == stats_->log_sum_exp.empty());
  HeadStats& s = *stats_;
  for (const auto& sums : before.partial)
    if (sums->rows <= known && sums->rows % tile_rows_ == 0) s.partial.push_back(sums);
  if (s.partial.empty()) return;
  const Index rows = s.partial.back()->rows;
  first_tile_ = rows / tile_rows_;
  const auto copy = [rows](const auto& from, auto& to) {
    if (!to.empty()) std::copy_n(from.begin(), rows, to.begin());
  };
  copy(before.log_sum_exp, s.log_sum_exp);
  copy(before.entropy, s.entropy);
  copy(before.entropy_without_first, s.entropy_without_first);
  copy(before.max_weight, s.max_weight);
  copy(before.min_weight, s.min_weight);
  copy(before.max_key, s.max_key);
  copy(before.first, s.first);
  copy(before.duplicate, s.duplicate);
  copy(before.induction, s.induction);
  const Tensor& had = before.overview.values;
  Tensor& values = s.overview.values;
  const Index columns = std::min(values.dim(1), had.dim(1));
  for (Index r = 0; r < rows / s.overview.bin; ++r) {
    float* const to = &values.ref(r, 0);
    std::copy_n(had.data() + r * had.stride(0), columns, to);
    std::fill(to + columns, to + values.dim(1), 0.0f);  // keys to come
  }
}

HeadStatsBuilder::Tile::Tile(HeadStatsBuilder& builder, int tile)
    : builder_(builder),
      first_(tile * builder.tile_rows_),
      rows_(std::min(builder.tile_rows_, builder.n_query_ - first_)),
      column_(builder.column_[at(tile)]),
      diagonal_(builder.diagonal_[at(tile)]) {
  column_.assign(at(builder.n_key_), 0.0f);
  diagonal_.assign(at(rows_ + builder.n_key_ - 1), 0.0f);
  if (builder.stats_->overview.bin > 1) peak_.assign(at(builder.n_key_), 0.0f);
}

HeadStatsBuilder::Tile::~Tile() = default;

void HeadStatsBuilder::Tile::softmax(Index query, KeyRange keys, std::span<float> row, float sink) {
  HeadStats& s = *builder_.stats_;
  const auto i = at(query);
  assert(!s.log_sum_exp.empty() && static_cast<Index>(row.size()) == keys.size());
  const float largest = row_kernels::maximum(row.data(), keys.size()), max = std::max(largest, sink);
  if (largest == -float_infinity) {
    std::ranges::fill(row, 0.0f);
    s.log_sum_exp[i] = -std::numeric_limits<double>::infinity();
    s.max_key[i] = -1;
    s.entropy_without_first[i] = std::numeric_limits<float>::quiet_NaN();
    accumulate(query, keys, row.data(), 1.0f);
    return;
  }
  s.max_key[i] = static_cast<std::int32_t>(keys.begin + row_kernels::find_first(row.data(), keys.size(), largest));
  const float first_score = std::max(row[0] - max, -105.0f);
  const row_kernels::SoftmaxSums sums = row_kernels::exponentiate(row.data(), keys.size(), max);
  // With e_k = exp(s_k − max) and Z = Σ e_k:  H = ln Z − Σ e_k (s_k − max) / Z, no logarithm per element. With a sink,
  // which is in Z alone, ln Z counts for the share of the keys.
  const double of_keys = static_cast<double>(row[0]) + sums.rest,
               z = sink == no_sink ? of_keys : of_keys + std::exp(static_cast<double>(sink) - static_cast<double>(max));
  const double slope = static_cast<double>(row[0]) * first_score + sums.slope;
  const double log_z = std::log(z);
  s.log_sum_exp[i] = static_cast<double>(max) + log_z;
  s.entropy[i] = static_cast<float>(std::max(0.0, of_keys / z * log_z - slope / z));
  if (keys.begin > 0)  // key 0 is not among them; what a sink took is no key's, as below
    s.entropy_without_first[i] =
        sink == no_sink ? s.entropy[i] : static_cast<float>(std::max(0.0, std::log(of_keys) - slope / of_keys));
  else if (sums.rest < nothing_left)
    s.entropy_without_first[i] = std::numeric_limits<float>::quiet_NaN();
  else
    s.entropy_without_first[i] = std::max(0.0f, std::log(sums.rest) - sums.slope / sums.rest);
  const auto factor = static_cast<float>(1.0 / z);
  s.max_weight[i] = largest == max ? factor : factor * std::exp(largest - max);
  accumulate(query, keys, row.data(), factor);
}

void HeadStatsBuilder::Tile::weights(Index query, std::span<float> row) {
  HeadStats& s = *builder_.stats_;
  const auto i = at(query);
  const auto n = static_cast<Index>(row.size());
  assert(s.log_sum_exp.empty() && n == builder_.n_key_);
  const float max = row_kernels::maximum(row.data(), n);
  s.max_weight[i] = max;
  s.min_weight[i] = row_kernels::least_below_zero(row.data(), n);
  s.max_key[i] = max == 0.0f ? -1 : static_cast<std::int32_t>(row_kernels::find_first(row.data(), n, max));
  const row_kernels::EntropySums rest = row_kernels::entropy_sums(row.data(), n);
  const double first = row[0];
  s.entropy[i] = static_cast<float>(
      std::max(0.0, -(static_cast<double>(rest.plogp) + (first > 0 ? first * std::log(first) : 0.0))));
  // Renormalised by m = Σ_{k≥1} p_k:  −Σ (p/m) ln (p/m) = ln m − (Σ p ln p) / m.
  s.entropy_without_first[i] = rest.mass < nothing_left ? std::numeric_limits<float>::quiet_NaN()
                                                        : std::max(0.0f, std::log(rest.mass) - rest.plogp / rest.mass);
  accumulate(query, {0, n}, row.data(), 1.0f);
}

void HeadStatsBuilder::Tile::accumulate(Index query, KeyRange keys, float* row, float factor) {
  HeadStats& s = *builder_.stats_;
  const auto i = at(query);
  const Index local = query - first_;
  assert(local >= 0 && local < rows_);
  row_kernels::scale_and_add(row, keys.size(), factor, column_.data() + keys.begin,
                             diagonal_.data() + keys.begin - local + rows_ - 1);
  if (builder_.kept_.defined()) keep(query, keys, row);
  s.first[i] = keys.begin == 0 && keys.size() > 0 ? row[0] : 0.0f;
  if (builder_.links_) {
    const int position = static_cast<int>(builder_.offset_ + query);
    const auto sum = [&](const TokenLinks::List& list) {
      double mass = 0;
      for (const std::int32_t key : list.row(position))
        if (key >= keys.begin && key < keys.end) mass += row[key - keys.begin];
      return static_cast<float>(mass);
    };
    s.duplicate[i] = sum(builder_.links_->duplicate);
    s.induction[i] = sum(builder_.links_->induction);
  }
  if (const Index bin = s.overview.bin; bin > 1) {
    row_kernels::farther(peak_.data() + keys.begin, row, keys.size());
    if ((query + 1) % bin == 0 || local + 1 == rows_) pool_rows(query / bin);
  }
}

void HeadStatsBuilder::Tile::keep(Index query, KeyRange keys, const float* row) {
  float* const out = &builder_.kept_.ref(query, 0);
  std::fill(out, out + keys.begin, 0.0f);
  std::copy_n(row, keys.size(), out + keys.begin);
  std::fill(out + keys.end, out + builder_.n_key_, 0.0f);
}

void HeadStatsBuilder::Tile::pool_rows(Index bin_row) {
  Overview& overview = builder_.stats_->overview;
  row_kernels::farthest(peak_.data(), builder_.n_key_, overview.bin, &overview.values.ref(bin_row, 0));
  std::ranges::fill(peak_, 0.0f);
}

std::shared_ptr<const HeadStats> HeadStatsBuilder::finish() {
  HeadStats& s = *stats_;
  lay_out(s.partial.empty() ? PartialSums() : *s.partial.back(), n_query_, n_key_, s.column_mass, s.distance_mass);
  for (int tile = static_cast<int>(first_tile_); tile < tiles(); ++tile) {
    // Two, so that a text may lose its last words too.
    if (keep_partial_ && tile > first_tile_ && tile >= tiles() - 2)
      s.partial.push_back(
          std::make_shared<const PartialSums>(PartialSums{tile * tile_rows_, n_key_, s.column_mass, s.distance_mass}));
    const Index first = tile * tile_rows_, rows = std::min(tile_rows_, n_query_ - first);
    const std::vector<float>& column = column_[at(tile)];
    const std::vector<float>& diagonal = diagonal_[at(tile)];
    for (Index k = 0; k < n_key_; ++k) s.column_mass[at(k)] += column[at(k)];
    for (Index r = 0; r < rows + n_key_ - 1; ++r) s.distance_mass[at(n_key_ - 2 - r + rows + first)] += diagonal[at(r)];
  }
  if (s.partial.size() > 2) s.partial.erase(s.partial.begin(), s.partial.end() - 2);
  column_.clear();
  diagonal_.clear();
  return std::move(stats_);
}

std::shared_ptr<const HeadStats> stats_of_weights(const Tensor& weights, const TokenLinks* links, Index offset) {
  return stats_of_weights(RowBlocks(weights), links, offset);
}

std::shared_ptr<const HeadStats> stats_of_weights(const RowBlocks& weights, const TokenLinks* links, Index offset,
                                                  const KnownRows& known) {
  HeadStatsBuilder builder(weights.rows(), weights.columns(), offset, links, false, {}, known);
  std::vector<float> row(at(weights.columns()));
  const Index step = builder.tile_rows();
  for (auto t = static_cast<int>(builder.first_row() / step); t < builder.tiles(); ++t) {
    HeadStatsBuilder::Tile tile(builder, t);
    for (Index query = t * step; query < std::min((t + 1) * step, weights.rows()); ++query) {
      weights.row(query, {0, weights.columns()}, row.data());
      tile.weights(query, row);
    }
  }
  return builder.finish();
}

void softmax_row(std::span<float> row, float sink) {
  const float largest = row_kernels::maximum(row.data(), static_cast<Index>(row.size())), max = std::max(largest, sink);
  if (largest == -float_infinity) {
    std::ranges::fill(row, 0.0f);
    return;
  }
  const row_kernels::SoftmaxSums sums = row_kernels::exponentiate(row.data(), static_cast<Index>(row.size()), max);
  const double beside = sink == no_sink ? 0 : std::exp(static_cast<double>(sink) - static_cast<double>(max));
  const auto factor = static_cast<float>(1.0 / (static_cast<double>(row[0]) + sums.rest + beside));
  row_kernels::scale(row.data(), static_cast<Index>(row.size()), factor);
}

}  // namespace headscope
