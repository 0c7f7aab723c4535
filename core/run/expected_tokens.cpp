#include "core/run/expected_tokens.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "core/base/nth.h"
#include "core/base/random.h"

namespace headscope {

namespace {

/// Mean over the rows of softmax(logits).
std::vector<double> mean_distribution(const Tensor& logits) {
  const auto vocab = static_cast<std::size_t>(logits.dim(1));
  std::vector<double> mean(vocab, 0.0), row(vocab);
  for (Index i = 0; i < logits.dim(0); ++i) {
    float high = logits.at(i, 0);
    for (std::size_t t = 0; t < vocab; ++t) high = std::max(high, logits.at(i, static_cast<Index>(t)));
    double sum = 0;
    for (std::size_t t = 0; t < vocab; ++t)
      sum += row[t] = std::exp(static_cast<double>(logits.at(i, static_cast<Index>(t))) - static_cast<double>(high));
    for (std::size_t t = 0; t < vocab; ++t) mean[t] += row[t] / sum / static_cast<double>(logits.dim(0));
  }
  return mean;
}

std::int32_t drawn(const std::vector<double>& distribution, Random& random) {
  double left = random.uniform();
  for (std::size_t t = 0; t < distribution.size(); ++t)
    if ((left -= distribution[t]) < 0) return static_cast<std::int32_t>(t);
  return static_cast<std::int32_t>(distribution.size()) - 1;  // rounding left a little
}

}  // namespace

ExpectedTokens expected_tokens(const Model& model, std::optional<std::int32_t> bos, std::uint64_t seed,
                               const Ctx& ctx) {
  const ModelConfig& config = model.config();
  const int vocab = config.dims.vocab;
  const int length =
      config.context > 0 ? std::min(ExpectedTokens::most_tokens, config.context) : ExpectedTokens::most_tokens;
  assert(config.objective() == Objective::next_token);
  Random random(seed);
  const auto expected_after = [&](const std::vector<std::int32_t>& ids) {
    return mean_distribution(model.forward({ctx.backend, nullptr, ctx.stop, nullptr}, ids).logits);
  };
  const auto text_of = [&](const std::vector<double>& distribution) {
    std::vector<std::int32_t> ids;
    if (bos) ids.push_back(*bos);
    while (static_cast<int>(ids.size()) < length) ids.push_back(drawn(distribution, random));
    return ids;
  };
  const std::vector<double> even(static_cast<std::size_t>(vocab), 1.0 / vocab);
  std::vector<double> mean = expected_after(bos ? std::vector<std::int32_t>{*bos} : text_of(even));
  for (int round = 0; round < ExpectedTokens::rounds; ++round) mean = expected_after(text_of(mean));
  ExpectedTokens out;
  out.vocab = vocab;
  for (std::int32_t id = 0; id < vocab; ++id)
    if (id != bos && nth(mean, id) * vocab >= ExpectedTokens::least_share) out.ids.push_back(id);
  return out;
}

}  // namespace headscope
