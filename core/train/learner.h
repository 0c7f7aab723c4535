#pragma once
// One model learning: parameters, optimiser and the training pass, a step at a time. What to learn from, when to stop
// and where to keep checkpoints is the caller's. One thread at a time; snapshot() models may be used on any.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/special_values.h"
#include "core/model/model.h"
#include "core/train/adamw.h"
#include "core/train/parameters.h"

namespace headscope {

/// Sequences of equal length, one after another.
struct Batch {
  int sequences = 0, length = 0;
  std::vector<std::int32_t> tokens;        ///< (sequences · length)
  std::vector<std::int32_t> targets;       ///< the token that follows each; −1 is not counted
  std::vector<std::int32_t> source = {};   ///< of encoder-decoders: what each sequence is made of, one after another
  std::vector<Index> source_lengths = {};  ///< by sequence; else empty
  Tensor patches = {};                     ///< of models of pictures, one for each sequence: (patch, numbers of it)
};

/// The training pass: of an encoder-decoder first the encoder reads the sources, then the decoder what is made of them.
/// `ctx.tap` is the decoder's; `cross` sees or replaces sites of its attention to the sources; may be null. Throws as
/// Model::forward, and Error on a batch that has no sources where the model needs some.
ForwardResult run_batch(const Model& model, const Batch& batch, const Ctx& ctx, const MapRequest& maps = {},
                        Tap* cross = nullptr);

struct StepReport {
  std::int64_t step = 0;     ///< number of this step; the first is 1
  double loss = 0;           ///< mean over the counted targets, nats per token, before the update
  double gradient_norm = 0;  ///< before clipping
  double learning_rate = 0;
  double balance = nan;  ///< of experts (RouterBalance::value), mean over their layers; NaN where there are none
  std::vector<AttentionMap> maps;  ///< of the pass, when asked for (of a decoder with a source: its own)
};

/// One step of AdamW down the gradient of `loss`, which computes it while it records on the tape. Throws Error on NaN
/// or infinity, naming step and tensor, and what `loss` throws (Error with the step in front); then nothing has
/// changed.
StepReport gradient_step(Parameters& parameters, AdamW& optimizer, Backend& backend,
                         const std::function<Backend::Loss(Tape&)>& loss, std::stop_token stop);

/// Whoever learns from batches, whatever it is made of.
class BatchLearner {
 public:
  virtual ~BatchLearner() = default;
  /// Forward, backward, update. Throws Error, Cancelled; then it is as it was before.
  virtual StepReport learn(const Batch& batch, std::stop_token stop) = 0;
  /// Mean loss of a batch, nats per counted target, without learning from it.
  virtual double loss(const Batch& batch, std::stop_token stop) = 0;
};

class Learner final : public BatchLearner {
 public:
  /// Starts from random weights. Throws Error on settings that make no sense. `backend` must outlive the learner.
  Learner(const ModelConfig& config, const OptimizerSettings& settings, std::uint64_t seed, Backend& backend);
  /// Starts from given weights, which it clones.
  Learner(const Parameters& parameters, const OptimizerSettings& settings, Backend& backend);
  ~Learner() override;

  /// Forward, backward, update. `maps` asks for the attention of the pass (MapRequest::text says whose). Throws
  /// Error on a batch that does not fit the model; on NaN or infinity, naming step and tensor; throws Cancelled. After
  /// any of these the learner is as it was before.
  StepReport step(const Batch& batch, std::stop_token stop = {}, const MapRequest& maps = {});
  StepReport learn(const Batch& batch, std::stop_token stop) override { return step(batch, stop); }
  double loss(const Batch& batch, std::stop_token stop = {}) override;
  /// The share of the counted targets whose logit is the largest of its row.
  double accuracy(const Batch& batch, std::stop_token stop = {});

  /// From now on every pass of step() and loss() goes through it; null = none. What it replaces has to be recorded on
  /// the pass' tape. snapshot() models know nothing of it.
  void set_tap(std::shared_ptr<Tap> tap);

  std::int64_t steps() const;  ///< taken so far
  const ModelConfig& config() const;
  const Parameters& parameters() const;  ///< read only between steps
  const OptimizerSettings& settings() const;
  void set_settings(const OptimizerSettings& settings);  ///< from the next step on

  /// An immutable copy for tracing and sampling, on another thread too. `backend` packs it (null = the learner's own).
  std::shared_ptr<const Model> snapshot(Backend* backend = nullptr) const;

  /// All that decides the next step besides settings and data: "parameters/NAME", "first_moment/NAME",
  /// "second_moment/NAME", "steps". A learner that restores it goes on bit for bit as this one would.
  std::map<std::string, Tensor> state() const;
  /// Throws Error naming the tensor that is missing or has another shape; then nothing has changed.
  void restore(const std::map<std::string, Tensor>& state);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headscope
