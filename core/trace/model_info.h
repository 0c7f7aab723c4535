#pragma once
// What a model is made of, as a trace remembers it: extents, name, number of parameters.

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/named_values.h"
#include "core/trace/stack.h"

namespace headscope {

/// What mixes the tokens of a layer. A kind that is added needs: its settings in ModelConfig, its weights (RawLayer,
/// usual_weights.cpp, model_load.cpp), a case of Pass::attend() (core/model/model.cpp) and of plain::attend(), what a
/// cache keeps of it (kv_cache.h), its sites (model_sites.cpp) and parameters (parameter_parts.cpp). What it puts out
/// is d_inner wide, and every head has a share of that and a map of its own (MapKind::effective): tools ask
/// attends(layer).
enum class Mixer : unsigned char { attention, state_space };
inline constexpr NamedValue<Mixer> mixer_names[] = {{"attention", Mixer::attention},
                                                    {"state_space", Mixer::state_space}};

/// What a layer with a state does with a token, which decides what sites it has.
enum class StateKind : unsigned char {
  selective,   ///< it writes and forgets as much as a step Δ says: Mamba (core/attention/state_mixing.h)
  delta,       ///< it replaces at a rate β what stands at its key: the gated delta rule (gated_delta.h)
  convolution  ///< it holds the last few tokens: the gated short convolution (short_convolution.h)
};
inline constexpr NamedValue<StateKind> state_kind_names[] = {
    {"selective", StateKind::selective}, {"delta", StateKind::delta}, {"convolution", StateKind::convolution}};

/// What a layer has of its own in a model whose layers differ in width.
struct LayerWidths {
  int kv_heads = 0, d_head = 0, d_mlp = 0;
  bool operator==(const LayerWidths&) const = default;
};

/// Extents of a model that decide how large each site is. For a text of n tokens.
struct ModelDims {
  int layers = 0, heads = 0, kv_heads = 0, d_head = 0, d_model = 0, d_mlp = 0, vocab = 0;
  int experts = 0;        ///< of a layer whose MLP is several; 0 = none has any
  bool parallel = false;  ///< attention and MLP of a block read the same stream: there is none between them
  int d_value = 0;        ///< width of a value, where it is not d_head
  /// Numbers per token that keys and values, and queries, are made of (latent attention: DeepSeek-AI, DeepSeek-V2,
  /// 2024); 0 = of the stream itself.
  int kv_latent = 0, q_latent = 0;
  /// Of layers that mix by a state in place of attention (core/model/state_space_config.h): where all do, d_head is
  /// d_inner ÷ heads. d_inner > 0 tells that there are some:
  /// its channels, the lanes that they form, groups of B and C, states of a channel, and channels that are convolved.
  int d_inner = 0, lanes = 0, state_groups = 0, d_state = 0, convolved = 0;
  int d_embed = 0;  ///< width of what positions and segments are added to, and of what the unembedding reads, where a
                    ///< matrix lies between it and the stream (ALBERT, ELECTRA)
  int d_out = 0;    ///< width of what the unembedding reads, where it is not embed_width() (RemBERT)
  int d_layer = 0;  ///< width of what every layer gets of each token by itself (Gemma 3n, Gemma 4)
  bool stream_scales = false;  ///< what leaves a block is multiplied by a learned number, the stream with it

  /// Of hybrid models: each layer's. Empty = all are alike, by a state where d_inner > 0 says so, else by attention.
  /// Heads of a layer that is no attention are heads_of(layer) groups of neighbouring lanes.
  std::vector<Mixer> mixers = {};
  /// Layers come in pairs, a state space and attention with an MLP, that are one block of the file: the norm before
  /// either reads what enters the first (Falcon H1).
  bool paired = false;
  bool convolves_first = false;  ///< a convolution of what enters layer 0 is added to what leaves it (DeBERTa-v2 XL)
  std::vector<bool> bare = {};   ///< by layer: it has no MLP, others have; empty = all are alike
  std::vector<bool> normed_behind = {};  ///< by layer: its norms stand behind attention and MLP, those of others
                                         ///< before; empty = all are alike

  StateKind state_kind = StateKind::selective;  ///< of layers with a state
  /// Heads of a hybrid's layers with a state, where those of attention do not divide their lanes; 0 = as many as
  /// attend.
  int state_heads = 0;
  /// By layer, where layers that attend differ: kv_heads, d_head and d_mlp are then those of most. Empty = all alike.
  std::vector<LayerWidths> widths = {};

  LayerWidths widths_of(int layer) const {
    return widths.empty() ? LayerWidths{kv_heads, d_head, d_mlp} : widths[static_cast<std::size_t>(layer)];
  }

