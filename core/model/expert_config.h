#pragma once
// Layers whose MLP is several, of which each token passes through a few (Shazeer et al., Outrageously Large Neural
// Networks: The Sparsely-Gated Mixture-of-Experts Layer, 2017; Fedus et al., Switch Transformers, 2022). A router gives
// every expert a logit; `per_token` of them take the token, and what they put out is added up, weighed.

#include <algorithm>
#include <vector>

namespace headscope {

/// How a router's logits become weights.
enum class RouterScore {
  softmax,            ///< over all experts, of which the largest are taken (Mixtral)
  softmax_of_chosen,  ///< over those that were taken (GPT-OSS)
  sigmoid,            ///< each by itself (DeepSeek-V3)
  near_best           ///< one after another the largest, by a softmax over those left that are nearly as large: z with
                      ///< (best − z) ÷ max(|z|, best) ≤ 2 · `nearness` (Liu et al., GRIN, 2024: SparseMixer)
};

struct ExpertConfig {
  int count = 0;  ///< experts of a sparse layer; 0 = no layer has any
  int per_token = 0;
  int width = 0;                  ///< d_mlp of an expert
  int shared_width = 0;           ///< > 0: an expert beside them that takes every token, unweighed, …
  bool shared_gate = false;       ///< … or weighed by σ(x · w)
  double shared_scale = 1;        ///< what it puts out is multiplied by this, which is read into its matrix
  std::vector<bool> layers = {};  ///< whether a layer has experts; empty = all
  RouterScore score = RouterScore::softmax;
  double nearness = 0;              ///< of RouterScore::near_best
  bool renormalized = false;        ///< the weights of those taken are divided by their sum, …
  double sum_floor = 1e-20;         ///< … to which this is added: where all sigmoids are 0, so are the weights
                                    ///< (DeepSeek-V3; of LFM2 it is large enough to be seen)
  double scale = 1;                 ///< and multiplied by this
  bool router_bias = false;         ///< of the logits
  bool correction = false;          ///< what is added to a weight where experts are chosen, not where they are weighed
  int groups = 1, groups_kept = 1;  ///< experts come from the groups whose best weights add up to most:
  int group_best = 2;               ///< of so many of each (DeepSeek-V2: 1)
  bool beside = false;  ///< the layer has one MLP for all tokens, too; router and experts read the stream, each by
                        ///< a norm of its own, and norms stand behind either before both are added (Gemma 4)
  bool weigh_output = false;  ///< the weight of an expert is multiplied by a learned number of its own
  bool weigh_input = false;   ///< what an expert reads is multiplied by its weight, not what it puts out (Llama 4)
  int capacity = 0;      ///< > 0: an expert takes so many tokens of a text, the first; those that come later pass it
                         ///< by, and nothing takes them (Switch Transformers)
  bool own_bias = true;  ///< experts have biases where up and down have; the shared one always has

  bool at(int layer) const { return count > 0 && (layers.empty() || layers[static_cast<std::size_t>(layer)]); }
  bool anywhere() const { return count > 0 && (layers.empty() || std::ranges::count(layers, true) > 0); }
  /// How many layers of `of` have experts.
  int layers_among(int of) const {
    int sum = 0;
    for (int layer = 0; layer < of; ++layer) sum += at(layer);
    return sum;
  }
  /// Whether some layer of `of` has one MLP for all tokens.
  bool leaves_dense(int of) const {
    for (int layer = 0; layer < of; ++layer)
      if (!at(layer) || beside) return true;
    return false;
  }
};

}  // namespace headscope
