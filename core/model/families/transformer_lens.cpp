// State dicts of TransformerLens (Nanda & Bloom, TransformerLens, 2022): a HookedTransformer's configuration and
// weights, which are kept head by head: W_Q (head, d_model, d_head), W_O (head, d_head, d_model). Norms whose weights
// were folded into the matrices behind them ("LNPre", "RMSPre") have none. What a file leaves unsaid is found by
// formats/transformer_lens_dialect.h.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/base/nth.h"
#include "core/model/config_reader.h"
#include "core/model/family.h"
#include "core/model/weight_reader.h"

namespace headscope {

namespace {
namespace limit = config_limits;

/// Keys that change numbers and are not understood; what they hold, besides null and false, where they change none.
constexpr std::pair<const char*, const char*> refused[] = {{"num_experts", ""},
                                                           {"experts_per_token", ""},
                                                           {"load_in_4bit", ""},
                                                           {"relative_attention_max_distance", ""},
                                                           {"relative_attention_num_buckets", ""},
                                                           {"shortformer_pos", ""},
                                                           {"use_yarn_rope", ""},
                                                           {"rotary_base_local", ""},
                                                           {"rotary_scaling_factor", "1.0"}};
constexpr const char* not_folded = "save the state dict of a model that was loaded with fold_ln=False";

void read_extents(const ConfigReader& json, ModelConfig& c) {
  ModelDims& d = c.dims;
  d.layers = json.integer("n_layers", 1, limit::layers);
  d.d_model = json.integer("d_model", 1, limit::d_model);
  d.d_head = json.integer("d_head", 1, limit::d_head);
  // What the class says where nobody said: -1.
  d.heads = json.integer("n_heads", -1, limit::heads, -1) == -1 ? std::max(1, d.d_model / d.d_head)
                                                                : json.integer("n_heads", 1, limit::heads);
  d.kv_heads = json.integer("n_key_value_heads", 1, limit::heads, d.heads);
  if (d.heads % d.kv_heads != 0)
    throw json.error("n_key_value_heads", fmt::format("a divisor of n_heads = {}", d.heads),
                     std::to_string(d.kv_heads));
  if (!json.flag("attn_only", false)) d.d_mlp = json.integer("d_mlp", 1, limit::d_mlp, 4 * d.d_model);
  d.vocab = json.integer("d_vocab", 1, limit::vocab);
  if (const int out = json.integer("d_vocab_out", -1, limit::vocab, -1); out != -1 && out != d.vocab)
    throw json.error("d_vocab_out", fmt::format("as many as d_vocab = {}", d.vocab), std::to_string(out),
                     "models that read one vocabulary and answer in another are not traced");
  c.context = json.integer("n_ctx", 1, limit::context);
}

void read_norms(const ConfigReader& json, ModelConfig& c) {
  if (json.null("normalization_type"))
    std::tie(c.norm, c.norm_weights) = std::pair(NormKind::none, false);
  else
    std::tie(c.norm, c.norm_weights) =
        json.choice<std::pair<NormKind, bool>>("normalization_type", json.text("normalization_type", "LN"),
                                               {{"LN", {NormKind::layer_norm, true}},
                                                {"LNPre", {NormKind::layer_norm, false}},
                                                {"RMS", {NormKind::rms_norm, true}},
                                                {"RMSPre", {NormKind::rms_norm, false}}});
  c.norm_epsilon = json.number("eps", 0, 1, 1e-5);
  // The class asks for it beside LayerNorms alone.
  c.final_rms = json.flag("final_rms", false) && c.norm == NormKind::layer_norm;
  // These norms keep weights of their own kind whatever was folded of the others.
  const auto beside = [&](const char* key, NormKind kind, const char* name) {
    const bool on = json.flag(key, false);
    if (on && (c.norm != kind || !c.norm_weights))
      throw json.error(key, fmt::format("false, or true beside a normalization_type of {}", name), "true", not_folded);
    return on;
  };
  if (beside("use_normalization_before_and_after", NormKind::rms_norm, "RMS")) c.norm_place = NormPlace::both;
  if (beside("use_qk_norm", NormKind::rms_norm, "RMS")) c.qk_norm = QkNorm::per_head;
  c.embedding_norm = beside("post_embedding_ln", NormKind::layer_norm, "LN");
}

void read_scores(const ConfigReader& json, ModelConfig& c) {
  if (json.text("attention_dir", "causal") != "causal")
    throw json.error("attention_dir", "causal", "\"" + json.text("attention_dir") + "\"",
                     "only decoders are traced, which see no later token");
  c.scale_by_inverse_sqrt_d = json.flag("use_attn_scale", true);
  const double root = std::sqrt(static_cast<double>(c.dims.d_head)), divisor = json.number("attn_scale", -1, 1e9, -1);
  if (c.scale_by_inverse_sqrt_d && divisor != -1 && std::abs(divisor - root) > 1e-6 * root) {
    if (divisor <= 0) throw json.error("attn_scale", "a number above 0, or -1 for √d_head", fmt::format("{}", divisor));
    c.score_scale = 1 / divisor;
  }
  c.scale_by_inverse_layer = json.flag("scale_attn_by_inverse_layer_idx", false);
  c.score_cap = std::max(0.0, json.number("attn_scores_soft_cap", -1, 1e6, -1));
  c.logit_cap = std::max(0.0, json.number("output_logits_soft_cap", -1, 1e6, -1));
  if (!json.flag("use_local_attn", false)) return;
  const int window = json.integer("window_size", 1, limit::context);
  const auto kinds = json.texts("attn_types");
  if (!kinds || static_cast<int>(kinds->size()) < c.dims.layers)
    throw json.error("attn_types", fmt::format("\"global\" or \"local\" for each of {} layers", c.dims.layers),
                     kinds ? std::to_string(kinds->size()) : "nothing");
  for (int layer = 0; layer < c.dims.layers; ++layer)
    c.windows.push_back(json.choice<int>("attn_types", nth(*kinds, layer), {{"global", 0}, {"local", window}}));
}

/// 2^(−8 h ÷ heads), h = 1 …: also where the heads are no power of two.
std::vector<double> geometric_slopes(int heads) {
  std::vector<double> slopes;
  for (int h = 1; h <= heads; ++h) slopes.push_back(std::exp2(-8.0 * h / heads));
  return slopes;
}

void read_positions(const ConfigReader& json, ModelConfig& c) {
  c.position = json.choice<PositionKind>(
      "positional_embedding_type", json.text("positional_embedding_type", "standard"),
      {{"standard", PositionKind::learned}, {"rotary", PositionKind::rotary}, {"alibi", PositionKind::alibi}});
  if (c.position == PositionKind::alibi) c.alibi_slopes = geometric_slopes(c.dims.heads);
  if (c.position != PositionKind::rotary) return;
  const int width = json.integer("rotary_dim", 2, c.dims.d_head, c.dims.d_head);
  if (width % 2 != 0) throw json.error("rotary_dim", "an even number, since pairs are turned", std::to_string(width));
  RotaryConfig& r = c.rotary;
  r.width = width == c.dims.d_head ? 0 : width;
  r.base = json.number("rotary_base", 1, 1e12, 10000);
  r.layout = json.flag("rotary_adjacent_pairs", false) ? RotaryLayout::interleaved : RotaryLayout::half_split;
  if (!json.flag("use_NTK_by_parts_rope", false)) return;
  r.scaling = RotaryConfig::Scaling::llama3;
  r.factor = json.number("NTK_by_parts_factor", 1, 1e6, 8);
  r.low_frequency_factor = json.number("NTK_by_parts_low_freq_factor", 1e-3, 1e6, 1);
  r.high_frequency_factor = json.number("NTK_by_parts_high_freq_factor", 1e-3, 1e6, 4);
  if (r.high_frequency_factor <= r.low_frequency_factor)
    throw json.error("NTK_by_parts_high_freq_factor", fmt::format("more than {}", r.low_frequency_factor),
                     fmt::format("{}", r.high_frequency_factor));
  r.original_context = json.integer("NTK_original_ctx_len", 1, limit::context, 8192);
}

ModelConfig read_config(const ConfigReader& json) {
  ModelConfig c;
  read_extents(json, c);
  read_norms(json, c);
  read_scores(json, c);
  read_positions(json, c);
  c.tied_embeddings = false;
  c.bias.unembedding = true;
  if (c.dims.d_mlp > 0) {
    std::string name = json.text("act_fn");
    c.mlp_norm = name == "solu_ln";
    c.activation = c.mlp_norm ? Activation::solu : read_activation(json, "act_fn", "");
    c.gated_mlp = json.flag("gated_mlp", false);
    if (c.gated_mlp && c.mlp_norm)
      throw json.error("act_fn", "an activation without a norm in a gated MLP", "\"" + name + "\"",
                       "TransformerLens leaves W_in out of such an MLP");
    c.dims.parallel = json.flag("parallel_attn_mlp", false);
    c.bias.up = !c.gated_mlp;  // of a gated MLP it is read into b_out
  }
  for (const auto& [key, neutral] : refused)
    if (json.unread(key, neutral))
      throw json.error(key, "a key of a HookedTransformer that is understood", "one that is not, and changes numbers");
  return c;
}

class Reader {
 public:
  Reader(const WeightSource& source, const ModelConfig& config)
      : source_(source), c_(config), reader_(source, {""}, "embed.W_E", "blocks.") {}

