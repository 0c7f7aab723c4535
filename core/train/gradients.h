#pragma once
// What one number that a model computes (a logit, a difference of two, the loss) depends on: gradient × input per token
// (Denil et al., Extraction of Salient Sentences from Labelled Documents, 2014; Shrikumar et al., 2016) and its
// gradient with respect to every cell of every head's pattern. For any model; its weights' own gradients are not
// computed.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/model/model.h"

namespace headscope {

/// The number that is differentiated.
struct GradientOf {
  enum class Kind { logit, logit_difference, loss };
  Kind kind = Kind::logit;
  int position = -1;                       ///< row of the logits; −1 = the last. Unused for the loss
  std::int32_t token = 0;                  ///< whose logit
  std::int32_t other = 0;                  ///< logit_difference: logit(token) − logit(other)
  std::vector<std::int32_t> targets = {};  ///< loss: of each row, −1 = none; empty = the token that comes next
};

struct TextGradients {
  std::vector<float> gradient_times_input;  ///< per token: Σ over dimensions of embedding · gradient
  Tensor embedding;                         ///< (token, d_model): the gradient at hook_embed
  std::vector<Tensor> patterns;  ///< per layer (head, query, key): the gradient at hook_pattern, as if every cell could
                                 ///< change by itself; cells that the rule hides are not computed where it hides a
                                 ///< whole tile, and mean nothing
};
struct InputGradients : TextGradients {
  double value = 0;                    ///< the number itself (loss: mean nats over positions 1, 2, …)
  TextGradients source;                ///< of what an encoder-decoder's encoder read; else empty
  std::vector<Tensor> cross_patterns;  ///< per layer (head, target, source)
};

/// What an encoder-decoder's encoder reads.
struct GradientSource {
  std::span<const std::int32_t> tokens;
  Tap *encoder = nullptr, *cross = nullptr;  ///< may intervene in the encoder, in cross-attention
  Tensor patches = {};                       ///< Ctx's, of encoders that read a sound
};

/// `ctx.tap` may intervene; ctx.tape must be null, and so must ctx.source: an encoder-decoder needs `source`, which is
/// read on the way. Throws as Model::forward, and Error on a position or token that is not there, or a loss of fewer
/// than two tokens. Memory: all activations of the pass, patterns included.
InputGradients input_gradients(const Model& model, const Ctx& ctx, std::span<const std::int32_t> tokens,
                               const GradientOf& of, const GradientSource* source = nullptr);

}  // namespace headscope
