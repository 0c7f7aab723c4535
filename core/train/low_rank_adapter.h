#pragma once
// Low-rank adapters (Hu et al., LoRA, 2022) of chosen weight matrices: W′ = W + A B, A (in, rank), B (rank, out). A
// begins as normal numbers of deviation 1/√in, B as 0, so that the model is first as it was; both learn by Adam. What
// composing them does is held beside composing experts of singular values (core/train/singular_expert.h).

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "core/train/adapted_matrices.h"

namespace headscope {

struct LowRankAdapter {
  struct Part {
    int layer = 0;
    WeightMatrix matrix = WeightMatrix::v;
    std::vector<double> a, b;  ///< (in, rank) and (rank, out), row by row
  };
  int rank = 1;
  std::vector<Part> parts;
  std::size_t numbers() const;  ///< of all parts
};

class LowRankLearner {
 public:
  struct Settings {
    double rate = 0.01;  ///< Adam's, per step
    int rank = 1;
    std::uint64_t seed = 1;  ///< of A
  };
  /// As SingularLearner's. Throws Error also on a rank below 1 or above the shorter side of a matrix.
  LowRankLearner(Parameters parameters, const std::vector<WeightMatrix>& matrices, const Settings& settings,
                 Backend& backend);
  /// The loss before this step; then A and B move.
  double step(const Batch& batch, std::stop_token stop = {});
  /// ∂loss/∂A and ∂loss/∂B, part by part.
  struct Slopes {
    std::vector<std::vector<double>> a, b;
  };
  Slopes gradient(const Batch& batch, double& loss, std::stop_token stop = {}) const;
  const LowRankAdapter& adapter() const { return adapter_; }
  void restart();  ///< as it was made
  /// The model with Σ weight · A B; steps go on from adapter() as it was. REQUIRES adapters of these matrices.
  void show(std::span<const LowRankAdapter* const> adapters, std::span<const double> weights);
  const AdaptedMatrices& matrices() const { return matrices_; }

 private:
  AdaptedMatrices matrices_;
  Settings settings_;
  Adam adam_;
  LowRankAdapter adapter_;
};

}  // namespace headscope
