#include "core/trace/attention_map.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "core/base/nth.h"
#include "core/tensor/panels.h"
#include "core/trace/row_kernels.h"

namespace headscope {

namespace {

// Tiles are computed in blocks of this size, whose scores stay in cache whatever the tile.
constexpr Index query_block = 64, key_block = 256;
// What is pooled is computed in pieces of about this size, which stay in cache until they are pooled.
constexpr Index pooled_rows = 128, pooled_columns = 1024;

Index ceil_div(Index a, Index b) {
  return (a + b - 1) / b;
}

[[maybe_unused]] bool inside(KeyRange range, Index extent) {
  return range.begin >= 0 && range.begin <= range.end && range.end <= extent;
}

KeyRange intersect(KeyRange a, KeyRange b) {
  const Index begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

/// The factors of one map, and the formula: exp(scale · q_i·k_j + bias(i, j) − lse_i). Scores come from the same
/// product as in the pass that made the map (core/attention), so they have the same bits.
struct Factors {
  const Tensor& q;
  const Tensor& k;
  float scale;
  const AttentionRule* rule;  // null: every key is visible
  Index offset;
  const std::vector<double>& log_sum_exp;

  KeyRange visible(Index query) const { return rule ? rule->keys(offset + query, k.dim(0)) : KeyRange{0, k.dim(0)}; }

  // Weights of the visible part of `keys` into out[key - keys.begin]; `scores` are those of `keys`, biased here.
  void finish_row(Index query, KeyRange keys, float* scores, float* out) const {
    const KeyRange seen = intersect(visible(query), keys);
    if (seen.size() == 0) return;
    float* const first = scores + (seen.begin - keys.begin);
    if (rule && !rule->plain()) rule->apply(offset + query, seen.begin, {first, static_cast<std::size_t>(seen.size())});
    row_kernels::weights_of_scores(first, seen.size(), nth(log_sum_exp, query), out + (seen.begin - keys.begin));
  }

  // Fills out (queries.size(), keys.size()), row stride `stride`, which must be zero on entry.
  void fill(KeyRange queries, KeyRange keys, float* out, Index stride) const {
    const Index depth = q.dim(1);
    const Tensor q_rows = q.slice(0, queries.begin, queries.end).packed();
    std::vector<float> scores(
        static_cast<std::size_t>(std::min(query_block, queries.size()) * std::min(key_block, keys.size())));
    for (Index key0 = keys.begin; key0 < keys.end; key0 += key_block) {
      const KeyRange block{key0, std::min(keys.end, key0 + key_block)};
      Tensor packed;  // made when the first query that sees one of these keys comes along
      for (Index query0 = queries.begin; query0 < queries.end; query0 += query_block) {
        const Index query1 = std::min(queries.end, query0 + query_block);
        bool any = false;
        for (Index query = query0; query < query1 && !any; ++query) any = intersect(visible(query), block).size() > 0;
        if (!any) continue;
        if (!packed.defined()) {
          packed = Tensor::uninitialized({panels::packed_size(depth, block.size())});
          panels::pack(k.slice(0, block.begin, block.end).transpose(0, 1), packed.mutable_data());
        }
        panels::multiply(q_rows.data() + (query0 - queries.begin) * depth, depth, query1 - query0, depth, packed.data(),
                         depth * panels::width(), block.size(), scale, nullptr, scores.data(), block.size());
        for (Index query = query0; query < query1; ++query)
          finish_row(query, block, scores.data() + (query - query0) * block.size(),
                     out + (query - queries.begin) * stride + (block.begin - keys.begin));
      }
    }
  }
};

// Pools (rows, columns) numbers, `stride` apart, into out (⌈rows / bin⌉, ⌈columns / bin⌉), beside what stands there.
void pool_into(const float* values, Index stride, Index rows, Index columns, Index bin, float* out, Index out_stride) {
  std::vector<float> peak(static_cast<std::size_t>(columns)), cells(static_cast<std::size_t>(ceil_div(columns, bin)));
  for (Index r0 = 0; r0 < rows; r0 += bin) {
    // Down first, whole rows at a time: that is nearly all of the work, and it is vectorised.
    std::copy_n(values + r0 * stride, columns, peak.begin());
    for (Index r = r0 + 1; r < std::min(rows, r0 + bin); ++r)
      row_kernels::farther(peak.data(), values + r * stride, columns);
    row_kernels::farthest(peak.data(), columns, bin, cells.data());
    row_kernels::farther(out + r0 / bin * out_stride, cells.data(), std::ssize(cells));
  }
}

template <class T>
std::size_t bytes_of(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

}  // namespace

void pool_weight(float& cell, float weight) {
  if (std::isnan(cell)) return;
  const float far = std::abs(weight), had = std::abs(cell);
  if (!(far < had) && !(far == had && weight < cell)) cell = weight;
}

Tensor pooled(const Tensor& values, Index bin) {
  const Tensor packed = values.packed();
  Tensor out = Tensor::zeros({ceil_div(values.dim(0), bin), ceil_div(values.dim(1), bin)});
  if (out.size() > 0)
    pool_into(packed.data(), values.dim(1), values.dim(0), values.dim(1), bin, out.mutable_data(), out.dim(1));
  return out;
}

AttentionMap AttentionMap::dense(Place place, Tensor weights, std::shared_ptr<const AttentionRule> rule,
                                 std::shared_ptr<const HeadStats> stats) {
  assert(weights.defined() && weights.rank() == 2);
  return dense(place, RowBlocks(weights), std::move(rule), std::move(stats));
}

AttentionMap AttentionMap::dense(Place place, RowBlocks weights, std::shared_ptr<const AttentionRule> rule,
                                 std::shared_ptr<const HeadStats> stats) {
  assert(weights.defined() && stats);
  AttentionMap map;
  map.place_ = place;
  map.n_query_ = weights.rows();
  map.n_key_ = weights.columns();
  map.weights_ = std::move(weights);
  map.rule_ = std::move(rule);
  map.stats_ = std::move(stats);
  return map;
}

AttentionMap AttentionMap::factored(Place place, Tensor q, Tensor k, float scale,
                                    std::shared_ptr<const AttentionRule> rule, std::shared_ptr<const HeadStats> stats) {
  assert(q.defined() && k.defined() && q.rank() == 2 && k.rank() == 2 && q.dim(1) == k.dim(1));
  assert(stats && static_cast<Index>(stats->log_sum_exp.size()) == q.dim(0));
  AttentionMap map;
  map.place_ = place;
  map.n_query_ = q.dim(0);
  map.n_key_ = k.dim(0);
  map.q_ = std::move(q);
  map.k_ = std::move(k);
  map.scale_ = scale;
  map.rule_ = std::move(rule);
  map.stats_ = std::move(stats);
  return map;
}

AttentionMap AttentionMap::computed(Place place, std::shared_ptr<const ComputedCells> cells,
                                    std::shared_ptr<const AttentionRule> rule, std::shared_ptr<const HeadStats> stats) {
  assert(cells && stats);
  AttentionMap map;
  map.place_ = place;
  map.n_query_ = cells->rows();
  map.n_key_ = cells->columns();
  map.cells_ = std::move(cells);
  map.rule_ = std::move(rule);
  map.stats_ = std::move(stats);
  return map;
}

bool HeadStats::any_negative() const {
  return std::ranges::any_of(min_weight, [](float weight) { return weight < 0; });
}

std::size_t AttentionMap::bytes() const {
  std::size_t total = weights_.bytes();
  if (!stats_) return total;
  const HeadStats& s = *stats_;
  total += bytes_of(s.log_sum_exp) + bytes_of(s.entropy) + bytes_of(s.entropy_without_first) + bytes_of(s.max_weight) +
           bytes_of(s.min_weight) + bytes_of(s.max_key) + bytes_of(s.first) + bytes_of(s.duplicate) +
           bytes_of(s.induction) + bytes_of(s.column_mass) + bytes_of(s.distance_mass);
  for (const auto& each : s.partial) total += bytes_of(each->column_mass) + bytes_of(each->distance_mass);
  // A small dense map may be its own overview: then the storage is one.
  const Tensor& overview_values = s.overview.values;
  if (overview_values.defined() && !weights_.holds(overview_values)) total += overview_values.bytes();
  return total;
}

float AttentionMap::weight(Index query, Index key) const {
  assert(query >= 0 && query < n_query_ && key >= 0 && key < n_key_);
  if (is_dense()) return weights_.at(query, key);
  float out = 0;
  compute({query, query + 1}, {key, key + 1}, &out, 1);
  return out;
}

bool AttentionMap::masked(Index query, Index key) const {
  assert(query >= 0 && query < n_query_ && key >= 0 && key < n_key_);
  return rule_ && headscope::masked(*rule_, place_.offset + query, key, n_key_);
}

void AttentionMap::row(Index query, std::span<float> out) const {
  assert(query >= 0 && query < n_query_ && static_cast<Index>(out.size()) == n_key_);
  if (is_dense()) return weights_.row(query, {0, n_key_}, out.data());
  compute({query, query + 1}, {0, n_key_}, out.data(), n_key_);
}

Tensor AttentionMap::tile(KeyRange queries, KeyRange keys) const {
  assert(inside(queries, n_query_) && inside(keys, n_key_));
  if (is_dense()) return weights_.tile(queries, keys);
  Tensor out = Tensor::uninitialized({queries.size(), keys.size()});
  compute(queries, keys, out.mutable_data(), keys.size());
  return out;
}

void AttentionMap::compute(KeyRange queries, KeyRange keys, float* out, Index stride) const {
  if (queries.size() == 0 || keys.size() == 0) return;
  if (cells_) return cells_->write(queries, keys, out, stride);
  for (Index i = 0; i < queries.size(); ++i) std::fill_n(out + i * stride, keys.size(), 0.0f);
  Factors{q_, k_, scale_, rule_.get(), place_.offset, stats_->log_sum_exp}.fill(queries, keys, out, stride);
}

Tensor AttentionMap::pooled(KeyRange queries, KeyRange keys, Index bin) const {
  assert(inside(queries, n_query_) && inside(keys, n_key_) && bin > 0);
  if (bin == 1) return tile(queries, keys);
  Tensor out = Tensor::zeros({ceil_div(queries.size(), bin), ceil_div(keys.size(), bin)});
  // Blocks of whole bins, about as large as a core's cache holds; rows that are computed from their first column on are
  // not computed twice.
  const Index rows = ceil_div(pooled_rows, bin) * bin,
              columns = cells_ ? std::max<Index>(keys.size(), 1) : ceil_div(pooled_columns, bin) * bin;
  Tensor block;
  for (Index q0 = queries.begin; q0 < queries.end; q0 += rows)
    for (Index k0 = keys.begin; k0 < keys.end; k0 += columns) {
      const KeyRange q{q0, std::min(queries.end, q0 + rows)}, k{k0, std::min(keys.end, k0 + columns)};
      float* const cells = &out.ref((q0 - queries.begin) / bin, (k0 - keys.begin) / bin);
      if (const Tensor there = weights_.view(q); there.defined() && there.stride(1) == 1) {
        pool_into(there.data() + k.begin, there.stride(0), q.size(), k.size(), bin, cells, out.stride(0));
      } else if (is_dense()) {
        const Tensor copy = tile(q, k);
        pool_into(copy.data(), k.size(), q.size(), k.size(), bin, cells, out.stride(0));
      } else if (!sees(q, k)) {
        for (Index r = 0; r < ceil_div(q.size(), bin); ++r)
          std::fill_n(cells + r * out.stride(0), ceil_div(k.size(), bin), 0.0f);
      } else {
        if (!block.defined())
          block = Tensor::uninitialized({std::min(rows, queries.size()) * std::min(columns, keys.size())});
        compute(q, k, block.mutable_data(), k.size());
        pool_into(block.data(), k.size(), q.size(), k.size(), bin, cells, out.stride(0));
      }
    }
  return out;
}

bool AttentionMap::sees(KeyRange queries, KeyRange keys) const {
  if (!rule_) return queries.size() > 0 && keys.size() > 0;
  for (Index query = queries.begin; query < queries.end; ++query)
    if (intersect(rule_->keys(place_.offset + query, n_key_), keys).size() > 0) return true;
  return false;
}

std::optional<AttentionMap::Cell> AttentionMap::strongest(KeyRange queries, KeyRange keys) const {
  const Tensor weights = tile(queries, keys);
  std::optional<Cell> best;
  for (Index q = 0; q < weights.dim(0); ++q)
    for (Index k = 0; k < weights.dim(1); ++k) {
      const float weight = weights.at(q, k);
      if (std::isnan(weight) || (best && std::abs(weight) <= std::abs(best->weight))) continue;
      if (!masked(queries.begin + q, keys.begin + k)) best = Cell{queries.begin + q, keys.begin + k, weight};
    }
  return best;
}

Overview AttentionMap::overview(Index max_cells) const {
  max_cells = std::max<Index>(max_cells, 1);
  const Index longest = std::max(n_query_, n_key_);
  const Index bin = std::max<Index>(ceil_div(longest, max_cells), 1);
  const Overview& stored = stats_->overview;
  const bool have_stored = stored.values.defined();
  // The stored picture answers when it is fine enough, and for maps that are not dense also when only a finer one would
  // cost n²: cells that were asked for exactly (bin 1) are computed all the same, they are what the caller counted on.
  if (have_stored && (stored.bin <= bin || (!is_dense() && bin > 1))) {
    const Index cells = std::max(stored.values.dim(0), stored.values.dim(1));
    const Index factor = std::max<Index>(ceil_div(cells, max_cells), 1);
    if (factor == 1) return stored;
    return {static_cast<int>(stored.bin * factor), headscope::pooled(stored.values, factor)};
  }
  if (bin == 1) {
    const Tensor whole = weights_.view({0, n_query_});
    return {1, whole.defined() ? whole.packed() : to_dense()};
  }
  return {static_cast<int>(bin), pooled({0, n_query_}, {0, n_key_}, bin)};
}

}  // namespace headscope
