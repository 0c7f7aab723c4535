// Cross-entropy.

#include <atomic>
#include <cassert>
#include <vector>

#include "core/tensor/backend.h"
#include "core/tensor/over_rows.h"
#include "core/tensor/row_gradients.h"

namespace headscope {

Backend::Loss Backend::cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets) {
  const Index rows = logits.dim(0), vocab = logits.dim(1);
  assert(logits.rank() == 2 && logits.stride(1) == 1 && static_cast<Index>(targets.size()) == rows);
  Index counted = 0;
  for (const std::int32_t target : targets) counted += target >= 0;
  assert(counted > 0);
  const auto share = static_cast<float>(1.0 / static_cast<double>(counted));
  const bool active = tape_ && tape_->active(logits);
  // The softmax is taken here anyway; with the targets' own subtracted it is the gradient, ready for the way back.
  Tensor gradient = active ? empty(logits.shape()) : Tensor();
  std::vector<double> nats(targets.size());
  std::vector<Tensor> scratch(static_cast<std::size_t>(pool_.threads()));
  const Index step = 16;
  pool_.parallel(static_cast<int>((rows + step - 1) / step), [&](int task, int thread) {
    for (Index r = task * step; r < std::min(rows, (task + 1) * step); ++r) {
      const std::int32_t target = targets[static_cast<std::size_t>(r)];
      assert(target >= -1 && target < vocab);
      float* p = nullptr;
      if (active) {
        p = &gradient.ref(r, 0);
      } else {
        Tensor& row = scratch[static_cast<std::size_t>(thread)];
        if (!row.defined()) row = Tensor::uninitialized({vocab});
        p = row.mutable_data();
      }
      if (target < 0) {
        if (active) std::fill(p, p + vocab, 0.0f);
        continue;
      }
      const float* const x = logits.data() + r * logits.stride(0);
      nats[static_cast<std::size_t>(r)] = row_gradients::scaled_softmax(x, vocab, share, p) - x[target];
      p[target] -= share;
    }
  });
  Loss loss;
  for (const double each : nats) loss.nats += each;
  loss.nats /= static_cast<double>(counted);
  loss.mean = Tensor::full({1}, static_cast<float>(loss.nats));
  if (active)
    tape_->record(loss.mean, [this, &tape = *tape_, logits, gradient](const Tensor& d_loss) mutable {
      const float weight = d_loss.at(0);
      if (weight == 1.0f && tape.adopt(logits, gradient)) return;
      for (float& g : gradient.mutable_values()) g *= weight;
      accumulate(gradient, tape.into(logits));
    });
  return loss;
}

}  // namespace headscope
