#include "core/io/imported_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/memory.h"

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

void require_room(double maps, Index n_query, Index n_key, std::uint64_t available, const std::string& where) {
  constexpr double of_any_map = 1500;  // the map, its statistics' vectors and what the allocator adds
  const auto rows = static_cast<double>(n_query), keys = static_cast<double>(n_key);
  const auto cells = static_cast<double>(stored_overview_cells);
  const double overview = n_query > stored_overview_cells || n_key > stored_overview_cells ? cells * cells : 0;
  const double each = of_any_map + sizeof(float) * (rows * keys + overview) + 40 * rows + 16 * keys;
  if (maps * each > static_cast<double>(available))
    throw Error(where, fmt::format("maps that fit into {} of free memory", memory_text(static_cast<double>(available))),
                fmt::format("{:.0f} maps of {} × {}, which take {}", maps, n_query, n_key, memory_text(maps * each)),
                "save fewer layers, heads or positions");
}

void append_maps(std::vector<AttentionMap>& maps, const AttentionMap::Place& place, const Tensor& weights,
                 const ModelDims& dims,
                 const std::function<std::shared_ptr<const AttentionRule>(int head, const Tensor& weights)>& rule,
                 const TokenLinks* links, const std::function<MapKind(int head)>& kind) {
  const int heads = static_cast<int>(weights.dim(0));
  for (int head = 0; head < heads; ++head) {
    AttentionMap::Place own = place;
    own.head = head;
    if (kind) own.kind = kind(head);
    own.kv_head = dims.kv_of(head, place.layer);
    const Tensor one = weights.select(0, head);
    maps.push_back(AttentionMap::dense(own, one, rule(head, one), stats_of_weights(one, links, place.offset)));
  }
}

}  // namespace headscope
