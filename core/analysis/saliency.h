#pragma once
// What one number depends on, by token and by attention weight, from one backward pass (core/train/gradients.h):
//   gradient × input      per token, Σ_d embedding · ∂f/∂embedding
//   attention × gradient  A ∘ ∂f/∂A per cell of every head: how much f would lose, to first order, without that weight
//   importance of a head  |Σ A ∘ ∂f/∂A|: what f would change by, to first order, without the head, which is ∂f/∂ξ of a
//                         gate ξ = 1 on its output (Michel et al., Are Sixteen Heads Really Better than One?, 2019,
//                         who take its mean over texts)
//   reach of a head       Σ |A ∘ ∂f/∂A|, ours: cells that speak for and against do not cancel

#include <vector>

#include "core/run/run_request.h"
#include "core/train/gradients.h"

namespace headscope {

struct Saliency {
  InputGradients gradients;
  std::vector<Tensor> weighted;          ///< per layer (head, query, key): A ∘ ∂f/∂A; 0 where A is
  Tensor importance, reach;              ///< (layer, head); NaN where a layer has fewer heads
  Tensor cross_importance, cross_reach;  ///< likewise of an encoder-decoder's cross-attention; else undefined
};

/// Of the run that `trace` came from, with its edits. `trace` must hold the maps of every head. Throws Error when an
/// edit replaces a tensor (an ablation, a patch, a weight), since no gradient flows past it (norms that move do not),
/// and as input_gradients() and run().
Saliency read_saliency(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx, const Trace& trace,
                       const GradientOf& of);

}  // namespace headscope
