#include "core/attention/positions/alibi.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdlib>

#include "core/base/half.h"

namespace headscope {

namespace {

std::vector<double> of_power_of_two(int heads) {
  std::vector<double> slopes;
  for (int h = 1; h <= heads; ++h) slopes.push_back(std::exp2(-8.0 * h / heads));
  return slopes;
}

}  // namespace

std::vector<double> alibi_slopes(int heads) {
  const int lower = static_cast<int>(std::bit_floor(static_cast<unsigned>(heads)));
  std::vector<double> slopes = of_power_of_two(lower);
  if (lower == heads) return slopes;
  const std::vector<double> finer = of_power_of_two(2 * lower);
  for (std::size_t i = 0; static_cast<int>(slopes.size()) < heads; i += 2) slopes.push_back(finer[i]);
  return slopes;
}

RulePtr alibi_rule(RulePtr base, double slope) {
  return biased_rule(
      std::move(base),
      [slope](Index query, Index key) {
        return static_cast<float>(-slope * static_cast<double>(std::abs(query - key)));
      },
      fmt::format("ALiBi slope {:.4g}", slope));
}

double rounded_alibi(double slope, double unit, Index position) {
  const auto rounded = [](double x) { return rounded_to_bfloat(static_cast<float>(x)); };
  return unit * static_cast<double>(rounded(rounded(slope / unit) * rounded(static_cast<double>(position))));
}

RulePtr rounded_alibi_rule(RulePtr base, double slope, double unit) {
  return biased_rule(
      std::move(base),
      [slope, unit](Index query, Index key) {
        return static_cast<float>(rounded_alibi(slope, unit, key) - rounded_alibi(slope, unit, query));
      },
      fmt::format("ALiBi slope {:.4g}, in bfloat16", slope));
}

}  // namespace headscope
