#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/edits/edit.h"
#include "core/edits/intervention.h"
#include "core/model/model.h"
#include "core/model/weights.h"

namespace headscope {

/// A weight matrix with its singular values scaled, W′ = U diag(z σ) Vᵀ (Sun, Cetin & Tang, Transformer²: Self-adaptive
/// LLMs, 2025: singular value fine-tuning, whose experts are such vectors z). Every z that is not named is 1. What the
/// matrix gives is made anew at the positions reached, before any other edit of it acts; of several edits of one matrix
/// the last counts, and a latent is made of the model's own matrices.
struct ScaleSingular {
  static constexpr double largest = 100;  ///< of |z|
  struct Range {
    int first = 1, last = 1;  ///< σ_first … σ_last, both included; 1 is the largest value; last 0 = the smallest one
    double z = 1;
    bool operator==(const Range&) const = default;
  };
  WeightMatrix matrix = WeightMatrix::v;
  std::vector<Range> scales = {{1, 1, 0.0}};  ///< at least one; a later one wins

  /// z of `count` singular values, largest first.
  std::vector<double> vector(std::size_t count) const;
  /// The shortest such edit with this z; every z = 1 gives "1=1".
  static ScaleSingular of(WeightMatrix matrix, const std::vector<double>& z);
  bool operator==(const ScaleSingular&) const = default;
};
std::shared_ptr<const Edit> edit_of(ScaleSingular value);

/// For those who take a run's results apart: what each head writes with. W_O as the edits "singular o" and "adapter" of
/// this run leave it, all else as it is in the model. Of a text of `tokens`; edits of some positions alone count where
/// they reach `position`, and nowhere when none is named. Throws Error as the run does.
ModelWeights weights_written_with(const Model& model, const std::vector<Intervention>& edits, int tokens,
                                  std::optional<int> position = {});

}  // namespace headscope
