#pragma once
// AttentionKernel on the card. Private to core/cuda.

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "core/attention/attention_kernel.h"
#include "core/base/thread_pool.h"
#include "core/cuda/attention_kernels.h"
#include "core/cuda/attention_statistics.h"
#include "core/cuda/card_tensors.h"
#include "core/cuda/held_rows.h"

namespace headscope::cuda {

class Attention final : public AttentionKernel {
 public:
  using Operand = cuda::Operand;
  struct Terms;
  /// `exact`: products as of float32, else as of TF32. `held`: where rows for keys and values may wait.
  Attention(CardTensors card, HeldRows& held, bool exact)
      : card_(std::move(card)), device_(card_.device()), held_(held), exact_(exact), statistics_(card_) {}

  bool takes(const AttentionInput& in, std::span<const Head> heads) const override;
  Tensor room(Shape shape) override;
  std::vector<AttentionMap> attend(const AttentionInput& in, std::span<const Head> heads, Tensor z) override;
  bool takes_together(const AttentionInput& in, std::span<const Head> heads) const override;
  bool records(const Tape& tape, const AttentionInput& in, std::span<const Head> heads) const override;
  void record(Tape& tape, const AttentionInput& in, std::span<const Head> heads, const Tensor& z) override;
  /// Fills the statistics of every map since the last call, whose numbers have come or are on their way.
  void finish(ThreadPool& pool);
  /// Lets go of what the running pass needed.
  void forget();

 private:
  std::shared_ptr<const Terms> terms(const AttentionInput& in, std::span<const Head> heads);
  const int* labels(const AttentionInput& in);
  /// What both kernels, and the way back, read of it: everything but room for what they find.
  AttentionTask task(const Operand& q, const Operand& k, const Operand& v, const Tensor& z, const Terms& terms) const;

  const CardTensors card_;
  const std::shared_ptr<Device> device_;
  HeldRows& held_;
  const bool exact_;
  // Of the running pass.
  std::vector<std::shared_ptr<Terms>> terms_;
  std::map<std::pair<const TokenLinks*, Index>, std::shared_ptr<float>> labels_;  // by text and how much of it
  AttentionStatistics statistics_;
};

}  // namespace headscope::cuda
