#pragma once
// What a decoder, an encoder or a vision transformer is made of, as data. A family file (families/gpt2.cpp,
// families/llama.cpp …) turns a Hugging Face config.json into this and says where each weight is stored; the forward
// pass (model.cpp) reads only this, never a family's name.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/rotary.h"
#include "core/model/expert_config.h"
#include "core/model/sound_config.h"
#include "core/model/state_space_config.h"
#include "core/model/vision_config.h"
#include "core/trace/trace.h"

namespace headscope {

enum class NormKind {
  layer_norm,
  rms_norm,
  none  ///< what a norm is given passes as it is: Elhage et al.'s toy models
};
enum class PositionKind {
  none,
  learned,
  rotary,
  alibi,
  buckets  ///< T5: a learned number for each bucket of distances, of every head, the same in all layers
};
enum class Activation {
  relu,
  gelu,
  gelu_tanh,
  silu,
  quick_gelu,  ///< x · σ(1.702 x): CLIP
  solu,        ///< x ∘ softmax(x) over all neurons (Elhage et al., Softmax Linear Units, 2022)
  xielu,       ///< of each layer its own: Backend::Xielu
  relu2,       ///< max(0, x)² (So et al., Primer: Searching for Efficient Transformers, 2021)
  tanh
};

/// Where the norms of attention and MLP stand.
enum class NormPlace {
  before,    ///< x + f(norm(x))
  behind,    ///< x + norm(f(x)): OLMo 2
  both,      ///< x + norm(f(norm(x))): Gemma 2
  after_sum  ///< norm(x + f(x)): Vaswani et al., BERT. The stream itself is normalised, and there is no last norm
};
/// A norm of queries and keys, of the kind of all others, before they are rotated (ModelConfig::norm_after_rotation:
/// behind).
enum class QkNorm {
  none,
  per_head,   ///< each head by itself (Dehghani et al., Scaling Vision Transformers to 22 Billion Parameters, 2023)
  full_width  ///< all heads together: OLMo 2
};

/// Which products and norms add a bias.
struct BiasSet {
  bool q = true, k = true, v = true, o = true;
  bool up = true, down = true;  ///< the gate of a gated MLP has one where `up` has
  bool norm = true;             ///< LayerNorm only
  bool qk_norm = false;         ///< likewise
  bool unembedding = false;
  bool output_gate = false;
  bool last_o = false;  ///< o, of the last layer alone
  bool head = true;     ///< of the layer before the unembedding
  static BiasSet none() {
    return {.q = false, .k = false, .v = false, .o = false, .up = false, .down = false, .norm = false};
  }
};

/// Products whose matrices are blocks along a diagonal: so many groups of inputs, each of which makes the outputs of
/// its own group alone (SqueezeBERT). RawWeights hold them whole.
struct ProductGroups {
  int q = 1, k = 1, v = 1, o = 1, up = 1, down = 1;
  bool any() const { return q * k * v * o * up * down > 1; }
  bool operator==(const ProductGroups&) const = default;
};

/// Disentangled attention (core/attention/positions/disentangled.h).
struct DistanceConfig {
  int span = 0;          ///< the table has 2 · span rows of d_model numbers, the same in every layer, …
  int max_distance = 0;  ///< … DistanceVectors::max_distance
  bool content_to_position = true, position_to_content = true;  ///< which terms there are
  bool shared = false;    ///< K_r and Q_r by the matrices (and biases) of keys and queries, not by their own
  bool key_bias = false;  ///< K_r has one, of its own matrix; Q_r always has
  bool norm = false;      ///< a LayerNorm of the table's rows
};

/// A convolution along the tokens beside the first block (DeBERTa-v2 XL): norm(y + φ(Σ_t x_(i + t) W_t + b)), of what
/// enters the block (x) and what leaves it (y), t from −⌊tokens ÷ 2⌋ on; beyond both ends of a text x is 0.
struct FirstConvolution {
  int tokens = 3;  ///< odd
  int groups = 1;  ///< as those of ProductGroups
  Activation activation = Activation::gelu;
};

/// Numbers that parts of a block are multiplied by (Falcon H1's μP), read into its matrices and biases.
struct Multipliers {
  double attention_in = 1, key = 1, attention_out = 1;  ///< of what attention reads, of keys, of what it writes
  double state_in = 1, state_out = 1;                   ///< of what a state space reads, and writes
  double state_gate = 1, state_x = 1, state_b = 1, state_c = 1, state_step = 1;  ///< of what it makes of that
  double mlp_gate = 1, mlp_out = 1;
  bool operator==(const Multipliers&) const = default;
};

struct ModelConfig {
  std::string name, family;  ///< of the folder or file, "org/name" of a cache entry; config.json's "model_type"
  std::string text_family;  ///< of a model of pictures and text: the family of the half that reads text, where that may
                            ///< be of several
  ModelDims dims;           ///< layers, heads, kv_heads, d_head, d_model, d_mlp, vocab; of latents too
  int context = 0;
  NormKind norm = NormKind::layer_norm;
  double norm_epsilon = 1e-5;
  NormPlace norm_place = NormPlace::before;  ///< `behind` where dims.normed_behind says of which layers
  bool causal = true;  ///< a query sees no later token; false: encoders, which say what stands at a position, not what
                       ///< comes after it
  bool first_norm = true;           ///< false: attention of layer 0 reads the stream as it is (ModernBERT)
  bool norm_weights = true;         ///< false: norms have no gain (and no bias)
  bool final_rms = false;           ///< the last norm is an RMSNorm, whatever the others are
  bool bare_end = false;            ///< there is no last norm
  bool norm_gain_plus_one = false;  ///< stored gains are what is added to 1
  bool shared_norm = false;         ///< of a parallel block (dims.parallel): one norm for attention and MLP
  bool embedding_norm = false;      ///< a norm behind the token embedding …
  bool norm_of_embeddings = false;  ///< … or behind the sum of all embeddings
  int embedding_width = 0;          ///< > 0: of the stored embedding and unembedding, where matrices lie between them
                                    ///< and the stream (OPT 350M). A Model holds their products
  int segments = 0;                 ///< rows of a table of which the one of a token's segment is added to its embedding
  int tasks = 0;          ///< rows of a table of which the first is added to every token (ERNIE); read into the
                          ///< positions
  int task_tables = 1;    ///< so many tables of these (LayoutLM's four, of places on a page)
  int position_tail = 0;  ///< learned: rows of the table behind those of `context`, which no text reaches
  QkNorm qk_norm = QkNorm::none;
  bool qk_norm_by_head = false;      ///< every head has gains of its own
  bool norm_after_rotation = false;  ///< queries and keys are rotated first, then normalised (HunYuan). Gains then
                                     ///< stand between two rotations: a score depends on both positions, not on their
                                     ///< distance alone
  bool qk_norm_weights = true;       ///< false: the norm of queries and keys has no gains …
  bool qk_norm_turned = false;       ///< … true: and stands in layers that rotate alone (Llama 4)
  bool value_norm = false;           ///< values pass an RMSNorm without weights, head by head (Gemma 4)
  std::vector<int> kv_layers;        ///< by layer: the one whose keys and values it reads, itself or one before it;
                               ///< empty = its own (Brandon et al., Reducing Transformer Key-Value Cache Size with
                               ///< Cross-Layer Attention, 2024)
  std::vector<bool> values_are_keys;  ///< by layer: values are the projection that keys are made of; empty = none
  int layer_vocab = 0;                ///< rows of the table of dims.d_layer: at least as many as tokens
  double latent_epsilon = 1e-6;       ///< of the norms of latents
  bool output_gate = false;  ///< what a head puts out is multiplied, number by number, by σ of a projection of
                             ///< what the layer reads (Qiu et al., Gated Attention for Large Language Models,
                             ///< 2025)
  bool z_norm = false;  ///< what heads put out passes, all together, a norm before the output matrix (Ma et al., The
                        ///< Era of 1-bit LLMs, 2024: BitNet b1.58's sub-norms)
  int input_bits = 0;   ///< > 0: what matrices of blocks read is rounded, row by row, to whole numbers of so many bits
                        ///< times a step, core/model/rounded_rows.h; sites show it rounded
  double clip_qkv = 0;  ///< > 0: queries and keys (behind their norm) and values are cut to ± this
  PositionKind position = PositionKind::learned;
  RotaryConfig rotary;                     ///< of most layers; of pictures see picture_rotation()
  std::vector<RotaryConfig> layer_rotary;  ///< of every layer, where they differ; else empty
  std::vector<bool> layer_turns;           ///< whether a layer rotates; empty = all do
  std::vector<double> alibi_slopes;        ///< alibi: by head
  double alibi_unit = 0;                   ///< > 0: rounded on the way, as Falcon does: HeadRule::slope_unit
  int position_offset = 0;                 ///< learned: rows of the table before that of position 0
  bool sinusoids = false;         ///< learned: the table is not learnt but that of Vaswani et al., sines before cosines
  bool sinusoids_to_end = false;  ///< the last of the pairs turns by exactly 1/10000 per token (Tensor2Tensor, M2M-100)
  int position_buckets = 32, position_distance = 128;  ///< buckets: how many, and where the last begins
  bool buckets_too = false;                            ///< buckets beside learned positions (MPNet)
  bool buckets_by_layer = false;                       ///< every layer learned its own (UMT5)
  std::optional<DistanceConfig> distances;             ///< beside `position`: vectors that queries and keys meet
  std::optional<FirstConvolution> convolution;         ///< where dims.convolves_first says so
  int block_size = 0, random_blocks = 0;  ///< > 0: of block-sparse attention, which texts of up to `context` tokens do
                                          ///< not meet (BigBird)
  ProductGroups groups;
  std::vector<int> windows;    ///< by layer: a query sees itself and the window − 1 tokens before it (and, in an
                               ///< encoder, after it); 0 = all of them. Empty = no layer has a window
  std::vector<int> chunks;     ///< by layer: a query sees the keys before it that stand in its own chunk of so many
                               ///< tokens; 0 = all of them. Empty = no layer does
  double unturned_growth = 0;  ///< β, L: queries of layers that do not rotate are multiplied by
  int unturned_floor = 0;      ///< 1 + β ln(1 + ⌊(position + 1) ÷ L⌋)
  Activation activation = Activation::gelu_tanh;
  bool gated_mlp = false;
  bool mlp_norm = false;  ///< a norm behind the activation (and gate): SoLU, BitNet. It has weights where the other
                          ///< norms are of its kind, with weights
  NormKind mlp_norm_kind = NormKind::layer_norm;
  double gate_alpha = 0, gate_limit = 0;  ///< limit > 0, of a gated MLP: with g = min(gate, limit) and u = clip(up, ±
                                          ///< limit) it goes on with (u + 1) · g · σ(α g), whatever `activation` says
  ExpertConfig experts;                         ///< the layers whose MLP is several
  std::optional<StateSpaceConfig> state_space;  ///< of the layers that mix by a state: dims.state_space(layer)
  std::optional<Activation> state_activation;   ///< behind their convolution, where it is not `activation`
  std::optional<VisionConfig> vision;  ///< of models that read pictures; dims.vocab is then the number of classes, and
                                       ///< `context` that of tokens
  std::optional<SoundConfig> sound;    ///< of an encoder that reads a sound; dims.vocab is then 0, and `context` the
                                       ///< number of rows
  BiasSet bias;
  bool predicts = true;     ///< false: the file has no matrix to logits, only what stands below
  bool head_layer = false;  ///< the unembedding reads norm(f(x W + b)) of what leaves the blocks (and their last norm)
  Activation head_activation = Activation::gelu;  ///< f
  bool tied_embeddings = true;
  bool scale_by_inverse_sqrt_d = true;  ///< scores ÷ √d_head
  bool scale_by_inverse_layer = false;  ///< scores ÷ (layer + 1), a GPT-2 training option
  std::optional<double> score_scale;    ///< what q·k is multiplied by in place of 1/√d_head
  bool learned_sinks = false;           ///< every head has a logit of its own in the softmax: AttentionRule::sink, …
  std::vector<bool> sink_layers;        ///< … in these layers; empty = in all
  double score_cap = 0, logit_cap = 0;  ///< > 0: x is bent to cap · tanh(x ÷ cap)
  double embedding_scale = 1, logit_scale = 1;
  std::optional<std::int32_t> dropped_token;  ///< its embedding is 0, and all others of a text are divided by their
                                              ///< share of it: masked tokens of ESM, which were dropped in training
  double residual_scale = 1;                  ///< of what attention and MLP add; read into their output matrices
  Multipliers multipliers;
  double attention_stream = 1, state_stream = 1, mlp_stream = 1;  ///< what the stream is multiplied by where attention,
                                                                  ///< a state or the MLP is added to it (MiniMax)
  double value_scale = 1;     ///< of values; read into the matrices (and biases) that make them
  bool layer_scales = false;  ///< the same with a learned number for each dimension (Touvron et al., Going deeper with
                              ///< Image Transformers, 2021)
  int layer_groups = 0;       ///< > 0: so many blocks, each of them used by as many layers in a row (ALBERT)
  std::optional<std::int32_t> bos, eos;
  Stack stack = Stack::only;
  /// Of an encoder-decoder, which is its decoder: the encoder. Null elsewhere.
  std::shared_ptr<const ModelConfig> encoder;
  bool shared_embedding = true;    ///< of both its stacks
  std::int32_t decoder_start = 0;  ///< the token that every target begins with

