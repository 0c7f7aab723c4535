#include "core/trace/attention_map.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "core/base/nth.h"
#include "core/tensor/panels.h"

namespace headscope {

namespace {

// Tiles are computed in blocks of this size, whose scores stay in cache whatever the tile.
constexpr Index query_block = 64, key_block = 256;

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
    const double lse = nth(log_sum_exp, query);
    for (Index i = 0; i < seen.size(); ++i) {
      // A row whose every key is masked has lse −∞ too: a masked cell must not become exp(−∞ + ∞).
      if (first[i] == -std::numeric_limits<float>::infinity()) continue;
      out[seen.begin - keys.begin + i] = static_cast<float>(std::exp(static_cast<double>(first[i]) - lse));
    }
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

// Largest values of squares of `bin` cells; the last row and column of squares may be narrower.
Tensor pool_maximum(const Tensor& values, Index bin) {
  const Index rows = values.dim(0), columns = values.dim(1);
  Tensor pooled = Tensor::full({ceil_div(rows, bin), ceil_div(columns, bin)}, -std::numeric_limits<float>::infinity());
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < columns; ++c) {
      float& cell = pooled.ref(r / bin, c / bin);
      cell = std::max(cell, values.at(r, c));
    }
  return pooled;
}

template <class T>
std::size_t bytes_of(const std::vector<T>& values) {
  return values.size() * sizeof(T);
}

}  // namespace

AttentionMap AttentionMap::dense(Place place, Tensor weights, std::shared_ptr<const AttentionRule> rule,
                                 std::shared_ptr<const HeadStats> stats) {
  assert(weights.defined() && weights.rank() == 2 && stats);
  AttentionMap map;
  map.place_ = place;
  map.n_query_ = weights.dim(0);
  map.n_key_ = weights.dim(1);
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

std::size_t AttentionMap::bytes() const {
  std::size_t total = is_factored() || !weights_.defined() ? 0 : weights_.bytes();
  if (!stats_) return total;
  const HeadStats& s = *stats_;
  total += bytes_of(s.log_sum_exp) + bytes_of(s.entropy) + bytes_of(s.entropy_without_first) + bytes_of(s.max_weight) +
           bytes_of(s.max_key) + bytes_of(s.first) + bytes_of(s.duplicate) + bytes_of(s.induction) +
           bytes_of(s.column_mass) + bytes_of(s.distance_mass);
  // A small dense map may be its own overview: then the storage is one.
  const Tensor& overview_values = s.overview.values;
  if (overview_values.defined() && !(overview_values.storage() == weights_.storage())) total += overview_values.bytes();
  return total;
}

float AttentionMap::weight(Index query, Index key) const {
  assert(query >= 0 && query < n_query_ && key >= 0 && key < n_key_);
  if (!is_factored()) return weights_.at(query, key);
  float out = 0;
  Factors{q_, k_, scale_, rule_.get(), place_.offset, stats_->log_sum_exp}.fill({query, query + 1}, {key, key + 1},
                                                                                &out, 1);
  return out;
}

bool AttentionMap::masked(Index query, Index key) const {
  assert(query >= 0 && query < n_query_ && key >= 0 && key < n_key_);
  return rule_ && headscope::masked(*rule_, place_.offset + query, key, n_key_);
}

void AttentionMap::row(Index query, std::span<float> out) const {
  assert(query >= 0 && query < n_query_ && static_cast<Index>(out.size()) == n_key_);
  if (!is_factored()) {
    for (Index key = 0; key < n_key_; ++key) nth(out, key) = weights_.at(query, key);
    return;
  }
  std::fill(out.begin(), out.end(), 0.0f);
  Factors{q_, k_, scale_, rule_.get(), place_.offset, stats_->log_sum_exp}.fill({query, query + 1}, {0, n_key_},
                                                                                out.data(), n_key_);
}

Tensor AttentionMap::tile(KeyRange queries, KeyRange keys) const {
  assert(inside(queries, n_query_) && inside(keys, n_key_));
  if (!is_factored()) return weights_.slice(0, queries.begin, queries.end).slice(1, keys.begin, keys.end).copy();
  Tensor out = Tensor::zeros({queries.size(), keys.size()});
  Factors{q_, k_, scale_, rule_.get(), place_.offset, stats_->log_sum_exp}.fill(queries, keys, out.mutable_data(),
                                                                                keys.size());
  return out;
}

Overview AttentionMap::overview(Index max_cells) const {
  max_cells = std::max<Index>(max_cells, 1);
  const Index longest = std::max(n_query_, n_key_);
  const Index bin = std::max<Index>(ceil_div(longest, max_cells), 1);
  const Overview& stored = stats_->overview;
  const bool have_stored = stored.values.defined();
  // The stored picture answers when it is fine enough, and for factored maps also when only a finer one would cost n²:
  // cells that were asked for exactly (bin 1) are computed all the same, they are what the caller counted on.
  if (have_stored && (stored.bin <= bin || (is_factored() && bin > 1))) {
    const Index cells = std::max(stored.values.dim(0), stored.values.dim(1));
    const Index factor = std::max<Index>(ceil_div(cells, max_cells), 1);
    if (factor == 1) return stored;
    return {static_cast<int>(stored.bin * factor), pool_maximum(stored.values, factor)};
  }
  if (!is_factored()) return {static_cast<int>(bin), bin == 1 ? weights_.packed() : pool_maximum(weights_, bin)};

  // A band of rows at a time, so that the whole map never stands in memory.
  if (bin == 1) return {1, to_dense()};
  Tensor pooled = Tensor::uninitialized({ceil_div(n_query_, bin), ceil_div(n_key_, bin)});
  for (Index r = 0; r < pooled.dim(0); ++r) {
    const Tensor band = pool_maximum(tile({r * bin, std::min(n_query_, (r + 1) * bin)}, {0, n_key_}), bin);
    for (Index c = 0; c < pooled.dim(1); ++c) pooled.ref(r, c) = band.at(0, c);
  }
  return {static_cast<int>(bin), pooled};
}

}  // namespace headscope
