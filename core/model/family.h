#pragma once
// A family is a dialect of Hugging Face folders: how its config.json reads as a ModelConfig, and where its safetensors
// keep each weight. The forward pass never sees a family, only ModelConfig and RawWeights. A new family is one file
// (families/) with these functions and one line in families() (family.cpp).

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/tensor_file.h"
#include "core/model/config.h"
#include "core/tensor/tensor.h"

namespace headscope {

enum class WeightMatrix;

/// What an adapter added to a matrix W: W + down · up.
struct LowRankUpdate {
  Tensor down, up;  ///< (in, r), (r, out)
};

struct RawExpert {
  Tensor gate_weight, gate_bias, up_weight, up_bias, down_weight, down_bias;  ///< as those of RawLayer
};
/// The MLP of a layer with experts.
struct RawExperts {
  Tensor router_weight, router_bias;  ///< (d_model, expert), (expert)
  Tensor correction;                  ///< (expert)
  std::vector<RawExpert> each;        ///< of ExpertConfig::width
  RawExpert shared;                   ///< of ExpertConfig::shared_width
  Tensor shared_gate;                 ///< (d_model, 1): of ExpertConfig::shared_gate
  // Of ExpertConfig::beside, (d_model) each: gains of the norms before the router, before and behind the experts, and
  // behind the MLP beside them.
  Tensor router_gain, in_gain, out_gain, dense_gain;
  Tensor output_weight;  ///< (expert): of ExpertConfig::weigh_output
};

/// What a block makes its latents with (ModelConfig::latent()). Biases and what makes those of queries may be
/// undefined.
struct RawLatents {
  Tensor q_weight, q_bias;    ///< (d_model, q_latent), (q_latent)
  Tensor q_gain;              ///< (q_latent): of the norm behind it
  Tensor kv_weight, kv_bias;  ///< (d_model, kv_latent + rotary.width): then the part of every key that turns
  Tensor kv_gain;             ///< (kv_latent)
};

/// What a layer of a state space has in place of queries, keys and values (StateSpaceConfig). Biases may be undefined.
struct RawStateSpace {
  Tensor x_weight, x_bias;        ///< (d_model, convolved): channels, and with Lane::head B and C, before convolution
  Tensor gate_weight, gate_bias;  ///< (d_model, d_inner)
  Tensor convolution_weight, convolution_bias;  ///< (convolved, tokens), the latest last; (convolved). As what
                                                ///< makes Δ, undefined in StateSpaceConfig::steady
  Tensor select_weight;  ///< Lane::channel: (d_inner, step_rank + 2 · d_state): what Δ, B and C are read by
  Tensor step_norm_gain, b_norm_gain, c_norm_gain;  ///< of StateSpaceConfig::select_norms, behind it
  Tensor step_weight, step_bias;  ///< (step_rank, lanes), or with Lane::head (d_model, lanes), (lanes)
  Tensor delta_bias;              ///< (lanes): inside the softplus
  Tensor decay_log;               ///< (lanes, d_state), or (lanes, 1) with Lane::head: ln −a
  Tensor d;                       ///< (lanes): what passes by the state
  Tensor beta_weight;             ///< Lane::delta: (d_model, lanes)
  Tensor norm_gain;               ///< (d_inner), of StateSpaceConfig::gated_norm
};
/// All of them, the gains of norms last; undefined where the kind has none.
std::vector<Tensor> tensors_of(const RawStateSpace& mixer);
std::vector<Tensor> norm_gains_of(const RawStateSpace& mixer);

/// One block. Matrices are (in, out), whatever the file's order: views of what was read, so strides may be
/// anything, and numbers as they are stored (Tensor::kind()). A bias the model does not have is undefined
/// (Tensor::defined() is false).
struct RawLayer {
  Tensor ln1_gain, ln1_bias;  ///< (d_model): before attention, or behind its sum with the stream; the norm behind
                              ///< attention where that is the only one: ln1_post
  Tensor ln1_post_gain, ln2_post_gain;  ///< (d_model): behind attention, behind the MLP
  Tensor q_weight,
      q_bias;  ///< (d_model, heads · d_head), (heads · d_head); head h owns columns [h·d_head, (h+1)·d_head)
  Tensor k_weight, k_bias;  ///< (d_model, kv_heads · d_head), (kv_heads · d_head); undefined, as those of values, in a
                            ///< layer that reads another's (ModelConfig::kv_layers)
  Tensor v_weight, v_bias;  ///< (d_model, kv_heads · d_value), (kv_heads · d_value)
  RawLatents latents;       ///< of which, if there are some, the matrices above have q_latent or kv_latent rows;
                            ///< columns of k_weight that turn are 0
  Tensor q_norm_gain, q_norm_bias;    ///< (d_head), (heads · d_head) with a gain of each head's own or over full width
  Tensor k_norm_gain, k_norm_bias;    ///< likewise of kv_heads
  Tensor sinks;                       ///< (heads): of learned sinks only
  Tensor z_norm_gain;                 ///< (heads · d_value): of ModelConfig::z_norm
  Tensor z_gate_weight, z_gate_bias;  ///< (d_model, heads · d_value), (heads · d_value): ModelConfig::output_gate
  RawStateSpace state_space;          ///< in place of queries, keys and values; o_weight has d_inner rows then
  Tensor o_weight, o_bias;            ///< (heads · d_value, d_model), (d_model)
  Tensor ln2_gain, ln2_bias;          ///< (d_model)
  Tensor up_weight, up_bias;          ///< (d_model, d_mlp), (d_mlp): the linear branch when the MLP is gated
  Tensor gate_weight, gate_bias;  ///< (d_model, d_mlp), (d_mlp): gated MLPs only; the activation acts on this branch
  Tensor mlp_norm_gain, mlp_norm_bias;  ///< (d_mlp): of a norm behind the activation
  Tensor down_weight, down_bias;        ///< (d_mlp, d_model), (d_model)
  Tensor xielu;                         ///< (4), Activation::xielu only: α_p and α_n before their softplus, β, ε
  RawExperts experts;                   ///< in place of up, gate and down
  // Of ModelDims::d_layer: (d_model, d_layer), (d_layer, d_model), (d_model): what gates the layer's own input, what
  // writes it to the stream, and the norm behind that.
  Tensor input_gate_weight, input_out_weight, input_gain;
  Tensor stream_scale;      ///< (1): of ModelDims::stream_scales
  Tensor position_buckets;  ///< (buckets, heads), of ModelConfig::buckets_by_layer
  Tensor distance_k_weight, distance_k_bias, distance_q_weight, distance_q_bias;  ///< as those of keys and queries: of
                                                                                  ///< ModelConfig::distances
  std::map<WeightMatrix, LowRankUpdate> adapted;  ///< matrices that an adapter was merged into
};

/// Of ModelConfig::convolution.
struct RawConvolution {
  std::vector<Tensor> taps;      ///< (d_model, d_model) each, of the earliest token first
  Tensor bias, gain, gain_bias;  ///< (d_model): of their sum, and of the norm behind
};

struct RawWeights {
  Tensor token_embedding;                  ///< (vocab, d_model), or (vocab, embedding_width), which …
  Tensor embedding_in;                     ///< (embedding_width, d_model): … is multiplied by this
  Tensor embedding_in_bias;                ///< (d_model): of ModelConfig::narrow_sum, as whose sum_width() that of the
                                           ///< positions, of the segments and of the norm is
  std::vector<Tensor> leading_tokens;      ///< (1, d_model) each: before the patches of a picture, which have these in
                                           ///< place of a table
  Tensor patch_bias;                       ///< (1, d_model): what is added to every patch; may be undefined
  Tensor patch_embedding;                  ///< (numbers of a patch, d_model)
  std::vector<Tensor> convolutions;        ///< of a sound: (3 · mels, d_model) and (3 · d_model, d_model), rows as
                                           ///< convolved() has them, …
  std::vector<Tensor> convolution_biases;  ///< … (d_model) each
  Tensor position_embedding;               ///< (context, d_model), learned positions only
  Tensor segment_embedding;                ///< (segments, d_model)
  // Of ModelDims::d_layer = w: (layer_vocab, layers · w), (d_model, layers · w), (w): the table of every layer's own
  // input of a token, what makes another part of it of the embedding, and the norm behind that.
  Tensor layer_embedding, layer_projection, layer_gain;
  Tensor embedding_gain, embedding_bias;  ///< (d_model): of a norm behind the embedding, or the sum of all
  Tensor position_buckets;                ///< (buckets, heads), where all layers share them
  Tensor distances;                       ///< (2 · span, d_model): of ModelConfig::distances, …
  Tensor distance_gain, distance_bias;    ///< … (d_model): of their norm
  RawConvolution convolution;
  std::vector<RawLayer> layers;
  std::vector<RawLayer> cross;            ///< by layer: cross-attention with its norm (ln1), all else undefined
  std::shared_ptr<RawWeights> encoder;    ///< of an encoder-decoder
  Tensor final_gain, final_bias;          ///< (d_model)
  Tensor head_weight, head_bias;          ///< (d_model, out), (out): ModelConfig::head_layer; out = dims.out_width()
  Tensor head_norm_gain, head_norm_bias;  ///< (out): of the norm behind it
  Tensor embedding_out;                   ///< (d_model, embedding_width): stands before the unembedding then
  Tensor unembedding;                     ///< (d_model | embedding_width, vocab); a view of token_embedding when tied
  bool untied = false;                    ///< it is not, though the configuration says that it is tied
  Tensor unembedding_bias;                ///< (vocab)
  Tensor second_unembedding, second_unembedding_bias;  ///< likewise, where VisionConfig::class_heads is 2
  std::int64_t parameters = 0;                         ///< numbers the model uses, tied ones once
  std::string dtype;                                   ///< stored types: "F32", or "BF16+F32" when mixed
  std::vector<std::string> adapted_elsewhere;          ///< tensors outside the blocks that an adapter changed
  std::vector<std::string> unused;  ///< tensors of the file outside the blocks that this model does not use
};

class ConfigReader;

/// Where a family's reader takes its tensors from: the file of a trained model, or tensors in memory.
class WeightSource {
 public:
  virtual ~WeightSource() = default;
  virtual std::string where() const = 0;  ///< for errors
  virtual std::vector<std::string> names() const = 0;
  virtual bool contains(const std::string& name) const = 0;
  /// A tensor that is there. Throws Error naming tensor and both shapes when its shape is another.
  virtual Tensor take(const std::string& name, const Shape& shape) const = 0;
  virtual std::string dtype(const std::string& name) const = 0;
  /// Called once a family's reader has taken what it needs. Throws Error when it left what it must not.
  virtual void finish(const ModelConfig&, RawWeights&) const {}
};

struct Family {
  std::string model_type;  ///< config.json's "model_type"
  std::string summary;     ///< for error messages and `inspect`
  /// Fills everything but name and family. Throws Error naming the key.
  std::function<ModelConfig(const ConfigReader& json)> read_config;
  /// Throws Error naming file, tensor, and both shapes, or listing every missing tensor.
  std::function<RawWeights(const WeightSource& source, const ModelConfig& config)> read_weights;
  /// A config.json that read_config reads back to the same configuration, name and family apart.
  std::function<std::string(const ModelConfig& config)> write_config;
  /// The names of tensors of which every file with a layer before its logits has one (ModelConfig::head_layer): files
  /// of a bare encoder have none, whatever their config.json calls them. May be empty.
  std::function<std::vector<std::string>(const ModelConfig& config)> head_tensors = {};
};

std::span<const Family> families();
/// Throws Error listing the known types.
const Family& family(std::string_view model_type, const std::string& where);

/// The weights of a folder whose configuration load_config() read.
RawWeights read_weights(const TensorFile& file, const ModelConfig& config);
RawWeights read_weights(const WeightSource& source, const ModelConfig& config);
/// Likewise of a model's own file, which `config` follows where the two differ: RawWeights::untied.
RawWeights read_model_weights(const WeightSource& file, ModelConfig& config);
/// The text of a config.json for this model.
std::string write_config(const ModelConfig& config);

}  // namespace headscope
