#pragma once

#include <memory>
#include <string>

#include "core/attention/latent_keys.h"
#include "core/edits/edit.h"
#include "core/model/model.h"

namespace headscope {

/// Keys and values pass through a latent of `rank` numbers per token, from which both are made again: [W_K W_V] by its
/// singular value decomposition (DeepSeek-V2, 2024, multi-head latent attention; there it is trained, and rotary
/// positions have a key of their own. Here keys are turned after they were made again).
struct LatentKeys {
  int rank = 32;
  bool operator==(const LatentKeys&) const = default;
};
std::shared_ptr<const Edit> edit_of(LatentKeys value);

/// One layer's latent, with the biases that are added after it.
struct LatentProjector {
  LatentFactors factors;
  Tensor k_bias, v_bias;  ///< undefined = none
};
/// Throws Error at `where` when the weights have no such rank.
LatentProjector latent_projector(const Model& model, int layer, int rank, const std::string& where);

}  // namespace headscope
