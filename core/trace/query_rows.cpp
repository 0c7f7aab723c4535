#include "core/trace/query_rows.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/trace/map_kinds.h"

namespace headscope {

QueryRows query_rows(const Trace& trace, Index query, const WordGroups* words) {
  if (trace.maps.empty())
    throw Error("rows of the heads", "a trace with attention maps", "none", "run it again with maps recorded");
  const AttentionMap& first = trace.maps.front();
  const Index offset = first.place().offset, keys = words ? words->words() : first.n_key();
  const Index begin = words ? 0 : offset, end = words ? words->words() : offset + first.n_query();
  if (query < begin || query >= end)
    throw Error("query of the rows", fmt::format("a position from {} to {}", begin, end - 1), std::to_string(query));
  QueryRows out;
  out.kind = (trace.model.dims.hybrid() ? first_of_shares(trace.maps) : first).place().kind;
  out.weights = Tensor::zeros({static_cast<Index>(trace.maps.size()), keys});
  std::vector<float> row(static_cast<std::size_t>(first.n_key()));
  for (std::size_t m = 0; m < trace.maps.size(); ++m) {
    const AttentionMap& map = trace.maps[m];
    if (map.n_query() != first.n_query() || map.n_key() != first.n_key() || map.place().offset != offset)
      throw Error("rows of the heads", fmt::format("maps of one shape, {} × {}", first.n_query(), first.n_key()),
                  fmt::format("{} × {} in layer {} head {}", map.n_query(), map.n_key(), map.layer(), map.head()));
    out.heads.push_back(map.id());
    const auto at = static_cast<Index>(m);
    if (!words) map.row(query - offset, row);
    for (Index k = 0; k < keys; ++k)
      out.weights.ref(at, k) = words                           ? weight_in_words(map, *words, query, k)
                               : map.masked(query - offset, k) ? std::numeric_limits<float>::quiet_NaN()
                                                               : nth(row, k);
  }
  return out;
}

void hide_first_key(QueryRows& rows, bool renormalize) {
  Tensor& weights = rows.weights;
  for (Index r = 0; r < weights.dim(0); ++r) {
    weights.ref(r, 0) = std::numeric_limits<float>::quiet_NaN();
    if (!renormalize) continue;
    double rest = 0;
    for (Index k = 1; k < weights.dim(1); ++k)
      if (!std::isnan(weights.at(r, k))) rest += static_cast<double>(weights.at(r, k));
    for (Index k = 1; k < weights.dim(1); ++k)
      if (!std::isnan(weights.at(r, k)))
        weights.ref(r, k) = rest > 1e-30 ? static_cast<float>(static_cast<double>(weights.at(r, k)) / rest) : 0.0f;
  }
}

QueryRows difference(const QueryRows& after, const QueryRows& before) {
  if (after.heads != before.heads || after.weights.dim(1) != before.weights.dim(1))
    throw Error("difference of rows",
                fmt::format("{} rows of {} keys in both", after.heads.size(), after.weights.dim(1)),
                fmt::format("{} rows of {}", before.heads.size(), before.weights.dim(1)));
  QueryRows out{Tensor::zeros({after.weights.dim(0), after.weights.dim(1)}), after.heads, MapKind::difference};
  for (Index r = 0; r < out.weights.dim(0); ++r)
    for (Index k = 0; k < out.weights.dim(1); ++k) {
      const float a = after.weights.at(r, k), b = before.weights.at(r, k);
      // What only one of them hides weighs nothing there.
      out.weights.ref(r, k) = std::isnan(a) && std::isnan(b) ? a : (std::isnan(a) ? 0 : a) - (std::isnan(b) ? 0 : b);
    }
  return out;
}

}  // namespace headscope
