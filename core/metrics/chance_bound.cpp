#include "core/metrics/chance_bound.h"

#include <cmath>

namespace headscope {

double chance_bound(double score, double chance, Index rows) {
  return std::exp(log_chance_bound(score, chance, rows));
}

double log_chance_bound(double score, double chance, Index rows) {
  if (!(score > chance)) return 0;
  const auto part = [](double a, double b) { return a > 0 ? a * std::log(a / b) : 0; };
  return -static_cast<double>(rows) * (part(score, chance) + part(1 - score, 1 - chance));
}

}  // namespace headscope
