#include "core/attention/hybrid_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "core/base/words.h"

namespace headscope {

namespace {
/// What is added to 1 in the parentheses of a layer's FLOPs.
double softmax_extra(const HybridShape& s) {
  return s.tokens / (6 * s.width);
}
double lightning_extra(const HybridShape& s) {
  return 1 / (2 * s.heads);
}
/// Rotary positions, gates and norms, element by element: of either kind of layer.
double elementwise_extra(const HybridShape& s) {
  return 5 / (18 * s.width);
}

HybridCost cost_of(std::string name, const HybridShape& s, double softmax_share) {
  const double square = s.layers * s.width * s.width;
  const double extra =
      softmax_share * softmax_extra(s) + (1 - softmax_share) * lightning_extra(s) + elementwise_extra(s);
  return {std::move(name), square * (12 + (1 - softmax_share) * 2 / s.heads),
          72 * s.batch * s.tokens * square * (1 + extra), "", ""};
}

/// "7 l d² ÷ 4", in lowest terms.
std::string fraction(int above, int below, std::string_view of) {
  const int common = std::gcd(above, below);
  return fmt::format("{}{} ÷ {}", above / common, of, below / common);
}

/// "about 50 000 tokens": no more digits than the formula is worth.
std::string about_tokens(double tokens) {
  const double unit = std::pow(10, std::max(0.0, std::floor(std::log10(std::max(tokens, 1.0))) - 1));
  std::string digits = fmt::format("{:.0f}", std::ceil(tokens / unit) * unit);
  for (int at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) digits.insert(static_cast<std::size_t>(at), " ");
  return digits + said(" tokens");
}
}  // namespace

HybridCost softmax_model_cost(const HybridShape& shape) {
  HybridCost out = cost_of("softmax", shape, 1);
  out.parameters_by = "12 l d²";
  out.flops_by = "72 b n l d² (1 + n ÷ 6d + 5 ÷ 18d)";
  return out;
}

HybridCost lightning_model_cost(const HybridShape& shape) {
  HybridCost out = cost_of(said("lightning"), shape, 0);
  out.parameters_by = "12 l d² + 2 l d² ÷ h";
  out.flops_by = "72 b n l d² (1 + 1 ÷ 2h + 5 ÷ 18d)";
  return out;
}

HybridCost hybrid_model_cost(const HybridShape& shape, int every) {
  if (every == 1) return softmax_model_cost(shape);
  HybridCost out = cost_of(say("hybrid {} : 1", every - 1), shape, 1.0 / every);
  out.parameters_by = fmt::format("12 l d² + {}h", fraction(2 * (every - 1), every, " l d²"));
  out.flops_by =
      fmt::format("72 b n l d² (1 + n ÷ {}d + {}h + 5 ÷ 18d)", 6 * every, fraction(every - 1, 2 * every, ""));
  return out;
}

std::vector<HybridCost> hybrid_cost_table(const HybridShape& shape, int every) {
  return {softmax_model_cost(shape), lightning_model_cost(shape), hybrid_model_cost(shape, every)};
}

std::optional<double> hybrid_tokens_for_share(const HybridShape& shape, int every, double share) {
  // 1 + n / (6 d k) + (1 − 1/k) / (2 h) + e = share (1 + n / (6 d) + e), linear in n.
  const double kept = 1.0 / every, same = 1 + elementwise_extra(shape);
  const double left_over = same + (1 - kept) * lightning_extra(shape) - share * same;
  if (left_over <= 0) return 0;
  if (share <= kept) return std::nullopt;
  return 6 * shape.width * left_over / (share - kept);
}

std::string hybrid_crossings(const HybridShape& shape, int every) {
  if (every <= 1) return said("Every layer keeps softmax: nothing is saved.");
  const std::string name = say("hybrid {} : 1", every - 1);
  std::string out = say("The {} needs fewer FLOPs than softmax from {} on", name,
                        about_tokens(*hybrid_tokens_for_share(shape, every, 1)));
  if (const auto half = hybrid_tokens_for_share(shape, every, 0.5))
    out += say(", and half of them from {} on.", about_tokens(*half));
  else
    out += say("; half of them at no length: one layer in {} grows as softmax does.", every);
  return out;
}

}  // namespace headscope
