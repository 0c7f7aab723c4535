#pragma once
// Named experts of singular values of one model (Sun, Cetin & Tang, Transformer²: Self-adaptive LLMs, 2025), with what
// chooses between them: one more such vector, a classifier, with which the model tells the label of a prompt's task.
// A file keeps them; it opens only for the model whose matrices they scale.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/model/model.h"
#include "core/train/singular_expert.h"

namespace headscope {

struct ExpertSet {
  struct Expert {
    std::string name, about;
    SingularExpert z;
  };
  std::string model;                   ///< as its configuration calls it
  std::uint64_t weights = 0;           ///< weights_identity()
  std::vector<WeightMatrix> matrices;  ///< whose singular values are scaled, in every layer that has them
  std::vector<Expert> experts;         ///< at least one, of different names
  std::optional<SingularExpert> classifier;
  std::vector<std::int32_t> labels;  ///< by expert: the token that the classifier has the model say
};

/// Of the numbers of these matrices in all layers: equal where z means the same. A hash, no signature.
std::uint64_t weights_identity(const Model& model, const std::vector<WeightMatrix>& matrices);

/// Every z = 1, with a part for each matrix that the model has.
SingularExpert unchanged_expert(const Model& model, const std::vector<WeightMatrix>& matrices);

/// z = 1 + Σ α_k (z_k − 1): the interpolation Σ α_k z_k in which the model itself, z = 1, takes what is left, so that
/// all weights sum to 1. |z| is kept within `most`. REQUIRES a weight for each expert.
SingularExpert mixed_expert(const std::vector<ExpertSet::Expert>& experts, std::span<const double> weights,
                            double most = SingularLearner::Settings{}.most);

std::string to_json(const ExpertSet& set);
/// Throws Error at `where`, with the way to the value, on anything that is no such file, and on unknown keys.
ExpertSet expert_set_from_json(const std::string& json, const std::string& where);
/// Throws Error at `where` unless the experts are of this model's matrices, part by part, number by number.
void check_fits(const ExpertSet& set, const Model& model, const std::string& where);

}  // namespace headscope