  Mixer mixer(int layer) const {
    assert(layer >= 0);
    if (!mixers.empty()) return mixers[static_cast<std::size_t>(layer)];
    return d_inner > 0 ? Mixer::state_space : Mixer::attention;
  }
  /// So many heads this layer has; `heads`, where no layer's number differs. Heads by layer and head stand in
  /// most_heads() columns, of which the last are empty in layers of fewer.
  int heads_of(int layer) const { return attends(layer) ? heads : heads_of_states(); }
  int heads_of_states() const { return state_heads > 0 ? state_heads : heads; }
  int most_heads() const { return std::max(heads, state_heads); }
  bool has_head(int layer, int head) const {
    return layer >= 0 && layer < layers && head >= 0 && head < heads_of(layer);
  }
  /// Of all layers.
  int all_heads() const {
    int count = 0;
    for (int layer = 0; layer < layers; ++layer) count += heads_of(layer);
    return count;
  }
  bool attends(int layer) const { return mixer(layer) == Mixer::attention; }
  bool state_space(int layer) const { return mixer(layer) == Mixer::state_space; }
  /// Of every layer; and whether some layer is one.
  bool attends() const {
    return mixers.empty() ? d_inner == 0 : std::ranges::count(mixers, Mixer::attention) == layers;
  }
  bool state_space() const { return mixers.empty() && d_inner > 0; }
  bool any_attends() const { return mixers.empty() ? d_inner == 0 : std::ranges::count(mixers, Mixer::attention) > 0; }
  bool any_state_space() const {
    return mixers.empty() ? d_inner > 0 : std::ranges::count(mixers, Mixer::state_space) > 0;
  }
  /// Whether layers mix tokens in different ways.
  bool hybrid() const { return any_attends() && !attends(); }
  bool has_mlp(int layer) const { return d_mlp > 0 && (bare.empty() || !bare[static_cast<std::size_t>(layer)]); }
  /// Of a model all of whose layers are as this one.
  ModelDims of_layer(int layer) const;

  /// Whether something is added to the stream behind the MLP of this layer.
  bool adds_behind(int layer) const { return d_layer > 0 || (convolves_first && layer == 0); }
  int value_width() const { return d_value > 0 ? d_value : d_head; }
  int embed_width() const { return d_embed > 0 ? d_embed : d_model; }
  int out_width() const { return d_out > 0 ? d_out : embed_width(); }

  /// How many query heads of a layer read one key head; 1 where nothing is known of key heads, or there are none.
  int group(int layer) const {
    const int keys = attends(layer) ? widths_of(layer).kv_heads : 0;
    return keys > 0 ? std::max(1, heads / keys) : 1;
  }
  /// The key and value head that a query head reads (grouped queries: Ainslie et al., GQA, 2023).
  int kv_of(int head, int layer) const { return head / group(layer); }
  /// Whether a residual stream stands between attention and MLP.
  bool has_mid() const { return d_mlp > 0 && !parallel; }
};

inline ModelDims ModelDims::of_layer(int layer) const {
  ModelDims own = *this;
  const LayerWidths here = widths_of(layer);
  own.heads = heads_of(layer), own.state_heads = 0;
  own.kv_heads = here.kv_heads, own.d_head = here.d_head, own.d_mlp = here.d_mlp;
  own.mixers.clear(), own.bare.clear(), own.widths.clear(), own.normed_behind.clear();
  own.convolves_first = convolves_first && layer == 0, own.paired = false;
  if (!has_mlp(layer)) own.d_mlp = own.experts = 0;
  if (mixers.empty()) return own;
  if (attends(layer)) {
    own.d_inner = own.lanes = own.state_groups = own.d_state = own.convolved = 0;
    own.state_kind = StateKind::selective;
  } else {
    own.kv_heads = own.heads;
    own.d_head = d_inner / own.heads;
    own.d_value = own.kv_latent = own.q_latent = 0;
  }
  return own;
}

/// What a row of logits is about.
enum class Objective {
  next_token,    ///< the token after it: decoders
  masked_token,  ///< the token that stands there, where it is masked: encoders (Devlin et al., BERT, 2019)
  image_class,   ///< what the picture shows, in one row for all of it: vision transformers
  nothing        ///< there are no logits
};
inline constexpr NamedValue<Objective> objective_names[] = {{"next_token", Objective::next_token},
                                                            {"masked_token", Objective::masked_token},
                                                            {"image_class", Objective::image_class},
                                                            {"nothing", Objective::nothing}};

struct ModelInfo {
  std::string name, family;  ///< "gpt2-byte-d96", "gpt2"
  ModelDims dims;
  int context = 0;  ///< longest text; 0 = no limit known
  std::int64_t parameters = 0;
  std::string dtype = "F32";  ///< of the stored weights
  Objective objective = Objective::next_token;
  Stack stack = Stack::only;
  bool pictures = false;  ///< it reads patches of pictures
  /// Of an encoder-decoder, which is its decoder and has these besides; null elsewhere. Cross-attention has the
  /// decoder's layers and heads, and no MLP.
  std::shared_ptr<const ModelInfo> encoder = {}, cross = {};

  /// What is asked for by `only` or `decoder` is this itself; likewise where there is no such part.
  const ModelInfo& part(Stack of) const {
    if (of == Stack::encoder && encoder) return *encoder;
    return of == Stack::cross && cross ? *cross : *this;
  }
};

/// Throws Error for a model without logits, of which nobody can ask for a token.
inline void need_logits(const ModelInfo& model) {
  if (model.objective != Objective::nothing) return;
  const bool of_two = model.stack == Stack::encoder;
  if (model.pictures && !of_two)
    throw Error(model.name, "a model that says what a picture shows",
                "a picture model's file without the head that would tell classes",
                "a file of the same model for classes (…ForImageClassification) has one");
  throw Error(model.name, "a model that says which token stands or comes where",
              of_two ? "the encoder of an encoder-decoder, of which the decoder alone has logits"
                     : "an encoder's file without the head that would tell its tokens",
              of_two ? "ask the decoder (--part dec, STACK in the window); an edit of the encoder shows in its answers"
                     : "a file of the same model for masked tokens (…ForMaskedLM) has one");
}

}  // namespace headscope
