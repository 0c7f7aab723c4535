#include "core/attention/positions/t5_bias.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/base/nth.h"

namespace headscope {

int t5_bucket(Index key_minus_query, bool bidirectional, int buckets, int max_distance) {
  int first = 0;
  Index distance = -key_minus_query;
  if (bidirectional) {
    buckets /= 2;
    if (distance < 0) first = buckets;
    distance = std::abs(distance);
  } else {
    distance = std::max<Index>(distance, 0);
  }
  const int exact = buckets / 2;
  assert(exact > 0 && max_distance > exact);
  if (distance < exact) return first + static_cast<int>(distance);
  const double share =
      std::log(static_cast<double>(distance) / exact) / std::log(static_cast<double>(max_distance) / exact);
  return first + std::min(exact + static_cast<int>(share * (buckets - exact)), buckets - 1);
}

RulePtr t5_rule(RulePtr base, std::vector<float> bias, int max_distance, bool bidirectional) {
  const int buckets = static_cast<int>(bias.size());
  const std::string name = fmt::format("T5 bias {} buckets to {}", buckets, max_distance);
  return biased_rule(
      std::move(base),
      [bias = std::move(bias), buckets, max_distance, bidirectional](Index query, Index key) {
        return nth(bias, t5_bucket(key - query, bidirectional, buckets, max_distance));
      },
      name);
}

std::vector<float> t5_fit(const Tensor& scores, const AttentionRule& rule, int buckets, int max_distance) {
  std::vector<double> sum(static_cast<std::size_t>(buckets)), count(sum.size());
  const Index n = scores.dim(0), keys = scores.dim(1);
  for (Index i = 0; i < n; ++i) {
    double row = 0;
    Index seen = 0;
    for (Index j = 0; j < keys; ++j)
      if (!masked(rule, i, j, keys)) row += static_cast<double>(scores.at(i, j)), ++seen;
    for (Index j = 0; j < keys; ++j) {
      if (masked(rule, i, j, keys)) continue;
      const auto bucket = static_cast<std::size_t>(t5_bucket(j - i, false, buckets, max_distance));
      sum[bucket] += static_cast<double>(scores.at(i, j)) - row / static_cast<double>(seen);
      count[bucket] += 1;
    }
  }
  std::vector<float> bias(sum.size(), 0.0f);
  for (std::size_t b = 0; b < sum.size(); ++b) {
    std::size_t from = b;  // nearest bucket that has cells, the nearer distance first
    while (from > 0 && count[from] == 0) --from;
    if (count[from] > 0) bias[b] = static_cast<float>(sum[from] / count[from]);
  }
  return bias;
}

}  // namespace headscope
