#include "core/metrics/chance_bound.h"

#include <cmath>

namespace headscope {

double chance_bound(double score, double chance, Index rows) {
  if (!(score > chance)) return 1;
  const auto part = [](double a, double b) { return a > 0 ? a * std::log(a / b) : 0; };
  return std::exp(-static_cast<double>(rows) * (part(score, chance) + part(1 - score, 1 - chance)));
}

}  // namespace headscope