  RawWeights read() {
    const Index d = c_.dims.d_model, vocab = c_.dims.vocab;
    RawWeights w;
    reader_.take("embed.W_E", {vocab, d}, w.token_embedding);
    if (c_.embedding_norm) norm("embed.ln", c_.norm, d, w.embedding_gain, w.embedding_bias);
    if (c_.position == PositionKind::learned) reader_.take("pos_embed.W_pos", {c_.context, d}, w.position_embedding);
    w.layers.resize(static_cast<std::size_t>(c_.dims.layers));
    for (int layer = 0; layer < c_.dims.layers; ++layer) block(fmt::format("blocks.{}.", layer), nth(w.layers, layer));
    norm("ln_final", c_.final_norm(), d, w.final_gain, w.final_bias);
    reader_.take("unembed.W_U", {d, vocab}, w.unembedding);
    reader_.take("unembed.b_U", {vocab}, w.unembedding_bias);
    reader_.finish(c_, w);
    w.parameters -= folded_;
    return w;
  }

 private:
  void block(const std::string& at, RawLayer& raw) {
    const ModelDims& dims = c_.dims;
    const Index d = dims.d_model;
    norm(at + "ln1", c_.norm, d, raw.ln1_gain, raw.ln1_bias);
    projection(at + "attn.", "Q", dims.heads, raw.q_weight, raw.q_bias);
    // Where key heads are shared, W_K is what each query head reads, and _W_K what is stored.
    const std::string shared = source_.contains(at + "attn._W_K") ? "attn._" : "attn.";
    projection(at + shared, "K", dims.kv_heads, raw.k_weight, raw.k_bias);
    projection(at + shared, "V", dims.kv_heads, raw.v_weight, raw.v_bias);
    Tensor none;
    if (c_.qk_norm != QkNorm::none) {
      norm(at + "attn.q_norm", c_.norm, dims.d_head, raw.q_norm_gain, none);
      norm(at + "attn.k_norm", c_.norm, dims.d_head, raw.k_norm_gain, none);
    }
    reader_.take(at + "attn.W_O", {dims.heads, dims.d_head, d}, [&](const Tensor& o) {
      raw.o_weight = o.reshape({Index{dims.heads} * dims.d_head, d});
    });
    reader_.take(at + "attn.b_O", {d}, raw.o_bias);
    if (c_.norm_place == NormPlace::both) norm(at + "ln1_post", c_.norm, d, raw.ln1_post_gain, none);
    // Buffers: who sees whom, what is written where nobody does, and the rotary tables.
    for (const char* buffer : {"mask", "IGNORE", "rotary_sin", "rotary_cos"})
      reader_.ignore(at + "attn." + std::string(buffer));
    if (dims.d_mlp == 0) return;
    norm(at + "ln2", c_.norm, d, raw.ln2_gain, raw.ln2_bias);
    reader_.take(at + "mlp.W_in", {d, dims.d_mlp}, raw.up_weight);
    reader_.take(at + "mlp.b_in", {dims.d_mlp}, raw.up_bias);
    if (c_.gated_mlp) reader_.take(at + "mlp.W_gate", {d, dims.d_mlp}, raw.gate_weight);
    if (c_.mlp_norm) norm(at + "mlp.ln", c_.norm, dims.d_mlp, raw.mlp_norm_gain, raw.mlp_norm_bias);
    reader_.take(at + "mlp.W_out", {dims.d_mlp, d}, raw.down_weight);
    reader_.take(at + "mlp.b_out", {d}, raw.down_bias);
    if (c_.norm_place == NormPlace::both) norm(at + "ln2_post", c_.norm, d, raw.ln2_post_gain, none);
    if (c_.gated_mlp && raw.up_bias.defined() && raw.down_weight.defined() && raw.down_bias.defined()) fold(raw);
  }

