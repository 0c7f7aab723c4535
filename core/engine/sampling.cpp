#include "core/engine/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"

namespace headscope {

std::int32_t sample_token(const Tensor& logits, const SamplingSettings& settings, Random& random) {
  const auto vocab = static_cast<std::size_t>(logits.dim(0));
  std::vector<std::int32_t> order(vocab);
  std::iota(order.begin(), order.end(), 0);
  const auto better = [&](std::int32_t a, std::int32_t b) {
    return logits.at(a) != logits.at(b) ? logits.at(a) > logits.at(b) : a < b;
  };
  if (!(settings.temperature > 0)) return *std::ranges::min_element(order, better);
  const std::size_t kept = settings.top_k > 0 ? std::min(vocab, static_cast<std::size_t>(settings.top_k)) : vocab;
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(), better);
  std::vector<double> weights;
  double total = 0;
  for (std::size_t i = 0; i < kept; ++i) {
    weights.push_back(std::exp((static_cast<double>(logits.at(order[i])) - static_cast<double>(logits.at(order[0]))) /
                               settings.temperature));
    total += weights.back();
  }
  double left = random.uniform() * total;
  std::size_t chosen = 0;
  while (chosen + 1 < kept && (left -= weights[chosen]) >= 0) ++chosen;
  return order[chosen];
}

void sample_text(const Model& model, const Ctx& ctx, const std::vector<std::int32_t>& prompt, int count,
                 const SamplingSettings& settings, Random& random, const std::function<bool(std::int32_t)>& found) {
  const ModelConfig& config = model.config();
  const auto given = static_cast<int>(prompt.size());
  if (given > config.context)
    throw Error("prompt", fmt::format("at most {} tokens, the context of {}", config.context, config.name),
                fmt::format("{}", given));
  const int room = config.context - given;  // the last token drawn is not read again
  KvCache cache(config.dims, config.context);
  std::vector<std::int32_t> next = prompt;
  for (int i = 0; i < std::min(count, room + 1); ++i) {
    const ForwardResult result = model.forward(ctx, next, &cache, {}, false);
    next = {sample_token(result.logits.select(0, 0), settings, random)};
    if (!found(next[0])) return;
  }
}

}  // namespace headscope
