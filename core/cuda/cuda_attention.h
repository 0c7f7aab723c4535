#pragma once
// AttentionKernel on the card. Private to core/cuda.

#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "core/attention/attention_kernel.h"
#include "core/base/thread_pool.h"
#include "core/cuda/attention_kernels.h"
#include "core/cuda/device.h"

namespace headscope::cuda {

class Attention final : public AttentionKernel {
 public:
  /// `on_card` of a tensor: where its numbers lie over there, with unit inner stride; what it returns keeps them.
  struct Operand {
    const float* data;
    Tensor keeps;
  };
  using OnCard = std::function<Operand(const Tensor&)>;
  /// `exact`: products as of float32, else as of TF32.
  Attention(std::shared_ptr<Device> device, bool exact, OnCard on_card)
      : device_(std::move(device)), exact_(exact), on_card_(std::move(on_card)) {}

  bool takes(const AttentionInput& in, std::span<const Head> heads) const override;
  Tensor room(Shape shape) override;
  std::vector<AttentionMap> attend(const AttentionInput& in, std::span<const Head> heads, Tensor z) override;
  /// Fills the statistics of every map since the last call, whose numbers have come or are on their way.
  void finish(ThreadPool& pool);
  /// Lets go of what the running pass needed.
  void forget();

 private:
  struct Terms;
  struct Statistics;
  const Terms& terms(const AttentionInput& in, std::span<const Head> heads);
  const int* labels(const AttentionInput& in);

  std::shared_ptr<Device> device_;
  bool exact_;
  OnCard on_card_;
  // Of the running pass.
  std::vector<std::shared_ptr<Terms>> terms_;
  std::map<std::pair<const TokenLinks*, Index>, std::shared_ptr<float>> labels_;  // by text and how much of it
  std::vector<std::shared_ptr<Statistics>> pending_;
};

}  // namespace headscope::cuda
