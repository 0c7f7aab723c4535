#include "core/io/trace_description.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/io/json_view.h"
#include "core/io/strict_json.h"

namespace headscope {

using nlohmann::json;

namespace {

constexpr NamedValue<MapKind> kind_names[] = {{"probability", MapKind::probability},
                                              {"effective", MapKind::effective},
                                              {"sparse", MapKind::sparse},
                                              {"difference", MapKind::difference}};

constexpr std::string_view hex_digits = "0123456789abcdef";

/// JSON holds only UTF-8, but a token may be half a character.
json from_bytes(const std::string& bytes) {
  json text = bytes;
  try {
    static_cast<void>(text.dump());
    return text;
  } catch (const json::type_error&) {
    std::string hex;
    for (const unsigned char c : bytes) {
      hex += hex_digits[c / 16];
      hex += hex_digits[c % 16];
    }
    return json{{"hex", hex}};
  }
}

constexpr int any_count = std::numeric_limits<int>::max();

int count(const JsonView& object, const char* key) {
  return object.at(key).small(0, any_count);
}

/// What from_bytes() wrote.
std::string bytes(const JsonView& value) {
  if (value.is_text()) return value.text();
  if (!value.is_object()) value.refuse("a text or {\"hex\": …}");
  const std::string hex = value.at("hex").text();
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    const auto high = hex_digits.find(hex[i]), low = hex_digits.find(hex[i + 1]);
    if (high == std::string_view::npos || low == std::string_view::npos) break;
    out += static_cast<char>(high * 16 + low);
  }
  if (2 * out.size() != hex.size()) value.at("hex").refuse("pairs of the digits 0-9 a-f");
  return out;
}
/// A text that is shown to people as it stands.
std::string shown(const JsonView& value) {
  return excerpt(bytes(value), 4000, Lines::kept);
}

json describe_tokens(const std::vector<Token>& all) {
  json tokens = json::array();
  for (const Token& token : all) {
    tokens.push_back({{"bytes", from_bytes(token.bytes)},
                      {"label", from_bytes(token.label)},
                      {"begin", token.begin},
                      {"end", token.end}});
    if (token.masked) tokens.back()["masked"] = token.original;  // absent in files of decoders, as the next
    if (token.segment > 0) tokens.back()["segment"] = token.segment;
  }
  return tokens;
}

std::vector<Token> read_tokens(const JsonView& list, std::size_t text_size) {
  std::vector<Token> tokens;
  for (const JsonView& item : list.elements("tokens")) {
    Token token;
    token.bytes = bytes(item.at("bytes"));
    token.label = shown(item.at("label"));
    const auto size = static_cast<int>(text_size);
    token.begin = item.at("begin").small(-1, size);
    token.end = item.at("end").small(-1, size);
    if (token.begin > token.end || (token.begin < 0) != (token.end < 0))
      item.at("begin").refuse("a span of the text, or -1 and -1", fmt::format("{} to {}", token.begin, token.end));
    if (const auto original = item.find("masked")) token.masked = true, token.original = original->small(-1, any_count);
    if (const auto segment = item.find("segment")) token.segment = segment->small(0, any_count);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

}  // namespace

std::string describe_trace(const Trace& trace, const TraceExtents& extents) {
  const ModelDims& d = trace.model.dims;
  json root;
  root["format"] = trace_format_name;
  root["version"] = trace_format_version;
  root["model"] = {{"name", from_bytes(trace.model.name)},
                   {"family", from_bytes(trace.model.family)},
                   {"dtype", from_bytes(trace.model.dtype)},
                   {"parameters", trace.model.parameters},
                   {"context", trace.model.context},
                   {"layers", d.layers},
                   {"heads", d.heads},
                   {"kv_heads", d.kv_heads},
                   {"d_head", d.d_head},
                   {"d_model", d.d_model},
                   {"d_mlp", d.d_mlp},
                   {"vocab", d.vocab}};
  if (d.experts > 0) root["model"]["experts"] = d.experts;
  if (d.convolves_first) root["model"]["convolves_first"] = true;
  if (d.parallel) root["model"]["parallel"] = true;            // absent in files of other models, and in older ones
  if (d.stream_scales) root["model"]["stream_scales"] = true;  // likewise
  if (d.paired) root["model"]["paired"] = true;                // likewise
  for (const auto& [key, value] : {std::pair("d_value", d.d_value),
                                   {"kv_latent", d.kv_latent},
                                   {"q_latent", d.q_latent},
                                   {"d_inner", d.d_inner},
                                   {"lanes", d.lanes},
                                   {"state_groups", d.state_groups},
                                   {"d_state", d.d_state},
                                   {"convolved", d.convolved},
                                   {"d_embed", d.d_embed},
                                   {"d_out", d.d_out},
                                   {"d_layer", d.d_layer},
                                   {"state_heads", d.state_heads}})
    if (value > 0) root["model"][key] = value;  // likewise
  if (d.state_kind != StateKind::selective) root["model"]["state_kind"] = name_in(state_kind_names, d.state_kind);
  for (const Mixer each : d.mixers) root["model"]["mixers"].push_back(name_in(mixer_names, each));
  for (const LayerWidths& each : d.widths)
    root["model"]["widths"].push_back({{"kv_heads", each.kv_heads}, {"d_head", each.d_head}, {"d_mlp", each.d_mlp}});
  for (int layer = 0; !d.bare.empty() && layer < d.layers; ++layer)
    if (!d.has_mlp(layer)) root["model"]["without_mlp"].push_back(layer);
  for (int layer = 0; !d.normed_behind.empty() && layer < d.layers; ++layer)
    if (d.normed_behind[static_cast<std::size_t>(layer)]) root["model"]["normed_behind"].push_back(layer);
  if (trace.model.objective != Objective::next_token)
    root["model"]["objective"] = name_in(objective_names, trace.model.objective);
  if (trace.model.pictures) root["model"]["pictures"] = true;
  if (trace.model.stack != Stack::only) root["model"]["stack"] = name_in(stack_names, trace.model.stack);
  root["text"] = from_bytes(trace.text);
  root["tokens"] = describe_tokens(trace.tokens);
  if (trace.between_texts()) root["query_tokens"] = describe_tokens(trace.query_tokens);
  if (trace.picture)
    root["grid"] = {
        {"rows", trace.picture->rows}, {"columns", trace.picture->columns}, {"leading", trace.picture->leading}};
  if (trace.sound)
    root["sound"] = {
        {"frame_seconds", trace.sound->frame_seconds}, {"keys", trace.sound->keys}, {"seconds", trace.sound->seconds}};
  if (trace.sound && trace.sound->from > 0) root["sound"]["from"] = trace.sound->from;
  root["source"] = from_bytes(trace.source);
  root["queries"] = extents.n_query;
  root["keys"] = extents.n_key;
  root["query_offset"] = extents.offset;
  root["map_kind"] = name_in(kind_names, extents.kind);
  root["rule"] = extents.rule ? json(*extents.rule) : json();
  if (extents.names != HookNames::transformer_lens) root["names"] = text_of(extents.names);
  for (const auto& [head, rule] : extents.head_rules)
    root["head_rules"].push_back({{"layer", head.layer}, {"head", head.head}, {"rule", rule}});
  for (const auto& [head, kind] : extents.head_kinds)
    root["head_kinds"].push_back({{"layer", head.layer}, {"head", head.head}, {"kind", name_in(kind_names, kind)}});
  root["plan"] = {{"maps", name_in(map_storage_names, trace.plan.maps)},
                  {"bytes", trace.plan.bytes},
                  {"summary", from_bytes(trace.plan.summary)}};
  root["milliseconds"] = std::isfinite(trace.milliseconds) ? trace.milliseconds : 0.0;  // JSON has no NaN
  return root.dump();
}

Trace parse_trace_description(const std::string& text, const std::string& where, TraceExtents& extents) {
  const json parsed = parse_strict_json(text, where, 8);
  const JsonView root(parsed, where);
  if (root.at("format").text() != trace_format_name) root.at("format").refuse(trace_format_name);
  if (const int version = count(root, "version"); version != trace_format_version)
    root.at("version").refuse(fmt::format("{}", trace_format_version), fmt::format("{}", version),
                              "the file was written by another version of this program");

  Trace trace;
  const JsonView model = root.at("model");
  trace.model.name = shown(model.at("name"));
  trace.model.family = shown(model.at("family"));
  trace.model.dtype = shown(model.at("dtype"));
  trace.model.parameters = model.at("parameters").integer(0);
  trace.model.context = count(model, "context");
  ModelDims& d = trace.model.dims;
  d = {.layers = count(model, "layers"),
       .heads = count(model, "heads"),
       .kv_heads = count(model, "kv_heads"),
       .d_head = count(model, "d_head"),
       .d_model = count(model, "d_model"),
       .d_mlp = count(model, "d_mlp"),
       .vocab = count(model, "vocab"),
       .experts = model.find("experts") ? count(model, "experts") : 0,
       .parallel = model.flag_or("parallel", false),
       .stream_scales = model.flag_or("stream_scales", false),
       .paired = model.flag_or("paired", false),
       .convolves_first = model.flag_or("convolves_first", false)};
  for (const auto& [key, value] : {std::pair("d_value", &d.d_value),
                                   {"kv_latent", &d.kv_latent},
                                   {"q_latent", &d.q_latent},
                                   {"d_inner", &d.d_inner},
                                   {"lanes", &d.lanes},
                                   {"state_groups", &d.state_groups},
                                   {"d_state", &d.d_state},
                                   {"convolved", &d.convolved},
                                   {"d_embed", &d.d_embed},
                                   {"d_out", &d.d_out},
                                   {"d_layer", &d.d_layer},
                                   {"state_heads", &d.state_heads}})
    if (model.find(key)) *value = count(model, key);
  const auto layers = static_cast<std::size_t>(d.layers);
  if (const auto kind = model.find("state_kind")) d.state_kind = kind->choice(state_kind_names);
  if (const auto mixers = model.find("mixers"))
    for (const JsonView& each : mixers->elements("layers", layers, layers))
      d.mixers.push_back(each.choice(mixer_names));
  if (d.state_heads > 0 && !d.hybrid())
    model.refuse("state_heads of layers with a state beside others that attend", std::to_string(d.state_heads));
  if (const int heads = d.heads_of_states(); !d.attends() && (heads < 1 || d.d_inner < heads || d.d_inner % heads != 0))
    model.refuse("a d_inner that the heads divide", fmt::format("{} of {} heads", d.d_inner, heads));
  if (const auto widths = model.find("widths"))
    for (const JsonView& each : widths->elements("layers", layers, layers))
      d.widths.push_back({count(each, "kv_heads"), count(each, "d_head"), count(each, "d_mlp")});
  for (const auto& [key, of] : {std::pair("without_mlp", &d.bare), {"normed_behind", &d.normed_behind}})
    if (const auto listed = model.find(key)) {
      of->resize(layers);
      for (const JsonView& each : listed->elements("layers", 1, layers))
        (*of)[static_cast<std::size_t>(each.small(0, d.layers - 1))] = true;
    }
  if (const auto objective = model.find("objective")) trace.model.objective = objective->choice(objective_names);
  trace.model.pictures = model.flag_or("pictures", false);
  if (const auto stack = model.find("stack")) trace.model.stack = stack->choice(stack_names);
  trace.text = bytes(root.at("text"));
  if (trace.text.size() > static_cast<std::size_t>(any_count))
    root.at("text").refuse("a text below 2 GiB", fmt::format("{} bytes", trace.text.size()));
  trace.tokens = read_tokens(root.at("tokens"), trace.text.size());
  if (const auto queries = root.find("query_tokens")) trace.query_tokens = read_tokens(*queries, trace.text.size());
  if (const auto grid = root.find("grid"))
    extents.grid = PatchPicture{.rows = grid->at("rows").small(1, any_count),
                                .columns = grid->at("columns").small(1, any_count),
                                .leading = grid->at("leading").small(0, any_count)};
  if (const auto sound = root.find("sound"))
    extents.sound = SoundFrames{.log_mel = {},
                                .frame_seconds = sound->at("frame_seconds").number(1e-6, 1e6),
                                .keys = sound->at("keys").small(1, any_count),
                                .seconds = sound->at("seconds").number(0, 1e12),
                                .from = sound->find("from") ? sound->at("from").number(0, 1e12) : 0};
  trace.source = shown(root.at("source"));
  extents.n_query = count(root, "queries");
  extents.n_key = count(root, "keys");
  extents.offset = count(root, "query_offset");
  extents.kind = root.at("map_kind").choice(kind_names);
  if (const auto rule = root.find("rule")) extents.rule = rule->text();
  if (const auto written = root.find("names")) {
    const auto names = parse_hook_names(written->text());
    if (!names) written->refuse("transformer-lens, bridge or bridge-gated");
    extents.names = *names;
  }
  const auto each_head = [&](const char* key, const auto& take) {
    if (const auto heads = root.find(key))
      for (const JsonView& item : heads->elements("heads"))
        take(HeadId{count(item, "layer"), count(item, "head")}, item);
  };
  each_head("head_rules",
            [&](HeadId head, const JsonView& item) { extents.head_rules[head] = item.at("rule").text(); });
  each_head("head_kinds",
            [&](HeadId head, const JsonView& item) { extents.head_kinds[head] = item.at("kind").choice(kind_names); });
  const JsonView plan = root.at("plan");
  trace.plan.maps = plan.at("maps").choice(map_storage_names);
  trace.plan.bytes = static_cast<std::size_t>(plan.at("bytes").integer(0));
  trace.plan.summary = shown(plan.at("summary"));
  trace.milliseconds = root.at("milliseconds").number();
  trace.whole_milliseconds = trace.milliseconds;
  return trace;
}

}  // namespace headscope