  /// (head, d_model, d_head) as (d_model, head · d_head).
  void projection(const std::string& at, const char* which, Index heads, Tensor& weight, Tensor& bias) {
    const Index d = c_.dims.d_model, width = c_.dims.d_head;
    reader_.take(at + "W_" + which, {heads, d, width}, [&](const Tensor& by_head) {
      weight = Tensor::uninitialized({d, heads * width});
      for (Index head = 0; head < heads; ++head)
        for (Index i = 0; i < d; ++i)
          for (Index j = 0; j < width; ++j) weight.ref(i, head * width + j) = by_head.at(head, i, j);
    });
    reader_.take(at + "b_" + which, {heads, width}, [&](const Tensor& x) { bias = x.reshape({heads * width}); });
  }

  void norm(const std::string& at, NormKind kind, Index width, Tensor& gain, Tensor& bias) {
    if (!c_.norm_weights) return;
    // The norm behind an activation is a LayerNorm, with weights beside LayerNorms with weights only.
    if (at.ends_with("mlp.ln") && c_.norm != NormKind::layer_norm) return;
    reader_.take(at + ".w", {width}, gain);
    if (kind == NormKind::layer_norm) reader_.take(at + ".b", {width}, bias);
  }

  /// b_in of a gated MLP is added behind the product of its branches: (f(x W_gate) ∘ x W_in + b_in) W_out + b_out.
  void fold(RawLayer& raw) {
    Tensor sum = raw.down_bias.copy();
    for (Index out = 0; out < sum.size(); ++out) {
      auto total = static_cast<double>(sum.at(out));
      for (Index in = 0; in < raw.up_bias.size(); ++in)
        total += static_cast<double>(raw.up_bias.at(in)) * static_cast<double>(raw.down_weight.at(in, out));
      sum.ref(out) = static_cast<float>(total);
    }
    folded_ += raw.up_bias.size();
    raw.down_bias = sum;
    raw.up_bias = Tensor();
  }

