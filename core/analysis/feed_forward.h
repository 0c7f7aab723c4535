#pragma once
// The MLP of a block, neuron by neuron (Geva et al., Transformer Feed-Forward Layers Are Key-Value Memories, 2021).
// With x the normalised stream at a position, neuron i has
//   pre   p_i = x · W_in[:, i] + b_i         (of a gated MLP: the branch that the activation function acts on)
//   post  a_i = φ(p_i)                       (gated, Shazeer, GLU Variants Improve Transformer, 2020: φ(p_i) · u_i with
//                                             the linear branch u_i = x · W_up[:, i] + b_i)
// and writes a_i · W_down[i] to the residual stream; MLP = Σ_i a_i W_down[i] + b_down. It is active where p_i > 0.

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "core/analysis/logit_attribution.h"
#include "core/metrics/distribution.h"
#include "core/metrics/next_token.h"

namespace headscope {

/// φ at `count` (2 or more) points from `low` to `high`, as the forward pass computes it; xIELU with these numbers.
struct ActivationCurve {
  Activation kind = Activation::relu;
  std::vector<double> x, y;
};
ActivationCurve activation_curve(Backend& backend, Activation activation, double low, double high, int count,
                                 const Backend::Xielu& xielu = {});
std::string_view title(Activation activation);    ///< "GELU (tanh)"
std::string_view formula(Activation activation);  ///< "x Φ(x), Φ the normal distribution's"

struct Neuron {
  Index index = 0;
  double pre = 0, linear = 0, post = 0;  ///< linear: u, gated MLPs only
  double norm = 0;                       ///< ‖a_i W_down[i]‖
  double logit = 0;                      ///< its part of the attributed logit, as in logit_attribution.h
  std::vector<NextToken> raises;  ///< whose logits it raises most: `logit` less the vocabulary's mean, which no softmax
                                  ///< sees; `probability` is not used
};

struct FeedForward {
  int layer = 0;
  AttributionOf of;             ///< with the position counted from 0
  Distribution pre, post;       ///< of all neurons at all positions
  std::vector<double> active;   ///< (position) share of neurons with pre > 0
  double ever_active = 0;       ///< share of neurons that are active at some position of this text
  std::vector<Neuron> neurons;  ///< of the position, those that write most (‖a W_down‖) first
  double half = 0;              ///< share of neurons that make up half of Σ ‖a W_down‖ there: few = sparse
  double logit = 0;             ///< part of the whole MLP in the attributed logit, its bias included
  double bias_logit = 0;        ///< of it, b_down's
  double edited_logit = 0;      ///< what edits behind the neurons add to it (the recorded output · d, less `logit`):
                                ///< rounding where there are none
};
/// Whether some layer has one MLP for all tokens.
bool has_neurons(const ModelConfig& config);
/// REQUIRES has_neurons().
std::set<SiteKind> feed_forward_sites(const Model& model);
/// `of` says position and token. `keep` neurons are listed, each with `raise` tokens. `trace` must have recorded
/// feed_forward_sites(). Throws Error on a layer, a position or a token that is not there, in a model without MLPs, and
/// in a layer with experts.
FeedForward read_feed_forward(const Model& model, Backend& backend, const Trace& trace, int layer,
                              const AttributionOf& of, int keep = 10, int raise = 3);

}  // namespace headscope
