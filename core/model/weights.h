#pragma once
// The weights of a model by their place in the circuit diagram (Elhage et al., A Mathematical Framework for Transformer
// Circuits, 2021), for those who read them rather than run them. Everything is a view: nothing is copied, and the model
// keeps the memory alive. Numbers of a matrix may be as they are stored (Tensor::kind()): at(), copies and ops read
// them all the same. Matrices are (in, out): a row of activations x goes through one as x W + b. What a model does not
// have (a bias, learned positions) is undefined.

#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "core/model/config.h"
#include "core/tensor/backend.h"
#include "core/trace/site.h"

namespace headscope {

/// x → (x − mean) / √(var + ε) · gain + bias, or x / √(mean x² + ε) · gain, or x.
struct NormWeights {
  Tensor gain, bias;  ///< (d_model)
  NormKind kind = NormKind::layer_norm;
  std::optional<double> epsilon = {};  ///< ε, where it is not the model's
};

/// One head. Query heads of a group share k and v, which then appear in each of them. With latents q, k and v have as
/// many rows as the latent that they multiply; projection_input() gives it.
struct HeadWeights {
  // Of a state space o alone.
  Tensor q, q_bias;  ///< (d_model, d_head), (d_head)
  Tensor k, k_bias;  ///< likewise
  Tensor v, v_bias;  ///< (d_model, d_value), (d_value)
  Tensor o;          ///< (d_value, d_model): what the head writes is z · o; the output bias belongs to the whole block
};

/// What latents are made with (RawLatents), undefined without.
struct LatentWeights {
  Tensor q, q_bias;    ///< (d_model, q_latent); undefined where queries are made of the stream
  Tensor kv, kv_bias;  ///< (d_model, kv_latent + rotary.width)
  NormWeights q_norm, kv_norm;
};

/// One of the MLPs of a layer that has several, as those of BlockWeights.
struct ExpertWeights {
  Tensor gate, gate_bias, up, up_bias, down, down_bias;
};

struct BlockWeights {
  NormWeights ln1;                 ///< before attention; undefined where norms stand behind only
  NormWeights ln1_post, ln2_post;  ///< behind attention and MLP; undefined in most models
  NormWeights q_norm, k_norm;      ///< of queries and keys: (d_head), or all heads' side by side; likewise
  NormWeights v_norm;              ///< of values, with gains of 1; likewise
  NormWeights z_norm;              ///< of what all heads put out, (heads · d_value); likewise
  LatentWeights latents;
  std::vector<HeadWeights> heads;
  Tensor o_bias;               ///< (d_model)
  Tensor decay_log;            ///< (lanes, d_state | 1): ln −a of a state space; undefined elsewhere
  Tensor position_buckets;     ///< (heads, buckets), of ModelConfig::buckets_by_layer
  Tensor sinks;                ///< (heads): the learned logit of each in its softmax; undefined in most models
  Tensor z_gate, z_gate_bias;  ///< (d_model, heads · d_value), (heads · d_value): what the sigmoids are of that heads'
                               ///< outputs are multiplied by; undefined in most models
  NormWeights ln2;         ///< before the MLP; undefined, as all below, in a block of attention alone, and where both
                           ///< read the same norm
  Tensor gate, gate_bias;  ///< (d_model, d_mlp), (d_mlp): gated MLPs only; the activation acts on this branch
  Tensor up, up_bias;      ///< likewise: the linear branch of a gated MLP
  NormWeights mlp_norm;    ///< behind the activation; undefined in most models
  Tensor down, down_bias;  ///< (d_mlp, d_model), (d_model): row i is what neuron i writes
  Backend::Xielu xielu;    ///< where the activation is that
  Tensor router, router_bias;          ///< (d_model, expert), (expert): layers with experts only, which have these
  std::vector<ExpertWeights> experts;  ///< in place of gate, up and down; one that takes every token comes last
};

struct ModelWeights {
  Tensor token_embedding;     ///< (vocab, d_model), or what RawWeights says of pictures
  Tensor patch_embedding;     ///< (numbers of a patch, d_model): models of pictures
  Tensor position_embedding;  ///< (context, d_model)
  std::vector<BlockWeights> blocks;
  std::vector<BlockWeights> cross;  ///< by layer: cross-attention with its norm (ln1), of encoder-decoders
  Tensor position_buckets;          ///< (heads, buckets), where all layers share them
  NormWeights embedding_norm;       ///< behind the token embedding, or the sum of all; undefined in most models
  NormWeights final_norm;           ///< undefined where the stream itself is normalised
  Tensor unembedding;               ///< (d_model, vocab): the token embedding again when they are tied
  Tensor unembedding_bias;          ///< (vocab)
  bool one_unembedding = true;      ///< false: scores are the mean of those of two tokens, of which this is the first's
};

/// A matrix of a block that activations are multiplied by. A state space has no q, k and v. With latents q, k and v are
/// those behind the latent; the dimensions of k that turn are 0 there, since they come past it.
enum class WeightMatrix { q, k, v, o, mlp_in, mlp_gate, mlp_out };
inline constexpr int weight_matrix_count = static_cast<int>(WeightMatrix::mlp_out) + 1;
/// "q", "k", "v", "o", "mlp_in", "mlp_gate", "mlp_out": as edits write them.
std::string_view name_of(WeightMatrix matrix);
/// "W_Q" … "W_O", "W_in", "W_gate", "W_out": as people read them.
std::string_view symbol_of(WeightMatrix matrix);

/// x → x W + b: all heads side by side.
struct Projection {
  Tensor weight;  ///< (in, out); undefined where the model has no such matrix
  Tensor bias;    ///< (out) or undefined
};

/// The norm that this model uses, row by row: what its forward pass computes.
Tensor normalized(const ModelConfig& config, const NormWeights& norm, Backend& backend, const Tensor& x,
                  RowQueue* later = nullptr);

/// φ(x) as the forward pass computes it; `xielu` is that of the layer, and otherwise not looked at.
Tensor activated(Activation activation, const Backend::Xielu& xielu, Backend& backend, const Tensor& x,
                 RowQueue* later = nullptr);
/// What a file stores of it (RawLayer::xielu) as numbers to compute with. Undefined: as training begins.
Backend::Xielu xielu_of(const Tensor& stored);

/// Rows (token, d_model) of the token embedding as they enter the residual stream: multiplied and normalised as this
/// model does.
Tensor embedded(const ModelConfig& config, const ModelWeights& weights, Backend& backend, const Tensor& rows);

/// What q·k is multiplied by in this layer: 1/√d_head or the model's own number, and 1/(layer + 1) where it has that.
float score_scale(const ModelConfig& config, int layer);

/// What the matrix of queries, keys or values multiplies where attention reads x (token, d_model): x, or the latent
/// made of it.
Tensor projection_input(const ModelConfig& config, const BlockWeights& block, Backend& backend, const Tensor& x,
                        WeightMatrix matrix);
/// What is added to the dimensions of every key that turn, (token, rotary.width), of a model with latents.
Tensor turning_keys(const ModelConfig& config, const BlockWeights& block, Backend& backend, const Tensor& x);

/// Where what a matrix of a block is multiplied by stands, and what the product gives, before any norm behind it.
SiteKind input_site(const ModelConfig& config, WeightMatrix matrix, int layer);
SiteKind output_site(const ModelConfig& config, WeightMatrix matrix, int layer);
/// Where queries and keys stand before they are rotated, and where they meet.
SiteKind unturned_site(const ModelConfig& config, bool keys);
SiteKind meeting_site(const ModelConfig& config, bool keys);
/// What the output matrix reads of what heads put out: z itself, or z ∘ σ(gate).
Tensor gated_output(Backend& backend, const Tensor& z, const Tensor& gate, RowQueue* later = nullptr);
/// What feeds attention, and what feeds the MLP: the norm before it, or the stream itself.
SiteKind attention_input(const ModelConfig& config, int layer);
SiteKind mlp_input(const ModelConfig& config, int layer);
/// These of all layers.
void add_inputs(const ModelConfig& config, std::set<SiteKind>& sites);

}  // namespace headscope