  const WeightSource& source_;
  const ModelConfig& c_;
  WeightReader reader_;
  std::int64_t folded_ = 0;  // numbers that became part of others
};

RawWeights read_weights_of(const WeightSource& source, const ModelConfig& config) {
  return Reader(source, config).read();
}

std::string write(const ModelConfig& c) {
  const ModelDims& d = c.dims;
  ConfigWriter json;
  json.put("model_type", "transformer_lens");
  json.put("n_layers", d.layers);
  json.put("n_heads", d.heads);
  json.put("n_key_value_heads", d.kv_heads == d.heads ? std::nullopt : std::optional<std::int32_t>(d.kv_heads));
  json.put("d_model", d.d_model);
  json.put("d_head", d.d_head);
  json.put("d_vocab", d.vocab);
  json.put("n_ctx", c.context);
  json.put("attn_only", d.d_mlp == 0);
  if (d.d_mlp > 0) {
    json.put("d_mlp", d.d_mlp);
    json.put("act_fn", activation_name(c.activation) + (c.mlp_norm ? "_ln" : ""));
    json.put("gated_mlp", c.gated_mlp);
    json.put("parallel_attn_mlp", d.parallel);
  }
  if (c.norm == NormKind::none)
    json.put("normalization_type", std::optional<std::int32_t>());
  else
    json.put("normalization_type",
             std::string(c.norm == NormKind::layer_norm ? "LN" : "RMS") + (c.norm_weights ? "" : "Pre"));
  json.put("eps", c.norm_epsilon);
  json.put("final_rms", c.final_rms);
  json.put("use_normalization_before_and_after", c.norm_place == NormPlace::both);
  json.put("use_qk_norm", c.qk_norm != QkNorm::none);
  json.put("post_embedding_ln", c.embedding_norm);
  json.put("use_attn_scale", c.scale_by_inverse_sqrt_d);
  json.put("attn_scale", c.score_scale ? 1 / *c.score_scale : -1.0);
  json.put("scale_attn_by_inverse_layer_idx", c.scale_by_inverse_layer);
  json.put("attn_scores_soft_cap", c.score_cap > 0 ? c.score_cap : -1.0);
  json.put("output_logits_soft_cap", c.logit_cap > 0 ? c.logit_cap : -1.0);
  if (!c.windows.empty()) {
    std::vector<std::string> kinds;
    int widest = 1;
    for (const int window : c.windows) {
      kinds.emplace_back(window > 0 ? "local" : "global");
      widest = std::max(widest, window);
    }
    json.put("use_local_attn", true);
    json.put("window_size", widest);
    json.put("attn_types", kinds);
  }
  json.put("positional_embedding_type", c.position == PositionKind::learned  ? "standard"
                                        : c.position == PositionKind::rotary ? "rotary"
                                                                             : "alibi");
  if (c.position == PositionKind::rotary) {
    const RotaryConfig& r = c.rotary;
    json.put("rotary_dim", r.width > 0 ? r.width : d.d_head);
    json.put("rotary_base", r.base);
    json.put("rotary_adjacent_pairs", r.layout == RotaryLayout::interleaved);
    json.put("use_NTK_by_parts_rope", r.scaling == RotaryConfig::Scaling::llama3);
    if (r.scaling == RotaryConfig::Scaling::llama3) {
      json.put("NTK_by_parts_factor", r.factor);
      json.put("NTK_by_parts_low_freq_factor", r.low_frequency_factor);
      json.put("NTK_by_parts_high_freq_factor", r.high_frequency_factor);
      json.put("NTK_original_ctx_len", r.original_context);
    }
  }
  return json.text();
}

}  // namespace

Family transformer_lens_family();  // declared with all others in family.cpp
Family transformer_lens_family() {
  return {"transformer_lens", "a HookedTransformer's state dict", &read_config, &read_weights_of, &write};
}

}  // namespace headscope