  /// Whether blocks attend to a source between their attention and their MLP.
  bool cross() const { return encoder != nullptr; }

  /// Whether heads turn whole, in pairs (i, i + d_head/2).
  bool turns_halves() const {
    return !vision && position == PositionKind::rotary && rotary.width == 0 &&
           rotary.layout == RotaryLayout::half_split;
  }
  /// Whether no text is longer than `context`, where a table of positions ends. Rotations, biases by distance, and no
  /// positions at all go on, whatever length was trained.
  bool ends_at_context() const { return position == PositionKind::learned; }
  bool has_buckets() const {
    return position == PositionKind::buckets || buckets_too || (vision && vision->place_biases);
  }
  /// Whether positions and segments are of embedding_width too, and so is the norm of the sum, behind which the matrix
  /// (with a bias) stands; the layer before the unembedding leads back. A Model holds no products then.
  bool narrow_sum() const { return dims.d_embed > 0; }
  /// Whether a norm reads the embedding of a token with nothing added to it. Then its length changes nothing behind the
  /// norm, and no output moves as it fades in.
  bool normed_alone() const {
    return norm_of_embeddings && norm != NormKind::none && position != PositionKind::learned && segments == 0;
  }
  /// Width of positions, segments, and the norm of the embeddings.
  int sum_width() const { return dims.embed_width(); }
  /// Which of the blocks that are stored a layer is, and whether the one before was the same.
  int block_of(int layer) const { return layer_groups > 0 ? layer * layer_groups / dims.layers : layer; }
  /// The block of the file that has this layer's weights.
  int stored_block(int layer) const { return dims.paired ? layer / 2 : block_of(layer); }
  /// The layer whose entering stream the norm before attention (or a state space) reads: this one, as a rule.
  int entered(int layer) const { return dims.paired ? layer / 2 * 2 : layer; }
  bool repeats(int layer) const { return layer > 0 && block_of(layer) == block_of(layer - 1); }
  /// What a row of logits is about.
  Objective objective() const {
    if (!predicts) return Objective::nothing;
    if (vision) return Objective::image_class;
    return causal ? Objective::next_token : Objective::masked_token;
  }
  /// Of some layer; of this one (outside the blocks: of some).
  bool norms_before() const {
    return norm_place == NormPlace::before || norm_place == NormPlace::both || !dims.normed_behind.empty();
  }
  bool norms_behind() const { return norm_place == NormPlace::behind || norm_place == NormPlace::both; }
  bool norms_before(int layer) const {
    return layer < 0 || dims.normed_behind.empty() ? norms_before()
                                                   : !dims.normed_behind[static_cast<std::size_t>(layer)];
  }
  bool norms_behind(int layer) const {
    return layer < 0 || dims.normed_behind.empty() ? norms_behind()
                                                   : dims.normed_behind[static_cast<std::size_t>(layer)];
  }
  /// Whether some layer has one MLP for all tokens.
  bool has_dense() const {
    for (int layer = 0; layer < dims.layers; ++layer)
      if (dims.has_mlp(layer) && (!experts.at(layer) || experts.beside)) return true;
    return false;
  }
  bool norms_sums() const { return norm_place == NormPlace::after_sum; }
  /// Whether a norm stands behind the last block.
  bool last_norm() const { return !norms_sums() && !bare_end; }
  NormKind final_norm() const { return final_rms ? NormKind::rms_norm : norm; }
  /// Whether keys and values are made of a latent. Then the rotary.width dimensions of a head that turn come first;
  /// those of a key are the same in every head, straight from the stream, and the latent gives the others.
  bool latent() const { return dims.kv_latent > 0; }
  /// Numbers per token and layer from which keys and values can be made again.
  int cached_numbers() const {
    return latent() ? dims.kv_latent + rotary.width : dims.kv_heads * (dims.d_head + dims.value_width());
  }
  /// Whether the output matrix of attention reads something else than what heads put out: site z_gated.
  bool changes_z() const { return output_gate || z_norm || input_bits > 0; }
  int window(int layer) const { return windows.empty() ? 0 : windows[static_cast<std::size_t>(layer)]; }
  /// Whether queries and keys of this layer are rotated.
  bool turns(int layer) const {
    return position == PositionKind::rotary && (layer_turns.empty() || layer_turns[static_cast<std::size_t>(layer)]);
  }
  int chunk(int layer) const { return chunks.empty() ? 0 : chunks[static_cast<std::size_t>(layer)]; }
  /// The layer whose keys and values this one reads.
  int kv_layer(int layer) const { return kv_layers.empty() ? layer : kv_layers[static_cast<std::size_t>(layer)]; }
  bool own_keys(int layer) const { return kv_layer(layer) == layer; }
  bool has_sinks(int layer) const {
    return learned_sinks && dims.attends(layer) &&
           (sink_layers.empty() || sink_layers[static_cast<std::size_t>(layer)]);
  }
  bool value_is_key(int layer) const {
    return !values_are_keys.empty() && values_are_keys[static_cast<std::size_t>(layer)];
  }
  bool norms_keys(int layer) const { return qk_norm != QkNorm::none && (!qk_norm_turned || turns(layer)); }
  /// Whether a pass can begin at any block by the residual stream alone: not where later blocks read what earlier ones,
  /// or the embedding, gave them besides.
  bool stream_is_all() const { return kv_layers.empty() && dims.d_layer == 0 && !dims.paired; }
  /// Whether a norm stands between the rotation of queries and keys and where they meet.
  bool normed_turned() const {
    return norm_after_rotation && qk_norm != QkNorm::none && position == PositionKind::rotary;
  }
  /// Whether what a rotation makes of a score depends on the distance alone, in a text of so many tokens. Patches of a
  /// picture are turned by their row and their column.
  bool told_by_distance(std::int64_t tokens) const {
    return !vision && !normed_turned() && (rotary.query_growth <= 0 || tokens <= rotary.original_context) &&
           (unturned_growth <= 0 || tokens < unturned_floor);
  }
  const RotaryConfig& rotary_of(int layer) const {
    return layer_rotary.empty() ? rotary : layer_rotary[static_cast<std::size_t>(layer)];
  }
};

/// Reads the config.json of a model (core/io/model_location.h says what a path may be), or what a GGUF or llama2.c file
/// says in its place. Throws Error naming the key on anything missing, absurd (zero, negative, above sane limits, heads
/// that do not divide) or not supported (another architecture, another rope_scaling).
ModelConfig load_config(const std::filesystem::path& path);

}  // namespace headscope
