#include "core/analysis/model_facts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/base/words.h"
#include "core/model/family.h"
#include "core/model/formats/lora_adapter.h"
#include "core/model/formats/model_files.h"
#include "core/model/parameter_parts.h"
#include "core/text/tokenizer.h"
#include "core/trace/layer_kinds.h"
#include "core/trace/mixer_words.h"

namespace headscope {

namespace fs = std::filesystem;

const char* name_of(NormKind kind) {
  return kind == NormKind::layer_norm ? "LayerNorm" : kind == NormKind::rms_norm ? "RMSNorm" : said("no norms");
}
const char* name_of(PositionKind kind) {
  switch (kind) {
    case PositionKind::learned:
      return said("learned");
    case PositionKind::rotary:
      return said("rotary (RoPE)");
    case PositionKind::alibi:
      return "ALiBi";
    case PositionKind::buckets:
      return said("T5 buckets");
    case PositionKind::none:
      break;
  }
  return said("none");
}
const char* positions_of(const ModelConfig& c) {
  if (c.position == PositionKind::none && c.distances) return said("vectors of distances");
  if (c.position == PositionKind::none && c.has_buckets()) return said("ways from patch to patch");
  return name_of(c.position);
}
const char* name_of(Activation activation) {
  switch (activation) {
    case Activation::relu:
      return "ReLU";
    case Activation::gelu:
      return "GELU";
    case Activation::gelu_tanh:
      return "GELU (tanh)";
    case Activation::solu:
      return "SoLU";
    case Activation::xielu:
      return "xIELU";
    case Activation::quick_gelu:
      return "QuickGELU";
    case Activation::relu2:
      return "ReLU²";
    case Activation::tanh:
      return "tanh";
    case Activation::silu:
      break;
  }
  return "SiLU";
}

namespace {
using Part = ModelFacts::Part;

/// The learned tokens before the patches.
std::string leading_words(const VisionConfig& v) {
  const int own = v.leading - v.registers;
  if (v.leading == 0) return said("no other token");
  if (own == 1) return v.registers > 0 ? say("CLS and {} registers", v.registers) : "CLS";
  return own == 2 && v.stored_side == 0 ? said("CLS and a distillation token") : say("{} CLS tokens", own);
}

/// Where the parameters are. Tied unembeddings count once, with the embedding.
std::vector<Part> parts_of(const RawWeights& weights, const ModelConfig& config) {
  const auto size = [](const Tensor& tensor) { return tensor.defined() ? tensor.size() : Index{0}; };
  Part attention{config.dims.any_attends() ? said("attention") : said("state space")}, states{said("state space")},
      mlp{"MLP"},
      inputs{said("inputs of every layer's own"), size(weights.layer_embedding) + size(weights.layer_projection)},
      norms{said("norms"), size(weights.final_gain) + size(weights.final_bias) + size(weights.embedding_gain) +
                               size(weights.embedding_bias) + size(weights.distance_gain) +
                               size(weights.distance_bias) + size(weights.layer_gain) + size(weights.convolution.gain) +
                               size(weights.convolution.gain_bias)};
  if (config.dims.any_state_space() && config.dims.state_kind != StateKind::selective)
    (config.dims.any_attends() ? states : attention).words = said(state_words(config.dims));
  const auto attention_of = [&](const RawLayer& l) {
    std::int64_t count = 0;
    for (const Tensor* t :
         {&l.q_weight, &l.q_bias, &l.k_weight, &l.k_bias, &l.v_weight, &l.v_bias, &l.o_weight, &l.o_bias, &l.sinks,
          &l.z_gate_weight, &l.z_gate_bias, &l.latents.q_weight, &l.latents.q_bias, &l.latents.kv_weight,
          &l.latents.kv_bias, &l.distance_k_weight, &l.distance_k_bias, &l.distance_q_weight, &l.distance_q_bias})
      count += size(*t);
    for (const Tensor& t : tensors_of(l.state_space)) count += size(t);
    for (const Tensor& t : norm_gains_of(l.state_space)) count -= size(t);
    if (config.state_space && config.state_space->steady) count -= size(l.state_space.decay_log);  // learned by nobody
    return count;
  };
  std::int64_t buckets = size(weights.position_buckets);
  for (std::size_t i = 0; i < weights.layers.size(); ++i) {
    if (config.repeats(static_cast<int>(i))) continue;
    const RawLayer& l = weights.layers[i];
    const bool beside = config.dims.hybrid() && !config.dims.attends(static_cast<int>(i));
    (beside ? states : attention).parameters += attention_of(l) + (config.layer_scales ? config.dims.d_model : 0);
    if (config.layer_scales) mlp.parameters += config.dims.d_model;
    buckets += size(l.position_buckets);
    // Zeros in place of what turns of a key.
    if (config.latent()) attention.parameters -= Index{config.dims.kv_latent} * config.dims.heads * config.rotary.width;
    for (const Tensor* t : {&l.up_weight, &l.up_bias, &l.gate_weight, &l.gate_bias, &l.down_weight, &l.down_bias})
      mlp.parameters += size(*t);
    if (l.xielu.defined()) mlp.parameters += 2;
    for (const Tensor* t : {&l.input_gate_weight, &l.input_out_weight}) inputs.parameters += size(*t);
    norms.parameters += size(l.input_gain) + size(l.stream_scale);
    std::vector<RawExpert> experts = l.experts.each;
    experts.push_back(l.experts.shared);
    for (const RawExpert& e : experts)
      for (const Tensor* t : {&e.up_weight, &e.up_bias, &e.gate_weight, &e.gate_bias, &e.down_weight, &e.down_bias})
        mlp.parameters += size(*t);
    for (const Tensor* t : {&l.experts.router_weight, &l.experts.router_bias, &l.experts.correction,
                            &l.experts.shared_gate, &l.experts.output_weight})
      mlp.parameters += size(*t);
    for (const Tensor* t :
         {&l.z_norm_gain, &l.mlp_norm_gain, &l.mlp_norm_bias, &l.ln2_gain, &l.ln2_bias, &l.ln1_post_gain,
          &l.ln2_post_gain, &l.q_norm_gain, &l.q_norm_bias, &l.k_norm_gain, &l.k_norm_bias, &l.latents.q_gain,
          &l.latents.kv_gain, &l.experts.router_gain, &l.experts.in_gain, &l.experts.out_gain, &l.experts.dense_gain})
      norms.parameters += size(*t);
    for (const Tensor& t : norm_gains_of(l.state_space)) norms.parameters += size(t);
    if (config.entered(static_cast<int>(i)) == static_cast<int>(i))  // else it is that of the layer before
      norms.parameters += size(l.ln1_gain) + size(l.ln1_bias);
  }
  if (config.groups.any()) {  // of matrices that are held whole
    const ParameterParts stored = parameter_parts(config);
    attention.parameters = stored.attention, mlp.parameters = stored.mlp;
  }
  std::vector<Part> parts{
      {config.vision            ? said("patches and learned tokens")
       : config.tied_embeddings ? said("token embedding (and unembedding, tied)")
                                : said("token embedding"),
       config.vision || config.sound ? parameter_parts(config).embedding : size(weights.token_embedding)}};
  if (weights.embedding_in.defined())
    parts.push_back({said("between embedding and stream"),
                     size(weights.embedding_in) + size(weights.embedding_in_bias) + size(weights.embedding_out)});
  if (weights.position_embedding.defined() && !config.sinusoids)
    parts.push_back({said("position embedding"),
                     config.vision ? parameter_parts(config).positions - buckets
                                   : size(weights.position_embedding) +  // with the rows before position 0
                                         Index{config.position_offset + config.position_tail} * config.sum_width()});
  if (weights.segment_embedding.defined())
    parts.push_back({said("segment embedding"), size(weights.segment_embedding)});
  if (config.tasks > 0)
    parts.push_back({config.task_tables > 1 ? said("embeddings of places on a page") : said("task embedding"),
                     Index{config.tasks} * config.task_tables * config.sum_width()});
  if (weights.distances.defined()) parts.push_back({said("embedding of distances"), size(weights.distances)});
  if (buckets > 0) parts.push_back({said("biases of distances"), buckets});
  parts.push_back(attention);
  if (config.dims.hybrid()) parts.push_back(states);
  if (config.cross()) {
    Part cross{said("cross-attention")};
    for (const RawLayer& l : weights.cross) {
      cross.parameters += attention_of(l);
      norms.parameters += size(l.ln1_gain) + size(l.ln1_bias) + size(l.ln1_post_gain);
    }
    parts.push_back(cross);
  }
  parts.push_back(mlp);
  if (inputs.parameters > 0) parts.push_back(inputs);
  if (config.convolution)
    parts.push_back({said("convolution beside the first block"), parameter_parts(config).convolution});
  parts.push_back(norms);
  if (config.head_layer && config.predicts)
    parts.push_back({said("layer before the logits"), size(weights.head_weight) + size(weights.head_bias) +
                                                          size(weights.head_norm_gain) + size(weights.head_norm_bias)});
  if (!config.tied_embeddings && config.predicts)
    parts.push_back(
        {said("unembedding"), size(weights.unembedding) + (config.cross() ? 0 : size(weights.unembedding_bias)) +
                                  size(weights.second_unembedding) + size(weights.second_unembedding_bias)});
  else if (weights.unembedding_bias.defined() && !config.cross())  // there it is no parameter
    parts.push_back({said("bias of the logits"), size(weights.unembedding_bias)});
  if (weights.encoder) {
    Part encoder{config.shared_embedding ? said("encoder, but for the embedding") : said("encoder")};
    for (const Part& each : parts_of(*weights.encoder, *config.encoder)) encoder.parameters += each.parameters;
    if (config.shared_embedding) encoder.parameters -= size(weights.encoder->token_embedding);
    parts.push_back(encoder);
  }
  return parts;
}

}  // namespace

namespace {
/// Of heads in layers without a window.
int full_width(const ModelConfig& c) {
  for (int layer = 0; layer < c.dims.layers; ++layer)
    if (c.window(layer) == 0) return c.dims.widths_of(layer).d_head;
  return c.dims.d_head;
}

/// Whether layers with a window rotate by one base and the others by one.
bool rotated_by_window(const ModelConfig& c) {
  for (int layer = 0; layer < c.dims.layers; ++layer)
    for (int before = 0; before < layer; ++before)
      if ((c.window(layer) > 0) == (c.window(before) > 0) && c.rotary_of(layer) != c.rotary_of(before)) return false;
  return true;
}
}  // namespace

/// What this model does that GPT-2 and Llama do not, in words.
std::string switches(const ModelConfig& c) {
  std::vector<std::string> words;
  const auto tell = [&](bool holds, std::string text) {
    if (holds) words.push_back(std::move(text));
  };
  tell(c.dims.parallel, c.shared_norm ? said("attention and MLP in parallel behind one norm")
                                      : said("attention and MLP in parallel behind a norm each"));
  tell(c.norm_place == NormPlace::both, said("norms before and behind attention and MLP"));
  tell(c.norm_place == NormPlace::behind && c.dims.normed_behind.empty(), said("norms behind attention and MLP only"));
  if (const auto behind = std::ranges::count(c.dims.normed_behind, true); behind > 0)
    tell(true,
         say("norms behind attention and MLP in {} of {} layers, before them in the others", behind, c.dims.layers));
  if (const auto& v = c.vision) {
    tell(true, say("reads pictures of {} × {} pixels as {} × {} patches behind {}", v->width, v->height, v->columns(),
                   v->rows(), leading_words(*v)));
    tell(c.predicts,
         v->class_heads == 1 ? said("classes read at CLS") : said("classes: the mean of what both tokens say"));
  }
  if (const auto& v = c.vision)
    tell(v->stored_side > 0 && (v->stored_side != v->rows() || v->stored_side != v->columns()),
         say("positions learned for {} × {} patches, interpolated", v->stored_side, v->stored_side));
  if (const auto& s = c.sound)
    tell(true, say("reads sounds of {} s: {} frames of {} mels, two to a row, by two convolutions",
                   s->rows * s->row_seconds(), s->frames(), s->mels));
  tell(!c.causal && !c.vision,
       c.stack == Stack::encoder
           ? said("every token sees the later ones too")
           : said("every token sees the later ones too, and logits say what stands at a position"));
  tell(c.cross(), say("attention to a source, which an encoder of {} layers reads; targets begin with token {}",
                      c.cross() ? c.encoder->dims.layers : 0, c.decoder_start));
  tell(c.has_buckets() && !c.vision, say("{} buckets of distances up to {}", c.position_buckets, c.position_distance));
  tell(c.has_buckets() && c.vision,
       say("scores gain one of {} learned numbers, by the way from patch to patch", c.position_buckets));
  tell(c.buckets_by_layer, said("biases of distances of every layer's own"));
  if (const auto& own = c.distances) {
    tell(true,
         say("disentangled attention: contents meet {} distances ({})", 2 * own->span,
             own->content_to_position && own->position_to_content ? said("content to position, position to content")
             : own->content_to_position                           ? said("content to position")
                                                                  : said("position to content")));
    tell(own->max_distance > 0, say("distances beyond {} share rows, up to {}", own->span / 2, own->max_distance));
  }
  tell(c.layer_groups > 0, say("{} layers of the weights of {}", c.dims.layers, c.layer_groups));
  tell(c.layer_scales, said("what attention and MLP add times a learned number of each dimension"));
  tell(c.tasks > 0 && c.task_tables == 1, said("the first of the tasks' embeddings with every position"));
  tell(c.task_tables > 1, said("no places on a page are read: every token stands in a box of size 0 in its corner"));
  tell(c.block_size > 0,
       say("texts of up to {} tokens, which every token sees whole; of longer ones it would see blocks", c.context));
  tell(c.groups.any(), said("products in groups of inputs and outputs"));
  tell(c.bare_end, said("no norm behind the last block"));
  tell(c.norms_sums(), said("norms of the stream itself, behind attention and MLP"));
  tell(c.segments > 1, say("{} kinds of segments", c.segments));
  tell(c.head_layer, said("a layer of its own before the logits"));
  tell(!c.predicts && c.stack != Stack::encoder, said("no logits: the file ends with the last block"));
  tell(!c.norm_weights && c.norm != NormKind::none, said("norms without weights"));
  tell(c.final_norm() != c.norm, said("the last norm an RMSNorm"));
  tell(c.mlp_norm, said("a norm behind the activation"));
  tell(c.norm_gain_plus_one, said("norm gains added to 1"));
  tell(c.embedding_norm, said("a norm behind the embedding"));
  tell(c.embedding_width > 0,
       c.embedding_width > c.dims.d_model
           ? say("embeddings of {} numbers, narrowed to the stream's by a matrix", c.embedding_width)
           : say("embeddings of {} numbers, widened to the stream's by a matrix", c.embedding_width));
  tell(c.narrow_sum(), said("positions, their sum and its norm of the embeddings' width"));
  tell(c.dims.d_out > 0, say("an unembedding that reads {} numbers", c.dims.d_out));
  if (c.convolution) tell(true, say("beside the first block a convolution over {} tokens", c.convolution->tokens));
  const int shown = c.dims.heads_of_states();  // of a layer with a state
  if (const auto& s = c.state_space; s && s->lane == StateSpaceConfig::Lane::delta) {
    tell(true, say("{} of {} layers the gated delta rule of {} heads in place of attention, keys of {} numbers in {} "
                   "groups, behind a convolution of {} tokens",
                   c.dims.layers - attending_layers(c.dims), c.dims.layers, c.dims.lanes, c.dims.d_state,
                   c.dims.state_groups, s->convolution));
    tell(c.dims.lanes > shown,
         say("shown as {} heads, the mean of {} neighbouring ones each", shown, c.dims.lanes / shown));
  } else if (s && s->lane == StateSpaceConfig::Lane::convolution) {
    tell(true, say("{} of {} layers a gated convolution of {} tokens in place of attention",
                   c.dims.layers - attending_layers(c.dims), c.dims.layers, s->convolution));
    tell(true, say("shown as {} heads of {} neighbouring channels", shown, c.dims.d_inner / shown));
  } else if (s) {
    const bool heads = s->lane == StateSpaceConfig::Lane::head;
    const std::string lanes =
        heads ? say("{} heads", std::max(c.dims.lanes, shown)) : say("{} channels", c.dims.d_inner);
    if (s->steady)  // nothing of a state's steps is learnt, and nothing convolved
      tell(true, say("{} of {} layers linear attention of {} that decays at each one's own pace",
                     c.dims.layers - attending_layers(c.dims), c.dims.layers, lanes));
    else if (c.dims.hybrid())
      tell(true, say("{} of {} layers a state space of {} in place of attention, {} states each, behind a convolution "
                     "of {} tokens",
                     c.dims.layers - attending_layers(c.dims), c.dims.layers, lanes, c.dims.d_state, s->convolution));
    else
      tell(true, say("no attention: a state space of {}, {} states each, behind a convolution of {} tokens", lanes,
                     c.dims.d_state, s->convolution));
    if (heads)
      tell(c.dims.lanes > shown,
           say("shown as {} heads, the mean of {} neighbouring ones each", shown, c.dims.lanes / shown));
    else
      tell(true, say("shown as {} heads of {} neighbouring channels", shown, c.dims.d_inner / shown));
    tell(!s->steady && heads && c.dims.state_groups > 1, say("B and C of {} groups", c.dims.state_groups));
    tell(s->select_norms, s->select_gains ? said("steps, B and C made behind norms")
                                          : said("steps, B and C made behind norms without weights"));
    tell(s->least_step > 0 || std::isfinite(s->most_step), say("steps from {} to {}", s->least_step, s->most_step));
  }
  if (const auto bare = std::ranges::count(c.dims.bare, true); bare > 0)
    tell(true, say("{} of {} layers without an MLP", bare, c.dims.layers));
  tell(c.z_norm, said("a norm of what all heads put out"));
  tell(c.input_bits > 0, say("what matrices of blocks read is rounded to {} bits, row by row", c.input_bits));
  tell(c.output_gate, said("what a head puts out times a sigmoid that each token makes (gated attention)"));
  tell(c.latent(),
       say("keys and values of {} dimensions made of a latent of {} numbers per token{}", c.dims.value_width(),
           c.dims.kv_latent, c.dims.q_latent > 0 ? say(", queries of one of {}", c.dims.q_latent) : ""));
  tell(c.rotary.scaling == RotaryConfig::Scaling::longrope,
       say("rotations searched for (LongRoPE), others in texts of more than {} tokens", c.rotary.original_context));
  tell(c.rotary.scaling == RotaryConfig::Scaling::yarn,
       say("rotations stretched {}-fold (YaRN), queries and keys times {:.4g}", c.rotary.factor,
           rotary_magnitude(c.rotary)));
  tell(c.qk_norm != QkNorm::none,
       say("queries and keys normalised {}", c.qk_norm == QkNorm::per_head ? said("by head") : said("over all heads")));
  tell(c.normed_turned(), said("behind their rotation"));
  tell(c.rotary.query_growth > 0,
       say("queries times 1 + {} ln(1 + ⌊position ÷ {}⌋)", c.rotary.query_growth, c.rotary.original_context));
  tell(!c.qk_norm_weights, said("without weights"));
  tell(c.qk_norm_turned, said("where they are rotated"));
  tell(c.value_norm, said("values normalised by head, without weights"));
  if (const auto same = std::ranges::count(c.values_are_keys, true); same > 0)
    tell(true, say("in {} of {} layers values are what keys are made of", same, c.dims.layers));
  if (!c.kv_layers.empty()) {
    int others = 0;
    for (int layer = 0; layer < c.dims.layers; ++layer) others += !c.own_keys(layer);
    tell(others > 0, say("{} of {} layers read keys and values of an earlier one", others, c.dims.layers));
  }
  if (!c.dims.widths.empty()) {
    std::vector<std::string> kinds;
    for (const LayerKind& kind : layer_kinds(c.dims))
      kinds.push_back(say("{} of heads of {} dimensions, {} key heads, an MLP of {}", kind.layers, kind.dims.d_head,
                          kind.dims.kv_heads, kind.dims.d_mlp));
    tell(true, say("layers differ in width ({})", fmt::join(kinds, "; ")));
  }
  tell(c.dims.d_layer > 0,
       say("every layer gets {} numbers of each token by itself, from a table and from the embedding", c.dims.d_layer));
  tell(c.dims.stream_scales, said("the stream times a learned number behind every block"));
  tell(c.unturned_growth > 0, say("queries that are not rotated times 1 + {} ln(1 + ⌊(position + 1) ÷ {}⌋)",
                                  c.unturned_growth, c.unturned_floor));
  tell(c.clip_qkv > 0, say("queries, keys and values cut to ± {}", c.clip_qkv));
  if (c.position == PositionKind::rotary) {
    tell(c.rotary.pairs >= 0, say("{} of {} pairs of a head rotated", c.rotary.pairs, full_width(c) / 2));
    tell(c.rotary.width > 0, say("{} of {} dimensions of a head rotated", c.rotary.width, c.dims.d_head));
    tell(c.rotary.layout == RotaryLayout::interleaved, said("adjacent pairs rotated"));
    tell(!c.layer_rotary.empty(), rotated_by_window(c) ? said("layers with a window rotated by another base")
                                                       : said("layers rotated by bases of their own"));
    tell(!c.layer_turns.empty(),
         say("{} of {} layers not rotated", std::ranges::count(c.layer_turns, false), c.dims.layers));
  }
  if (!c.windows.empty()) {
    const auto windowed = std::ranges::count_if(c.windows, [](int window) { return window > 0; });
    tell(true, say("{} of {} layers see a window of {} tokens", windowed, c.dims.layers, std::ranges::max(c.windows)));
  }
  if (const auto cut = std::ranges::count_if(c.chunks, [](int chunk) { return chunk > 0; }); cut > 0)
    tell(true, say("{} of {} layers see their own chunk of {} tokens", cut, c.dims.layers, std::ranges::max(c.chunks)));
  if (const ExpertConfig& e = c.experts; e.anywhere()) {
    const auto sparse = e.layers.empty() ? c.dims.layers : std::ranges::count(e.layers, true);
    tell(true, say("in {} of {} layers each token through {} of {} experts of width {}", sparse, c.dims.layers,
                   e.per_token, e.count, e.width));
    tell(e.shared_width > 0, say("and one of width {} for all", e.shared_width));
    tell(e.shared_gate, said("weighed by a gate of its own"));
    tell(e.groups_kept < e.groups, say("of the best {} of {} groups", e.groups_kept, e.groups));
    tell(e.beside, said("and an MLP for all beside them"));
    tell(e.weigh_input, said("which read the token times their weight"));
    tell(e.weigh_output, said("their weights times learned numbers"));
    tell(e.capacity > 0, say("of each text the first {} that come to one; those that come later pass by", e.capacity));
    tell(e.scale != 1, say("their weights times {:.6g}", e.scale));
  }
  tell(c.gate_limit > 0, say("gates cut at {}", c.gate_limit));
  tell(c.score_scale.has_value(), say("scores times {:.6g}", c.score_scale.value_or(0)));
  tell(c.family != "gpt2" && !c.score_scale && !c.scale_by_inverse_sqrt_d, said("scores not divided by √d_head"));
  tell(c.score_cap > 0, say("scores bent by a soft cap of {}", c.score_cap));
  tell(c.learned_sinks, c.sink_layers.empty() ? said("a learned sink in the softmax of every head")
                                              : said("a learned sink in the softmax of the heads of some layers"));
  tell(c.value_scale != 1, say("values times {:.6g}", c.value_scale));
  tell(c.multipliers != Multipliers{}, said("what parts of a block read and write times numbers of its own"));
  tell(c.attention_stream != 1 || c.state_stream != 1 || c.mlp_stream != 1,
       say("the stream times {:g} before attention, {:g} before states and {:g} before MLPs are added",
           c.attention_stream, c.state_stream, c.mlp_stream));
  tell(c.dims.paired, say("{} blocks of two layers each, which read what enters the first of them", c.dims.layers / 2));
  tell(c.logit_cap > 0, say("logits bent by a soft cap of {}", c.logit_cap));
  tell(c.embedding_scale != 1, say("embeddings times {:.6g}", c.embedding_scale));
  tell(c.residual_scale != 1, say("what blocks add times {:.6g}", c.residual_scale));
  tell(c.logit_scale != 1, say("logits times {:.6g}", c.logit_scale));
  return fmt::format("{}", fmt::join(words, ", "));
}

StoredTensors stored_tensors(const TensorFile& file) {
  StoredTensors out;
  out.format = file.format();
  for (const auto& [name, entry] : file.tensors()) {
    out.bytes += entry.size;
    ++out.types[dtype_name(entry.dtype)];
    ++out.count;
  }
  return out;
}

std::string StoredTensors::in_words() const {
  std::string all;
  for (const auto& [type, many] : types) all += fmt::format("{}{} {}", all.empty() ? "" : ", ", many, type);
  return all;
}

ModelFacts model_facts(const fs::path& path) {
  ModelFacts out;
  out.path = path;
  out.config = load_config(path, out.keys);
  out.summary = family(out.config.family, out.config.name).summary;
  const ModelLocation place = locate_model(path);
  const ModelFiles files = ModelFiles::open(place);
  if (!place.adapter.empty()) out.adapter = LoraAdapter::open(place.adapter);
  out.tensors = files.tensors;
  out.stored = stored_tensors(*files.tensors);
  if (const auto tokenizer = load_tokenizer(path))
    out.tokenizer = ModelFacts::Reader{tokenizer->describe(), tokenizer->vocab_size(), tokenizer->adds_bos()};
  const RawWeights weights = read_model_weights(*files.weights, out.config);
  out.parts = parts_of(weights, out.config);
  out.parameters = weights.parameters;
  out.dtype = weights.dtype;
  out.untied = weights.untied;
  out.unused = weights.unused;
  return out;
}

}  // namespace headscope
