#pragma once
// What a layer of self-attention, of a recurrent cell and of a convolution costs, and how far apart it leaves two
// tokens: Table 1 of Vaswani et al. (Attention Is All You Need, 2017), as numbers for a text of n tokens of width d.
// Thread rule: pure functions.

#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

struct LayerComplexity {
  std::string name;                     ///< "self-attention"
  double multiply_adds = 0;             ///< of one layer over the whole text, the mixing of tokens alone
  double sequential = 1;                ///< operations that must follow one another
  double longest_path = 1;              ///< from the first token to the last: steps, or layers of this kind
  std::string cost, in_sequence, path;  ///< their orders: "O(n² d)", "O(1)", "O(1)"
};

LayerComplexity self_attention_layer(Index n, Index d);  ///< Q Kᵀ and P V over every pair: 2 n² d
/// `products`: matrices of d × d that each token is multiplied with; 2 of an RNN, 8 of an LSTM.
LayerComplexity recurrent_layer(const std::string& name, Index n, Index d, Index products);
/// k n d² with a kernel of `k` ≥ 2 neighbours. A path is as long as the layers that join both ends: ⌈log_k n⌉, each
/// layer dilated k times as far as the one before.
LayerComplexity convolution_layer(Index n, Index d, Index k = 3);

/// The rows of that table for a mechanism of the catalogue, its own first; empty for one that has no row there.
std::vector<LayerComplexity> layers_beside(std::string_view mechanism, Index n, Index d);

}  // namespace headscope
