#pragma once
// How edits of what heads share act in a pass (core/attention/key_sharing.h, latent_keys.h). InterventionTap asks.

#include <string>

#include "core/attention/key_sharing.h"
#include "core/attention/latent_keys.h"
#include "core/model/model.h"

namespace headscope {

/// Throws Error at `where` when the key heads cannot be shared out evenly.
void check_groups(int groups, const ModelDims& dims, const std::string& where);

/// One layer's latent, with the biases that are added after it.
struct LatentProjector {
  LatentFactors factors;
  Tensor k_bias, v_bias;  ///< undefined = none
};
/// Throws Error at `where` when the weights have no such rank.
LatentProjector latent_projector(const Model& model, int layer, int rank, const std::string& where);

/// Rows [first, last] of `out` (position, kv_head, d_head) = keys (or values) that `input` (position, d_model) gives
/// through the latent.
void through_latent(const LatentProjector& latent, const Tensor& input, bool values, int first, int last, Tensor& out);

}  // namespace headscope
