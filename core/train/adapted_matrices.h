#pragma once
// A model of which chosen weight matrices are made anew while it learns, and all else stays: what adapters of any kind
// write to, and read their gradients off. Every matrix is (in, out): an activation x goes through it as x W.

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/model/weights.h"
#include "core/train/learner.h"

namespace headscope {

class AdaptedMatrices {
 public:
  struct Each {
    int layer = 0;
    WeightMatrix matrix = WeightMatrix::v;
    Tensor view;  ///< in the model's parameters: what passes read
    Tensor own;   ///< as it was
  };
  /// What is to fall, of the logits (sequences · length, vocab) of a pass: itself, and its slope over them.
  struct LogitLoss {
    double loss = 0;
    Tensor slope;  ///< as the logits
  };
  using LossOfLogits = std::function<LogitLoss(const Tensor& logits)>;

  /// Of the matrices those that the model has, in every layer, each once. `parameters` are its own from now on. Throws
  /// Error at `where` where the model has none of them, and as Parameters::trainable_model(). `backend` outlives it.
  AdaptedMatrices(Parameters parameters, const std::vector<WeightMatrix>& matrices, Backend& backend,
                  const std::string& where);
  const std::vector<Each>& all() const { return all_; }
  void write(std::size_t which, const Tensor& weight);
  std::int64_t parameters() const { return parameters_.count(); }  ///< of the whole model

  double loss(const Batch& batch, std::stop_token stop = {}) const;
  /// Σ −ln p over the counted targets of each sequence, nats.
  std::vector<double> nats(const Batch& batch, std::stop_token stop = {}) const;
  /// (sequences · length, vocab)
  Tensor logits(const Batch& batch, std::stop_token stop = {}) const;
  /// ∂loss/∂W′ of each matrix, (in, out); the loss as it is, of the batch or what `of` makes of its logits. Throws
  /// Error on a loss that is not finite, Cancelled.
  std::vector<Tensor> gradients(const Batch& batch, double& loss, std::stop_token stop = {},
                                const LossOfLogits& of = {}) const;

 private:
  Backend& backend_;
  Parameters parameters_;
  std::shared_ptr<const Model> model_;  // views of `parameters_`
  std::vector<Each> all_;
};

/// Adam (Kingma & Ba, 2015) over lists of numbers.
class Adam {
 public:
  struct Settings {
    double rate = 0.02, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  };
  explicit Adam(const Settings& settings) : settings_(settings) {}
  /// REQUIRES lists of the same lengths at every step.
  void step(std::span<const std::span<double>> values, const std::vector<std::vector<double>>& gradients);
  void restart();

 private:
  Settings settings_;
  std::vector<std::vector<double>> first_, second_;  // moments
  std::int64_t steps_ = 0;
};

}  // namespace headscope
