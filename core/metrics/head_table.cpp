#include <limits>
#include <map>
#include <tuple>

#include "core/base/error.h"
#include "core/metrics/metric.h"

namespace headscope {

HeadTable head_table(const Trace& trace) {
  return head_table(trace, TextMarks::of(trace.tokens));
}

HeadTable head_table(const Trace& trace, const TextMarks& text, const std::stop_token& stop) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  // Heads of one model share their mask, and chance depends on nothing else.
  std::map<std::tuple<const AttentionRule*, Index, Index, Index>, std::vector<double>> chances;
  HeadTable result;
  for (const AttentionMap& map : trace.maps) {
    if (stop.stop_requested()) throw Cancelled();
    if (map.n_query() == 0) {
      result.value.emplace_back(metrics().size(), nan);
      result.chance.emplace_back(metrics().size(), nan);
      continue;
    }
    std::vector<double>& values = result.value.emplace_back();
    for (const Metric& entry : metrics()) values.push_back(entry.value({map, text}));
    std::vector<double>& chance = chances[{map.rule(), map.n_query(), map.n_key(), map.place().offset}];
    if (chance.empty())
      for (const Metric& entry : metrics()) chance.push_back(entry.chance({map, text}));
    result.chance.push_back(chance);
  }
  return result;
}

}  // namespace headscope
