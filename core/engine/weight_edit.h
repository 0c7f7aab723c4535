#pragma once
// How edits of a block's weights act in a pass: what heads share (core/attention/key_sharing.h, latent_keys.h), and
// singular values (core/tensor/singular.h). InterventionTap asks.

#include <optional>
#include <string>

#include "core/attention/key_sharing.h"
#include "core/attention/latent_keys.h"
#include "core/engine/edit_action.h"
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

/// Where a matrix of a block is multiplied in, and what comes of it.
SiteKind input_site(WeightMatrix matrix);
SiteKind output_site(WeightMatrix matrix, const ModelConfig& config);
/// What the edit makes of one layer's matrix, with its bias; nullopt when every z is 1. Throws Error at `where` when
/// the model has no such matrix, or not so many singular values.
std::optional<Projection> scaled_projection(const Model& model, int layer, const ScaleSingular& edit,
                                            const std::string& where);
/// Rows [first, last] of `out` (position, …) = input · weight + bias, all but the first axis taken as one.
void multiply_anew(const Projection& by, const Tensor& input, int first, int last, Tensor& out);
/// The same for out (position, head, d_model), what each head adds: its columns of `input` (position, head, d_head)
/// times its rows of the weight, without the bias.
void multiply_heads_anew(const Projection& by, const Tensor& input, int first, int last, Tensor& out);

}  // namespace headscope
