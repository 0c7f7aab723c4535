#include "core/io/imported_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"

namespace headscope {

void require_finite(const Tensor& weights, const std::string& where) {
  for (Index h = 0; h < weights.dim(0); ++h)
    for (Index q = 0; q < weights.dim(1); ++q)
      for (Index k = 0; k < weights.dim(2); ++k)
        if (const float w = weights.at(h, q, k); !std::isfinite(w))
          throw Error(where, "finite weights", fmt::format("{} at head {}, query {}, key {}", w, h, q, k));
}

bool is_causal(const Tensor& weights, Index offset) {
  for (Index h = 0; h < weights.dim(0); ++h)
    for (Index q = 0; q < weights.dim(1); ++q)
      for (Index k = offset + q + 1; k < weights.dim(2); ++k)
        if (weights.at(h, q, k) != 0.0f) return false;
  return true;
}

bool is_probability(const Tensor& weights, double tolerance) {
  for (Index h = 0; h < weights.dim(0); ++h)
    for (Index q = 0; q < weights.dim(1); ++q) {
      double sum = 0;
      for (Index k = 0; k < weights.dim(2); ++k) {
        const float w = weights.at(h, q, k);
        if (w < 0.0f) return false;
        sum += static_cast<double>(w);
      }
      if (!(std::abs(sum - 1) <= tolerance)) return false;
    }
  return true;
}

void append_maps(std::vector<AttentionMap>& maps, const AttentionMap::Place& place, const Tensor& weights, int kv_heads,
                 const std::function<std::shared_ptr<const AttentionRule>(int head, const Tensor& weights)>& rule,
                 const TokenLinks& links) {
  const int heads = static_cast<int>(weights.dim(0));
  const int shared = kv_heads > 0 ? std::max(heads / kv_heads, 1) : 1;  // query heads that read one key head
  for (int head = 0; head < heads; ++head) {
    AttentionMap::Place own = place;
    own.head = head;
    own.kv_head = kv_heads > 0 ? std::min(head / shared, kv_heads - 1) : head;
    const Tensor one = weights.select(0, head);
    maps.push_back(AttentionMap::dense(own, one, rule(head, one), stats_of_weights(one, &links, place.offset)));
  }
}

}  // namespace headscope
