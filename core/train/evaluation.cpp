#include "core/train/evaluation.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.h"
#include "core/metrics/next_token.h"

namespace headscope {

std::vector<std::vector<double>> held_out_losses(const Model& model, const Ctx& ctx, const HeldOut& data) {
  std::vector<std::vector<double>> losses;
  for (const Batch& batch : data.batches) {
    for (int row = 0; row < batch.sequences; ++row) {
      const auto begin = static_cast<std::ptrdiff_t>(row) * batch.length;
      const std::span<const std::int32_t> targets(batch.targets.data() + begin, static_cast<std::size_t>(batch.length));
      // What fills a row up has no targets and comes last, so the pass can leave it out.
      std::size_t used = targets.size();
      while (used > 0 && targets[used - 1] < 0) --used;
      if (used == 0) continue;
      if (!model.config().causal) used = targets.size();  // every token sees them all
      if (*std::ranges::max_element(targets) >= model.config().dims.vocab)
        throw Error(
            model.config().name, "a model of the task's vocabulary",
            fmt::format("token {} and {} logits", *std::ranges::max_element(targets), model.config().dims.vocab));
      const Tensor logits = model.forward(ctx, {batch.tokens.data() + begin, used}).logits;
      auto& mine = losses.emplace_back();
      for (std::size_t i = 0; i < used; ++i)
        if (targets[i] >= 0) mine.push_back(next_token_loss(logits.select(0, static_cast<Index>(i)), targets[i]));
    }
  }
  return losses;
}

double held_out_loss(const Model& model, const Ctx& ctx, const HeldOut& data) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto& row : held_out_losses(model, ctx, data)) {
    for (const double loss : row) sum += loss;
    count += row.size();
  }
  return sum / static_cast<double>(count);
}

}  // namespace headscope
