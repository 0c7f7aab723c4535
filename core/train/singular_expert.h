#pragma once
// Singular value fine-tuning (Sun, Cetin & Tang, Transformer²: Self-adaptive LLMs, 2025): of chosen weight matrices W =
// U diag(σ) Vᵀ only a vector z is learnt, W′ = U diag(z σ) Vᵀ; such a vector, over all chosen matrices, is an expert.
// There experts learn by REINFORCE, with a KL to the model as it was. Here they learn by the gradient of the loss of a
// text, ∂L/∂z_i = σ_i u_iᵀ (∂L/∂W′) v_i, with Adam (Kingma & Ba, 2015) and no price on leaving the model. What carries
// an expert out in a run is edits: core/analysis/singular_tuning.h.

#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/model/weights.h"
#include "core/tensor/singular.h"
#include "core/train/adapted_matrices.h"
#include "core/train/training_memory.h"

namespace headscope {

struct SingularExpert {
  struct Part {
    int layer = 0;
    WeightMatrix matrix = WeightMatrix::v;
    std::vector<double> z;  ///< by singular value, largest first
  };
  std::vector<Part> parts;
  std::size_t numbers() const;  ///< of all parts
};

/// Tokens of a text, each to be told from those before it.
Batch text_batch(const std::vector<std::int32_t>& tokens);

/// Tokens of which those from `from` on are to be told. REQUIRES 1 ≤ from < ids.size().
struct TextRow {
  std::vector<std::int32_t> ids;
  int from = 1;
};
/// A row each; behind the shorter ones stands what nobody looks at, since a token sees none that comes later.
Batch rows_batch(std::span<const TextRow> rows);

class SingularLearner {
 public:
  struct Settings {
    double rate = 0.02;  ///< Adam's, per step
    double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    double most = 10;  ///< |z| is kept within it
  };
  /// Every z begins as 1. Of the matrices those that the model has, in every layer, each once. `parameters` are its own
  /// from now on: it writes to them. Throws what check() throws, Error on a model that has none of the matrices or
  /// whose weights are not used as they are stored, and on settings that make no sense; Cancelled between any two
  /// matrices. `backend` outlives it.
  SingularLearner(Parameters parameters, const std::vector<WeightMatrix>& matrices, const Settings& settings,
                  Backend& backend, std::stop_token stop = {});
  /// Throws Error on a model that does not tell every token from those before it, and on a matrix whose values no edit
  /// could scale.
  static void check(const ModelConfig& config, const std::vector<WeightMatrix>& matrices);
  /// The least that learning so many texts at once, of so many tokens each, takes, the learner's copy of the weights
  /// among it.
  static TrainingMemory memory(const Model& model, const std::vector<WeightMatrix>& matrices, int tokens,
                               int texts = 1);

  using LogitLoss = AdaptedMatrices::LogitLoss;
  using LossOfLogits = AdaptedMatrices::LossOfLogits;

  /// The loss of the batch before this step, nats per token, or what `of` makes of its logits; then z moves. Throws
  /// Error on a loss that is not finite, Cancelled; then nothing has changed.
  double step(const Batch& batch, std::stop_token stop = {}, const LossOfLogits& of = {});
  /// As of AdaptedMatrices.
  double loss(const Batch& batch, std::stop_token stop = {}) const { return matrices_.loss(batch, stop); }
  std::vector<double> nats(const Batch& batch, std::stop_token stop = {}) const { return matrices_.nats(batch, stop); }
  Tensor logits(const Batch& batch, std::stop_token stop = {}) const { return matrices_.logits(batch, stop); }
  /// ∂loss/∂z, part by part; loss as it is.
  std::vector<std::vector<double>> gradient(const Batch& batch, double& loss, std::stop_token stop = {},
                                            const LossOfLogits& of = {}) const;

  const SingularExpert& expert() const { return expert_; }
  std::int64_t parameters() const { return matrices_.parameters(); }  ///< of the whole model
  /// Puts another one in its place. REQUIRES the same parts.
  void set_expert(const SingularExpert& expert);
  /// Every z is 1 again, and nothing is left of the steps taken.
  void restart();

 private:
  void write();

  Settings settings_;
  AdaptedMatrices matrices_;
  Adam adam_;
  SingularExpert expert_;
  std::vector<SingularParts> parts_;  // one for each matrix
};

}  // namespace headscope
