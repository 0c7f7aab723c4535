#include "core/model/parameter_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <vector>

#include "core/base/error.h"
#include "core/model/config_reader.h"
#include "core/trace/layer_kinds.h"

namespace headscope {

namespace {
/// Attention by latents, in place of what is there: d (r_q or q) [+ r_q q], d (r + turning), r (k − turning · heads +
/// v), v d; biases of what makes the latents, and of the output.
void add_latents(const ModelConfig& c, ParameterParts& out) {
  const std::int64_t d = c.dims.d_model, heads = c.dims.heads, q = heads * c.dims.d_head,
                     v = heads * c.dims.value_width(), r = c.dims.kv_latent, down = r + c.rotary.width,
                     rq = c.dims.q_latent, layers = c.dims.layers;
  out.attention_biases = layers * ((c.bias.k ? down : 0) + (c.bias.q && rq > 0 ? rq : 0) + (c.bias.o ? d : 0));
  out.attention =
      layers * ((rq > 0 ? d * rq + rq * q : d * q) + d * down + r * (q - heads * c.rotary.width + v) + v * d) +
      out.attention_biases;
  out.norms += layers * (r + rq);
}
}  // namespace

namespace {
/// A state space in place of attention, with i channels, e of them convolved over K tokens, l lanes, N states:
/// d (i + e) + i d, e K + e, with lanes that are channels i (R + 2 N) + R l + l N, else d l + l; l of Δ's bias and l
/// that pass by. The delta rule has d l of β besides, and nothing that passes by.
void add_state_space(const ModelConfig& c, ParameterParts& out) {
  const StateSpaceConfig& s = *c.state_space;
  if (s.lane == StateSpaceConfig::Lane::convolution) {  // d 3 i + i d, i K, and biases
    const std::int64_t model = c.dims.d_model, channels = c.dims.d_inner,
                       count = c.dims.layers - attending_layers(c.dims),
                       extra = count * ((s.bias ? 3 * channels + model : 0) + (s.convolution_bias ? channels : 0));
    out.attention_biases += extra;
    out.attention += count * (4 * model * channels + channels * s.convolution) + extra;
    return;
  }
  if (s.steady) {  // d (i + e) + i d
    const std::int64_t model = c.dims.d_model, inner = c.dims.d_inner, count = c.dims.layers - attending_layers(c.dims);
    out.attention += count * model * (2 * inner + c.dims.convolved);
    out.norms += count * inner;
    return;
  }
  const bool heads = s.lane != StateSpaceConfig::Lane::channel, delta = s.lane == StateSpaceConfig::Lane::delta;
  const std::int64_t d = c.dims.d_model, inner = c.dims.d_inner, convolved = c.dims.convolved, lanes = c.dims.lanes,
                     states = c.dims.d_state, rank = s.step_rank, layers = c.dims.layers - attending_layers(c.dims),
                     in = inner + convolved +
                          (delta   ? 2 * lanes
                           : heads ? lanes
                                   : 0);
  const std::int64_t biases =
      layers * ((s.bias ? in : 0) + (s.biased_out() ? d : 0) + (s.convolution_bias ? convolved : 0) + lanes);
  out.attention_biases += biases;
  out.attention += layers * (d * in + inner * d + convolved * s.convolution + (delta ? 0 : lanes) +
                             (heads ? lanes : inner * (rank + 2 * states) + rank * lanes + lanes * states)) +
                   biases;
  if (s.select_norms && s.select_gains) out.norms += layers * (rank + 2 * states);
  if (s.gated_norm) out.norms += layers * (delta ? inner / lanes : inner);
}
}  // namespace

namespace {
/// Cross-attention with its norm, and all of the encoder but a table that both stacks look their tokens up in.
void add_encoder(const ModelConfig& c, ParameterParts& out) {
  const std::int64_t d = c.dims.d_model, layers = c.dims.layers, q = std::int64_t{c.dims.heads} * c.dims.d_head,
                     k = std::int64_t{c.dims.kv_heads} * c.dims.d_head;
  const std::int64_t biases =
      layers * ((c.bias.q ? q : 0) + (c.bias.k ? k : 0) + (c.bias.v ? k : 0) + (c.bias.o ? d : 0));
  out.attention += layers * (2 * d * q + 2 * d * k) + biases;
  out.attention_biases += biases;
  out.norms += layers * d * (c.norm == NormKind::layer_norm && c.bias.norm ? 2 : 1) * (c.norms_behind() ? 2 : 1);
  const ParameterParts encoder = parameter_parts(*c.encoder);
  out.embedding += c.shared_embedding ? 0 : encoder.embedding;
  out.positions += encoder.positions;
  out.attention += encoder.attention;
  out.attention_biases += encoder.attention_biases;
  out.mlp += encoder.mlp;
  out.mlp_biases += encoder.mlp_biases;
  out.norms += encoder.norms;
}
}  // namespace

ParameterParts parameter_parts(const ModelConfig& c) {
  const std::int64_t d = c.dims.d_model, m = c.dims.d_mlp, sum = c.sum_width(),
                     layers = c.layer_groups > 0 ? c.layer_groups : c.dims.layers,
                     q = std::int64_t{c.dims.heads} * c.dims.d_head, k = std::int64_t{c.dims.kv_heads} * c.dims.d_head,
                     vocab = c.dims.vocab;
  const std::int64_t biased = c.norm == NormKind::layer_norm && c.bias.norm ? 2 : 1,
                     attending = c.dims.any_state_space() ? attending_layers(c.dims) : layers,
                     mlps = m == 0 ? 0 : layers - std::ranges::count(c.dims.bare, true);
  ParameterParts out;
  const std::int64_t stored = c.embedding_width > 0 ? c.embedding_width : d;
  out.embedding = vocab * stored + std::int64_t{c.embedding_width} * d + (c.narrow_sum() ? d : 0);
  if (c.vision) out.embedding = d * (c.vision->leading + c.vision->patch_numbers() + (c.vision->patch_bias ? 1 : 0));
  if (c.sound) out.embedding = d * (3 * (c.sound->mels + d) + 2);
  out.embedding += (std::int64_t{c.segments} + std::int64_t{c.tasks} * c.task_tables) * sum;
  if (c.position == PositionKind::learned && !c.sinusoids)
    out.positions = std::int64_t{c.context + c.position_offset + c.position_tail} * sum;
  if (c.vision && c.vision->stored_side > 0)
    out.positions =
        (c.vision->leading - c.vision->registers + std::int64_t{c.vision->stored_side} * c.vision->stored_side) * d;
  if (c.has_buckets())
    out.positions += std::int64_t{c.position_buckets} * c.dims.heads * (c.buckets_by_layer ? layers : 1);
  if (c.distances) out.positions += 2 * std::int64_t{c.distances->span} * d;
  const ProductGroups& g = c.groups;
  const bool differ = !c.dims.widths.empty() || !c.kv_layers.empty() || !c.values_are_keys.empty();
  std::int64_t products = 0;
  for (int layer = 0; differ && layer < c.dims.layers; ++layer) {
    const LayerWidths own = c.dims.widths_of(layer);
    const std::int64_t wide = c.dims.d_value > 0 ? c.dims.d_value : own.d_head,
                       queries = std::int64_t{c.dims.heads} * own.d_head,
                       keys = c.own_keys(layer) ? std::int64_t{own.kv_heads} * own.d_head : 0,
                       values = c.own_keys(layer) && !c.value_is_key(layer) ? own.kv_heads * wide : 0;
    products += d * (queries + keys + values + c.dims.heads * wide);
    out.attention_biases +=
        (c.bias.q ? queries : 0) + (c.bias.k ? keys : 0) + (c.bias.v ? values : 0) + (c.bias.o ? d : 0);
  }
  if (!differ) {
    out.attention_biases =
        attending * ((c.bias.q ? q : 0) + (c.bias.k ? k : 0) + (c.bias.v ? k : 0) + (c.bias.o ? d : 0));
    products = attending * (d * q / g.q + d * k / g.k + d * k / g.v + q * d / g.o);
  }
  if (c.bias.last_o) out.attention_biases += d;
  std::int64_t sinks = 0;
  for (int layer = 0; layer < c.dims.layers; ++layer) sinks += c.has_sinks(layer) ? c.dims.heads : 0;
  out.attention = products + out.attention_biases + sinks + (c.layer_scales ? layers * d : 0);
  if (const auto& own = c.distances; own && !own->shared) {
    const std::int64_t to = own->content_to_position, from = own->position_to_content,
                       biases = layers * (to * (own->key_bias ? k : 0) + from * q);
    out.attention += layers * (to * d * k + from * d * q) + biases;
    out.attention_biases += biases;
  }
  if (c.output_gate) {
    const std::int64_t gates = std::int64_t{c.dims.heads} * c.dims.value_width();
    out.attention_biases += c.bias.output_gate ? attending * gates : 0;
    out.attention += attending * (d * gates + (c.bias.output_gate ? gates : 0));
  }
  if (c.latent()) add_latents(c, out);
  if (c.dims.any_state_space()) add_state_space(c, out);
  if (m > 0) {
    const std::int64_t inputs = c.gated_mlp ? 2 : 1;
    const auto biases = [&](std::int64_t width) { return (c.bias.up ? inputs * width : 0) + (c.bias.down ? d : 0); };
    const auto weights = [&](std::int64_t width) { return (inputs + 1) * d * width; };
    const ExpertConfig& e = c.experts;
    for (int layer = 0; layer < c.dims.layers; ++layer) {
      if (c.repeats(layer) || !c.dims.has_mlp(layer)) continue;
      if (!e.at(layer) || e.beside) {
        const std::int64_t wide = c.dims.widths_of(layer).d_mlp;
        out.mlp_biases += biases(wide);
        out.mlp += (g.up * g.down > 1 ? inputs * d * wide / g.up + wide * d / g.down : weights(wide)) +
                   (c.activation == Activation::xielu ? 2 : 0) + (c.layer_scales ? d : 0);
      }
      if (!e.at(layer)) continue;
      if (e.beside) out.norms += 4 * d;
      if (e.weigh_output) out.mlp += e.count;
      const std::int64_t own = e.own_bias ? biases(e.width) : 0;
      out.mlp_biases += e.count * own + (e.router_bias ? e.count : 0);
      out.mlp += e.count * (weights(e.width) + d + (e.correction ? 1 : 0));
      if (e.shared_width > 0) out.mlp_biases += biases(e.shared_width), out.mlp += weights(e.shared_width);
      if (e.shared_gate) out.mlp += d;
      out.idle += (e.count - e.per_token) * (weights(e.width) + own);
    }
    out.mlp += out.mlp_biases;
  }
  if (c.norm_weights) {
    const std::int64_t before = c.norm_place == NormPlace::behind ? 0
                                : c.shared_norm                   ? layers
                                                                  : layers + mlps,
                       behind = c.norms_behind() ? layers + mlps : 0;
    out.norms += biased * d * (before + behind - (c.dims.paired ? layers / 2 : 0)) +
                 (c.embedding_norm ? biased * sum : 0) +
                 (c.last_norm() ? (c.final_norm() == c.norm ? biased : 1) * d : 0) +
                 (c.head_layer && c.predicts ? biased * c.dims.out_width() : 0) - (c.first_norm ? 0 : biased * d);
    if (c.distances && c.distances->norm) out.norms += biased * d;
    if (c.mlp_norm && c.norm == c.mlp_norm_kind) out.norms += layers * biased * m;
    if (c.z_norm) out.norms += attending * c.dims.heads * c.dims.value_width();
    const std::int64_t heads = c.qk_norm == QkNorm::full_width || c.qk_norm_by_head ? q + k : 2 * c.dims.d_head;
    if (c.qk_norm != QkNorm::none && c.qk_norm_weights && !differ)
      out.norms += attending * heads * (c.bias.qk_norm ? 2 : 1);
    for (int layer = 0; differ && c.qk_norm == QkNorm::per_head && layer < c.dims.layers; ++layer)
      out.norms += std::int64_t{c.dims.widths_of(layer).d_head} * (c.own_keys(layer) ? 2 : 1);
  }
  if (const std::int64_t w = c.dims.d_layer; w > 0) {
    out.layer_inputs = c.layer_vocab * layers * w + d * layers * w + layers * 2 * d * w;
    out.norms += w + layers * d;
  }
  if (const auto& own = c.convolution) {
    out.convolution = own->tokens * d * d / own->groups + d;
    out.norms += biased * d;
  }
  if (c.dims.stream_scales) out.norms += layers;
  if (c.bias.unembedding && c.predicts && !c.cross()) out.unembedding = vocab;
  const std::int64_t read = c.dims.d_out > 0 ? c.dims.d_out : stored;  // by the unembedding
  if (c.head_layer && c.predicts) out.unembedding += (d + (c.bias.head ? 1 : 0)) * c.dims.out_width();
  if (c.predicts) (c.tied_embeddings ? out.tied : out.unembedding) += read * vocab;
  if (c.predicts && !c.narrow_sum()) out.unembedding += std::int64_t{c.embedding_width} * d;
  if (c.vision && c.vision->class_heads == 2) out.unembedding *= 2;
  if (c.cross()) add_encoder(c, out);
  return out;
}

namespace {
std::vector<std::string_view> split(std::string_view words) {
  std::vector<std::string_view> out;
  for (std::size_t at = 0; at < words.size();) {
    const std::size_t begin = words.find_first_not_of(" ,\t", at);
    if (begin == std::string_view::npos) break;
    const std::size_t end = std::min(words.find_first_of(" ,\t", begin), words.size());
    out.push_back(words.substr(begin, end - begin));
    at = end;
  }
  return out;
}
}  // namespace

ModelConfig parse_shape(std::string_view text, const std::string& where) {
  namespace limit = config_limits;
  const auto words = split(text);
  if (words.empty() || (words[0] != "gpt2" && words[0] != "llama"))
    throw Error(where, "a shape that begins with gpt2 or llama", words.empty() ? "nothing" : std::string(words[0]),
                "such as: gpt2 layers=12 width=768 heads=12 vocab=50257 context=1024");
  ModelConfig c;
  c.family = words[0];
  const bool llama = c.family == "llama";
  if (llama) {
    c.norm = NormKind::rms_norm;
    c.position = PositionKind::rotary;
    c.activation = Activation::silu;
    c.bias = BiasSet::none();
    c.tied_embeddings = false;
  }
  static const std::map<std::string_view, int> most = {
      {"layers", limit::layers},  {"width", limit::d_model}, {"heads", limit::heads},     {"mlp", limit::d_mlp},
      {"kv_heads", limit::heads}, {"vocab", limit::vocab},   {"context", limit::context}, {"d_head", limit::d_head}};
  std::map<std::string_view, int> numbers;
  std::set<std::string_view> seen;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string_view key = words[i].substr(0, equals),
                           value = equals == std::string_view::npos ? "" : words[i].substr(equals + 1);
    if (!seen.insert(key).second) throw Error(where, fmt::format("{} once", key), "it again");
    if (key == "tied") {
      if (value != "yes" && value != "no") throw Error(where, "tied=yes or tied=no", fmt::format("\"{}\"", words[i]));
      c.tied_embeddings = value == "yes";
      continue;
    }
    const auto known = most.find(key);
    if (known == most.end())
      throw Error(where, "layers=, width=, heads=, kv_heads=, d_head=, mlp=, vocab=, context= or tied=",
                  fmt::format("\"{}\"", words[i]));
    int number = -1;
    const auto [end, failure] = std::from_chars(value.data(), value.data() + value.size(), number);
    const int least = key == "mlp" ? 0 : 1;
    if (failure != std::errc() || end != value.data() + value.size() || number < least || number > known->second)
      throw Error(where, fmt::format("{}= with a whole number from {} to {}", key, least, known->second),
                  fmt::format("\"{}\"", words[i]));
    numbers[known->first] = number;
  }
  for (const char* key : {"layers", "width", "heads", "vocab"})
    if (!numbers.contains(key)) throw Error(where, fmt::format("{}=", key), "a shape without it");
  if (c.position == PositionKind::learned && !numbers.contains("context"))
    throw Error(where, "context=, for which gpt2 learns a position each", "a shape without it");
  ModelDims& d = c.dims;
  d.layers = numbers["layers"];
  d.d_model = numbers["width"];
  d.heads = numbers["heads"];
  d.kv_heads = numbers.contains("kv_heads") ? numbers["kv_heads"] : d.heads;
  d.d_mlp = numbers.contains("mlp") ? numbers["mlp"] : 4 * d.d_model;
  d.vocab = numbers["vocab"];
  c.context = numbers.contains("context") ? numbers["context"] : 0;
  if (!numbers.contains("d_head") && d.d_model % d.heads != 0)
    throw Error(where, fmt::format("heads that divide the width {}", d.d_model), std::to_string(d.heads));
  if (d.heads % d.kv_heads != 0)
    throw Error(where, fmt::format("kv_heads that divide the {} heads", d.heads), std::to_string(d.kv_heads));
  d.d_head = numbers.contains("d_head") ? numbers["d_head"] : d.d_model / d.heads;
  c.gated_mlp = llama && d.d_mlp > 0;
  return c;
}

std::string shape_words(const ModelConfig& c) {
  const ModelDims& d = c.dims;
  const std::string keys = across_layers(d, &LayerWidths::kv_heads), head = across_layers(d, &LayerWidths::d_head);
  return fmt::format("{} layers={} width={} heads={}{}{} mlp={} vocab={}{} tied={}", c.family, d.layers, d.d_model,
                     d.heads, keys == std::to_string(d.heads) ? "" : fmt::format(" kv_heads={}", keys),
                     d.widths.empty() && d.d_head * d.heads == d.d_model ? "" : fmt::format(" d_head={}", head),
                     across_layers(d, &LayerWidths::d_mlp), d.vocab,
                     c.context > 0 ? fmt::format(" context={}", c.context) : "", c.tied_embeddings ? "yes" : "no");
}

}  // namespace headscope
