#include "core/attention/positions/disentangled.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/nth.h"
#include "core/tensor/panels.h"

namespace headscope {

Index distance_row(Index query_minus_key, Index span, int max_distance) {
  Index at = query_minus_key;
  if (const Index near = span / 2, far = std::abs(at); max_distance > 0 && far > near) {
    const double share = std::log(static_cast<double>(far) / static_cast<double>(near)) /
                         std::log(static_cast<double>(max_distance - 1) / static_cast<double>(near));
    const auto bucket = near + static_cast<Index>(std::ceil(share * static_cast<double>(near - 1)));
    at = at < 0 ? -bucket : bucket;
  }
  return std::clamp<Index>(at + span, 0, 2 * span - 1);
}

/// Rows [first_row, first_row + columns) of the tables.
struct DistanceProducts {
  Index first_row = 0;
  Tensor of_queries, of_keys;  // (query | key, row) scaled; undefined where the table is
};

namespace {

/// Row of every distance from query − key = `lowest` on.
struct RowsOfDistances {
  Index lowest = 0;
  std::vector<Index> rows;
  RowsOfDistances(const DistanceVectors& of, Index first, Index last) : lowest(first) {
    for (Index d = first; d <= last; ++d) rows.push_back(distance_row(d, of.span, of.max_distance));
  }
  Index at(Index query, Index key) const { return nth(rows, query - key - lowest); }
};

/// In parts, which the compiler adds side by side.
float dot(const float* a, const float* b, Index count) {
  constexpr Index lanes = 16;
  float part[lanes] = {}, sum = 0;
  const Index whole = count / lanes * lanes;
  for (Index c = 0; c < whole; c += lanes)
    for (Index lane = 0; lane < lanes; ++lane) part[lane] += a[c + lane] * b[c + lane];
  for (Index c = whole; c < count; ++c) sum += a[c] * b[c];
  for (const float each : part) sum += each;
  return sum;
}

std::string words_of(const HeadRule& rule) {
  return fmt::format("{}, disentangled {} distances", rule.rule->describe(), 2 * rule.distances->span);
}

/// The keys that a rule shows, by the name of one that knows distances.
class Told final : public AttentionRule {
 public:
  Told(RulePtr base, std::string words) : base_(std::move(base)), words_(std::move(words)) {}
  KeyRange keys(Index query, Index n_key) const override { return base_->keys(query, n_key); }
  bool plain() const override { return base_->plain(); }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    if (!base_->plain()) base_->apply(query, first_key, scores);
  }
  float factor(Index query) const override { return base_->factor(query); }
  float cap(Index query) const override { return base_->cap(query); }
  float sink(Index query) const override { return base_->sink(query); }
  std::string describe() const override { return words_; }

 private:
  RulePtr base_;
  std::string words_;
};

bool holds(const HeadRule& rule, Index query) {
  return std::ranges::none_of(rule.without_distances,
                              [&](const KeyRange& rows) { return query >= rows.begin && query < rows.end; });
}

class Disentangled final : public AttentionRule {
 public:
  Disentangled(const HeadRule& rule, const Tensor& q, const Tensor& k, Index offset,
               const std::shared_ptr<const DistanceProducts>& products)
      : rule_(rule),
        q_(q.stride(1) == 1 ? q : q.copy()),
        k_(k.stride(1) == 1 ? k : k.copy()),
        offset_(offset),
        products_(products),
        rows_(*rule.distances, offset - (k.dim(0) - 1), offset + q.dim(0) - 1) {}
  KeyRange keys(Index query, Index n_key) const override { return base().keys(query, n_key); }
  bool plain() const override { return false; }
  void apply(Index query, Index first_key, std::span<float> scores) const override {
    if (holds(rule_, query)) {
      if (const auto products = products_.lock())
        add(*products, query, first_key, scores);
      else
        for (std::size_t c = 0; c < scores.size(); ++c) {
          const DistanceTerms terms = terms_of(query, first_key + static_cast<Index>(c));
          scores[c] += static_cast<float>(terms.content_to_position) + static_cast<float>(terms.position_to_content);
        }
    }
    if (!base().plain()) base().apply(query, first_key, scores);
  }
  float factor(Index query) const override { return base().factor(query); }
  float cap(Index query) const override { return base().cap(query); }
  float sink(Index query) const override { return base().sink(query); }
  std::optional<DistanceTerms> distance_terms(Index query, Index key) const override {
    if (!holds(rule_, query)) return std::nullopt;
    return terms_of(query, key);
  }
  std::string describe() const override { return words_of(rule_); }

 private:
  const AttentionRule& base() const { return *rule_.rule; }
  const DistanceVectors& vectors() const { return *rule_.distances; }

