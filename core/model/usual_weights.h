#pragma once
// Where most decoders keep their weights: one tensor per matrix, layers counted, matrices stored (out, in) as
// torch.nn.Linear does. A family says what it calls them; an empty name is a tensor that it does not have.

#include <string>
#include <utility>
#include <vector>

#include "core/model/expert_weights.h"
#include "core/model/family.h"
#include "core/model/latent_weights.h"
#include "core/model/state_space_weights.h"

namespace headscope {

/// How queries, keys and values lie in one stored matrix, along its outputs.
enum class FusedQkv {
  side_by_side,  ///< all queries, all keys, all values
  by_group,      ///< for every key head: the queries that read it, its key, its value (GPT-NeoX, BLOOM, Falcon)
  four_chunks    ///< four times: a quarter of the queries, of the values, of the keys (CodeGen)
};

/// A layer before the logits by other names, the bias of the logits with it.
struct HeadNames {
  std::string head, head_norm, unembedding_bias;
};

struct WeightNames {
  std::vector<std::string> prefixes{"model.", ""};
  std::string embedding = "embed_tokens", embedding_norm, positions, segments;
  /// Of the embedding in place of its own name: full names, of which the first that is there is taken.
  std::vector<std::string> embeddings;
  std::string probe;  ///< by which the prefix is told where the embedding has none: behind a prefix
  std::string embedding_in, embedding_out;  ///< of ModelConfig::embedding_width
  std::string block = "layers.", ln1 = "input_layernorm", ln2 = "post_attention_layernorm", ln1_post, ln2_post;
  std::string q = "self_attn.q_proj", k = "self_attn.k_proj", v = "self_attn.v_proj", o = "self_attn.o_proj";
  std::string q_norm = "self_attn.q_norm", k_norm = "self_attn.k_norm";
  std::string head_by_head;  ///< with ModelConfig::qk_norm_by_head: the norm of head h is "q_norm.THIS" + h
  std::string sinks = "self_attn.sinks";
  std::string last_o_bias;  ///< of BiasSet::last_o
  /// Of ModelDims::d_layer: table, projection and norm of all layers, and of a block gate, output and norm.
  std::string layer_embedding, layer_projection, layer_norm, input_gate, input_out, input_norm;
  std::string stream_scale;  ///< of ModelDims::stream_scales
  std::string z_norm;        ///< of ModelConfig::z_norm, and mlp_norm, where the norms have weights
  std::string mlp_norm;
  bool norms_behind_sums = false;  ///< of NormPlace::after_sum: what stands behind the sum with an MLP is the norm that
                                   ///< the file has before the next block, or at its end; that before the first stands
                                   ///< behind the embedding, and `ln1` is that behind the sum with attention
  std::string z_gate;   ///< of ModelConfig::output_gate; empty: every head's gate comes behind its queries in `q`
  std::string buckets;  ///< (bucket, head), behind a layer's number only with ModelConfig::buckets_by_layer
  /// Of ModelConfig::distances: the table and its norm, and of a block what makes K_r and Q_r.
  std::string distances, distance_norm, distance_k, distance_q;
  std::string convolution, convolution_norm;  ///< of ModelConfig::convolution
  /// Of ModelConfig::tasks, and how often the first row of each is added.
  std::vector<std::pair<std::string, int>> tasks;
  /// Where a block's mixer and its MLP are layers by themselves in the file, each behind a norm that is called ln1: the
  /// numbers of both, by block; −1 = it has no MLP.
  std::vector<std::pair<int, int>> apart;
  std::string in_block;                                      ///< stands between a layer's number and all names in it
  std::string scale1, scale2;                                ///< of ModelConfig::layer_scales
  std::string cross_ln, cross_q, cross_k, cross_v, cross_o;  ///< of ModelConfig::cross()
  std::string cross_ln_post;                                 ///< where norms stand behind, too
  std::string qkv;                                           ///< in place of q, k and v
  FusedQkv fused = FusedQkv::side_by_side;
  std::string q_bias, v_bias;   ///< beside `qkv`, which has none then
  bool swapped_halves = false;  ///< the two numbers of a pair that turns change places: where pairs turn the other way
  std::string gate = "mlp.gate_proj", up = "mlp.up_proj", down = "mlp.down_proj";
  std::string gate_up;               ///< in place of gate and up: first the gate, …
  bool up_first = false;             ///< … or the other
  bool kernels = false;              ///< products are stored as kernels of convolutions over one token
  ExpertNames experts;               ///< in place of these, in layers that have some
  std::string xielu = "mlp.act_fn";  ///< of Activation::xielu
  std::string final_norm = "norm", unembedding = "lm_head";
  std::string unembedding_too;              ///< another name of it, in files that have not the first
  bool bias_is_buffer = false;              ///< the unembedding's bias is one row beside the parameters, or absent
  std::string unembedding_bias;             ///< where it is not the unembedding's name with ".bias"
  std::string head, head_norm;              ///< of ModelConfig::head_layer; never behind a prefix
  HeadNames head_too;                       ///< in files that have not that one
  LatentNames latents;                      ///< of ModelConfig::latent()
  StateSpaceNames state_space;              ///< of ModelConfig::state_space
  std::vector<std::string> leading_tokens;  ///< of VisionConfig; `embedding` is then the patches' and `positions` …
  std::string leading_in_one;               ///< (1, leading, d_model), in place of these
  std::string registers;                    ///< (1, VisionConfig::registers, d_model): the last of the leading tokens
  bool positions_are_embedding = true;    ///< … a torch.nn.Embedding (name + ".weight") or else a parameter by itself
  std::string second_unembedding;         ///< of VisionConfig::class_heads
  std::vector<std::string> convolutions;  ///< of ModelConfig::sound, in place of an embedding
  bool layers_behind = false;             ///< files may have layers behind the last, which are no part of the decoder
  std::vector<std::string> ignored{"self_attn.rotary_emb.inv_freq"};  ///< of a block: buffers that no pass needs
};

/// Throws as WeightReader does. Weights that a file stores in another order than heads, or that the configuration
/// multiplies, are copies: such a model is not trained.
RawWeights read_usual_weights(const WeightSource& source, const ModelConfig& config, const WeightNames& names);
/// Of an encoder-decoder: both stacks. What they share counts once.
RawWeights read_two_stacks(const WeightSource& source, const ModelConfig& config, const WeightNames& decoder,
                           const WeightNames& encoder);

}  // namespace headscope
