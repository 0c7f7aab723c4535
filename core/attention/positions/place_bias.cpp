#include "core/attention/positions/place_bias.h"

#include <fmt/format.h>

#include "core/base/nth.h"

namespace headscope {

Index place_bias(Index query, Index key, Index rows, Index columns) {
  const Index all = place_biases(rows, columns);
  if (query == 0 || key == 0) return all - (query > 0 ? 2 : key > 0 ? 3 : 1);
  const Index from = query - 1, to = key - 1, down = from / columns - to / columns + rows - 1,
              across = from % columns - to % columns + columns - 1;
  return down * (2 * columns - 1) + across;
}

RulePtr place_rule(RulePtr base, std::vector<float> bias, Index rows, Index columns) {
  return biased_rule(
      std::move(base),
      [bias = std::move(bias), rows, columns](Index query, Index key) {
        return nth(bias, place_bias(query, key, rows, columns));
      },
      fmt::format("place bias {} × {}", rows, columns));
}

}  // namespace headscope