  DistanceTerms terms_of(Index query, Index key) const {
    DistanceTerms terms;
    terms.row = rows_.at(query, key);
    const auto product = [&](const Tensor& table, const Tensor& x, Index row) {
      if (!table.defined()) return 0.0;
      return static_cast<double>(
          rule_.scale * dot(x.data() + row * x.stride(0), table.data() + terms.row * table.stride(0), x.dim(1)));
    };
    terms.content_to_position = product(vectors().keys, q_, query - offset_);
    terms.position_to_content = product(vectors().queries, k_, key);
    return terms;
  }

  void add(const DistanceProducts& products, Index query, Index first_key, std::span<float> scores) const {
    const float* const of_query = products.of_queries.defined()
                                      ? products.of_queries.data() + (query - offset_) * products.of_queries.dim(1)
                                      : nullptr;
    const Index width = products.of_keys.defined() ? products.of_keys.dim(1) : 0;
    const float* const of_keys = width > 0 ? products.of_keys.data() + first_key * width : nullptr;
    const Index* const rows = rows_.rows.data() + (query - first_key - rows_.lowest);
    for (Index c = 0; c < static_cast<Index>(scores.size()); ++c) {
      const Index row = rows[-c] - products.first_row;
      float sum = 0;
      if (of_query) sum = of_query[row];
      if (of_keys) sum += of_keys[c * width + row];
      scores[static_cast<std::size_t>(c)] += sum;
    }
  }

  const HeadRule rule_;
  const Tensor q_, k_;  // (query | key, d_head)
  const Index offset_;
  const std::weak_ptr<const DistanceProducts> products_;
  const RowsOfDistances rows_;
};

}  // namespace

RulePtr met_rule(const HeadRule& rule, const Tensor& q, const Tensor& k, Index offset,
                 const std::shared_ptr<const DistanceProducts>& products) {
  if (!rule.distances) return rule.rule;
  return std::make_shared<Disentangled>(rule, q, k, offset, products);
}

RulePtr told_rule(const HeadRule& rule) {
  if (!rule.distances) return rule.rule;
  return std::make_shared<Told>(rule.rule, words_of(rule));
}

std::shared_ptr<const DistanceProducts> distance_products(const HeadRule& rule, const Tensor& q, const Tensor& k,
                                                          Index offset) {
  if (!rule.distances) return nullptr;
  const DistanceVectors& vectors = *rule.distances;
  auto out = std::make_shared<DistanceProducts>();
  // Rows grow with the distance: those of the nearest and the farthest bound all others.
  out->first_row = distance_row(offset - (k.dim(0) - 1), vectors.span, vectors.max_distance);
  const Index end = distance_row(offset + q.dim(0) - 1, vectors.span, vectors.max_distance) + 1;
  const auto multiplied = [&](const Tensor& x, const Tensor& table) {
    if (!table.defined()) return Tensor();
    const Tensor rows = x.stride(1) == 1 ? x : x.copy();
    const Index depth = x.dim(1), columns = end - out->first_row;
    Tensor packed = Tensor::uninitialized({panels::packed_size(depth, columns)});  // aligned as panels are
    panels::pack(table.slice(0, out->first_row, end).transpose(0, 1), packed.mutable_data());
    Tensor made = Tensor::uninitialized({x.dim(0), columns});
    panels::multiply_streamed({rows.data(), rows.stride(0)}, x.dim(0), depth, packed.data(), depth * panels::width(),
                              columns, rule.scale, made.mutable_data(), columns);
    return made;
  };
  out->of_queries = multiplied(q, vectors.keys);
  out->of_keys = multiplied(k, vectors.queries);
  return out;
}

void add_distance_gradients(const HeadRule& rule, Index query, Index first_key, std::span<const float> d_scores,
                            float* d_q, float* d_k, Index d_k_stride) {
  if (!rule.distances || !holds(rule, query)) return;
  const DistanceVectors& vectors = *rule.distances;
  const auto add = [](const Tensor& table, Index row, float by, float* to) {
    const float* const from = table.data() + row * table.stride(0);
    for (Index c = 0; c < table.dim(1); ++c) to[c] += by * from[c];
  };
  for (Index c = 0; c < static_cast<Index>(d_scores.size()); ++c) {
    const float by = rule.scale * d_scores[static_cast<std::size_t>(c)];
    if (by == 0) continue;
    const Index key = first_key + c, row = distance_row(query - key, vectors.span, vectors.max_distance);
    if (d_q && vectors.keys.defined()) add(vectors.keys, row, by, d_q);
    if (d_k && vectors.queries.defined()) add(vectors.queries, row, by, d_k + key * d_k_stride);
  }
}

}  // namespace headscope
