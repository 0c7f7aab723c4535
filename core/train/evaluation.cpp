#include "core/train/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/error.h"
#include "core/metrics/next_token.h"

namespace headscope {

Batch row_of(const Batch& batch, int row, int length) {
  Batch out{1, length, {}, {}};
  const auto begin = static_cast<std::ptrdiff_t>(row) * batch.length;
  out.tokens.assign(batch.tokens.begin() + begin, batch.tokens.begin() + begin + length);
  out.targets.assign(batch.targets.begin() + begin, batch.targets.begin() + begin + length);
  if (batch.patches.defined()) {
    const Index patches = batch.patches.dim(0) / batch.sequences;
    out.patches = batch.patches.slice(0, row * patches, (row + 1) * patches);
  }
  if (batch.source_lengths.empty()) return out;
  const auto lengths = std::span(batch.source_lengths);
  const auto at = batch.source.begin() +
                  std::accumulate(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(row), Index{0});
  out.source_lengths = {lengths[static_cast<std::size_t>(row)]};
  out.source.assign(at, at + out.source_lengths.front());
  return out;
}

std::vector<std::vector<double>> held_out_losses(const Model& model, const Ctx& ctx, const HeldOut& data, Tap* cross) {
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
      const Tensor logits = run_batch(model, row_of(batch, row, static_cast<int>(used)), ctx, {}, cross).logits;
      auto& mine = losses.emplace_back();
      for (std::size_t i = 0; i < used; ++i)
        if (targets[i] >= 0) mine.push_back(next_token_loss(logits.select(0, static_cast<Index>(i)), targets[i]));
    }
  }
  return losses;
}

double held_out_loss(const Model& model, const Ctx& ctx, const HeldOut& data, Tap* cross) {
  double sum = 0;
  std::size_t count = 0;
  for (const auto& row : held_out_losses(model, ctx, data, cross)) {
    for (const double loss : row) sum += loss;
    count += row.size();
  }
  return sum / static_cast<double>(count);
}

}  // namespace headscope
