#pragma once
// Attention through all layers at once (Abnar & Zuidema, Quantifying Attention Flow in Transformers, 2020). Both start
// from one matrix per layer, the mean of its heads mixed with the residual stream,
//   Ã_l = ρ I + (1 − ρ) mean_h A_l,h        (ρ = ½ in the paper), each row divided by its sum, which is less than 1
//                                           where a learned sink has a share, or a head sees nothing
//   rollout   R = Ã_L · … · Ã_1             how information mixes, if each layer mixes it as its attention says
//   flow      the largest flow from a position at the top to a position at the bottom through the layered graph whose
//             edges (l, i) → (l − 1, j) have the capacity Ã_l[i, j]
// In a causal model both pile up on the first tokens, whatever the heads do: every path can only lead back. So each can
// also be given relative to the same quantity for heads that spread their weight evenly over what they may see
// (`even`): 1 = as much as chance.

#include <stop_token>
#include <vector>

#include "core/trace/trace.h"

namespace headscope {

/// Ã of every layer. Throws Error unless all heads of all layers are there as probabilities of a whole text, or are of
/// a state space, whose rows α count as |α| ÷ Σ |α| (Ali et al., The Hidden Attention of Mamba Models, 2024). `even`:
/// of heads that spread their weight evenly under the same masks.
std::vector<Tensor> mixing_matrices(const Trace& trace, double residual = 0.5, bool even = false);

/// (query, key); rows sum to 1.
Tensor attention_rollout(const std::vector<Tensor>& mixing);

/// Of one position: (key) the largest flow to each. Throws Error on a text whose graph is too large (`most_edges`), and
/// Cancelled.
std::vector<double> attention_flow(const std::vector<Tensor>& mixing, Index query, std::stop_token stop = {});
/// Nodes × edges is what a flow costs; beyond this many edges a text is refused.
inline constexpr Index most_flow_edges = 2'000'000;

/// value / chance, cell by cell; NaN where chance is 0.
Tensor relative_to(const Tensor& value, const Tensor& chance);

}  // namespace headscope
