#include "core/metrics/trace_difference.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <map>
#include <string>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/trace/token_alignment.h"

namespace headscope {

namespace {

/// p ln(p / m); 0 for p = 0.
double part_of_kl(double p, double m) {
  return p > 0 ? p * std::log(p / m) : 0;
}

int partner_of(std::span<const int> partner, Index position, Index limit) {
  const int other = position < static_cast<Index>(partner.size()) ? nth(partner, position) : -1;
  return other < limit ? other : -1;
}
}  // namespace

namespace {
std::vector<int> align(const std::vector<Token>& a, const std::vector<Token>& b) {
  std::map<std::string, std::int32_t> known;
  const auto ids = [&](const std::vector<Token>& tokens) {
    std::vector<std::int32_t> out;
    for (const Token& token : tokens) {
      // Special tokens stand for no bytes and are told apart by their names; ids without a vocabulary by their number.
      const std::string& text = token.bytes.empty() ? token.label : token.bytes;
      const std::string key = text.empty() ? "#" + std::to_string(token.id) : (token.bytes.empty() ? "<" : ">") + text;
      out.push_back(known.emplace(key, static_cast<std::int32_t>(known.size())).first->second);
    }
    return out;
  };
  const auto left = ids(a), right = ids(b);
  return align_tokens(left, right);
}
}  // namespace

std::vector<int> align_traces(const Trace& a, const Trace& b) {
  return align(a.tokens, b.tokens);
}

std::vector<int> align_queries(const Trace& a, const Trace& b) {
  return align(a.queries(), b.queries());
}

HeadDifference head_difference(const AttentionMap& a, const AttentionMap& b, std::span<const int> partner,
                               Index most_rows, std::span<const int> queries) {
  HeadDifference out{.id = a.id()};
  const std::span<const int> of_queries = queries.empty() ? partner : queries;
  std::vector<std::pair<Index, Index>> rows;
  for (Index i = 0; i < a.n_query(); ++i) {
    const Index row = partner_of(of_queries, a.place().offset + i, b.place().offset + b.n_query()) - b.place().offset;
    if (row >= 0) rows.emplace_back(i, row);
  }
  if (rows.empty()) return out;
  std::vector<float> left(static_cast<std::size_t>(a.n_key())), right(static_cast<std::size_t>(b.n_key()));
  std::vector<char> paired(right.size());
  const auto used = std::min<Index>(std::max<Index>(most_rows, 1), static_cast<Index>(rows.size()));
  double variation = 0, divergence = 0;
  bool negative = false;
  for (Index r = 0; r < used; ++r) {
    const auto [i, j] = nth(rows, (r + 1) * static_cast<Index>(rows.size()) / used - 1);
    a.row(i, left);
    b.row(j, right);
    std::ranges::fill(paired, 0);
    const auto add = [&](double p, double q) {
      negative |= p < 0 || q < 0;
      variation += std::abs(p - q) / 2;
      divergence += (part_of_kl(p, (p + q) / 2) + part_of_kl(q, (p + q) / 2)) / 2;
    };
    for (Index k = 0; k < a.n_key(); ++k) {
      const int other = partner_of(partner, k, b.n_key());
      if (other >= 0) nth(paired, other) = 1;
      add(static_cast<double>(nth(left, k)), other >= 0 ? static_cast<double>(nth(right, other)) : 0);
    }
    for (std::size_t k = 0; k < right.size(); ++k)
      if (!paired[k]) add(0, static_cast<double>(right[k]));
  }
  out.rows = used;
  out.total_variation = variation / static_cast<double>(used);
  out.jensen_shannon = negative ? nan : divergence / static_cast<double>(used);
  return out;
}

std::vector<HeadDifference> head_differences(const Trace& a, const Trace& b, std::span<const int> partner,
                                             Index most_rows, const std::stop_token& stop) {
  if (a.between_texts() != b.between_texts())
    throw Error("difference of two runs", "attention within one text in both, or between two texts in both",
                "one of each");
  const std::vector<int> queries = a.between_texts() ? align_queries(a, b) : std::vector<int>();
  std::vector<HeadDifference> out;
  for (const AttentionMap& map : a.maps) {
    if (stop.stop_requested()) throw Cancelled();
    const auto other = std::ranges::find_if(
        b.maps, [&](const AttentionMap& m) { return m.layer() == map.layer() && m.head() == map.head(); });
    if (other != b.maps.end()) out.push_back(head_difference(map, *other, partner, most_rows, queries));
  }
  return out;
}

Tensor aligned_difference(const AttentionMap& a, const AttentionMap& b, std::span<const int> partner,
                          std::span<const int> queries) {
  const std::span<const int> of_queries = queries.empty() ? partner : queries;
  Tensor out = Tensor::full({a.n_query(), a.n_key()}, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> left(static_cast<std::size_t>(a.n_key())), right(static_cast<std::size_t>(b.n_key()));
  for (Index i = 0; i < a.n_query(); ++i) {
    const Index row = partner_of(of_queries, a.place().offset + i, b.place().offset + b.n_query()) - b.place().offset;
    if (row < 0) continue;
    a.row(i, left);
    b.row(row, right);
    for (Index k = 0; k < a.n_key(); ++k)
      if (const int other = partner_of(partner, k, b.n_key()); other >= 0)
        out.ref(i, k) = nth(right, other) - nth(left, k);
  }
  return out;
}

std::vector<double> aligned_kl(const Trace& a, const Trace& b, std::span<const int> partner) {
  if (!a.logits.defined() || !b.logits.defined() || a.logits.dim(1) != b.logits.dim(1)) return {};
  std::vector<double> out(a.tokens.size(), nan);
  for (std::size_t i = 0; i < out.size() && i < partner.size(); ++i)
    if (partner[i] >= 0) out[i] = next_token_change(a, b, 0, static_cast<int>(i), partner[i]).kl;
  return out;
}

}  // namespace headscope
