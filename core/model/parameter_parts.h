#pragma once
// Where the numbers of a model sit: counted from its shape alone, so that a model which nobody has downloaded can be
// weighed too. With d = d_model, m = d_mlp, q = heads · d_head, k = kv_heads · d_head, V = vocabulary, n = context:
//   token embedding V d;  positions n d (learned ones);  attention, per layer, d q + 2 d k + q d (+ q + 2 k + d
//   biases, those that the model has, and + d q of a gate; by latents, or with a state space, another sum, which the
//   source has); MLP, per layer, 2 d m, or 3 d m when gated (+ m (2 m) + d biases, + 2 of xIELU), where it has E
//   experts E times that of one, and d E (+ E) of the router;  norms, per layer as many as it has and one behind the
//   last, 2 d each (LayerNorm with a bias) or d, and those of queries and keys and of latents;  unembedding d V, or
//   nothing of its own when it is the embedding again, and d² + d of a layer before it. Segments count as embeddings.
//   Of a picture the embedding is that of patches and leading tokens, and V the number of classes.

#include <cstdint>
#include <string>
#include <string_view>

#include "core/model/config.h"

namespace headscope {

struct ParameterParts {
  std::int64_t embedding = 0, positions = 0, attention = 0, mlp = 0, norms = 0, unembedding = 0;
  std::int64_t layer_inputs = 0;  ///< (rows + d) L w + L 2 d w, w = d_layer, L layers: with the table
  std::int64_t convolution = 0;   ///< tokens · d² ÷ groups + d: beside the first block
  std::int64_t idle = 0;          ///< of `mlp`: experts that a token does not pass through
  std::int64_t attention_biases = 0, mlp_biases = 0;  ///< of them
  std::int64_t tied = 0;                              ///< what a second matrix would add where both are one, else 0
  std::int64_t total() const {
    return embedding + positions + attention + mlp + norms + unembedding + layer_inputs + convolution;
  }
};
ParameterParts parameter_parts(const ModelConfig& config);

/// A shape in words: "gpt2 layers=12 width=768 heads=12 mlp=3072 vocab=50257 context=1024 tied=yes". The family comes
/// first and decides what the rest is about (llama: RMSNorm, rotary positions, a gated MLP, no biases); `kv_heads`
/// defaults to heads, `d_head` to width / heads, `mlp` to 4 · width, `tied` to the family's habit. Throws Error at
/// `where` on an unknown word, a number out of range, or heads that do not divide.
ModelConfig parse_shape(std::string_view words, const std::string& where);
/// The words of a configuration; parse_shape() reads them back to one with the same parts, but for the biases of a
/// Llama that has some: there are no words for them. Of layers that differ in width the least and the most: "22–44".
std::string shape_words(const ModelConfig& config);

}  // namespace headscope
