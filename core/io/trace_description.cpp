#include "core/io/trace_description.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string_view>
#include <utility>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
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

/// Reads one object; every error names its path, "model.layers".
class Reader {
 public:
  Reader(const json& object, std::string where) : object_(object), where_(std::move(where)) {
    if (!object.is_object()) throw Error(where_, "an object", json_excerpt(object));
  }

  std::string at(const char* key) const { return where_ + "." + key; }

  const json& value(const char* key) const {
    const auto found = object_.find(key);
    if (found == object_.end()) throw Error(where_, fmt::format("\"{}\"", key), "none");
    return *found;
  }
  std::int64_t integer(const char* key, std::int64_t least, std::int64_t most) const {
    const json& found = value(key);
    // Unsigned numbers above 2^63 would turn negative in get<int64_t>.
    const bool fits =
        found.is_number_integer() && (!found.is_number_unsigned() || found.get<std::uint64_t>() <= INT64_MAX);
    const std::int64_t number = fits ? found.get<std::int64_t>() : least - 1;
    if (!fits || number < least || number > most)
      throw Error(at(key), fmt::format("a whole number from {} to {}", least, most), json_excerpt(found));
    return number;
  }
  int count(const char* key) const { return static_cast<int>(integer(key, 0, std::numeric_limits<int>::max())); }
  /// False where it is absent.
  bool flag(const char* key) const {
    const auto found = object_.find(key);
    if (found != object_.end() && !found->is_boolean()) throw Error(at(key), "true or false", json_excerpt(*found));
    return found != object_.end() && found->get<bool>();
  }
  double number(const char* key) const {
    const json& found = value(key);
    if (!found.is_number()) throw Error(at(key), "a number", json_excerpt(found));
    return found.get<double>();
  }
  std::string text(const char* key) const {
    const json& found = value(key);
    if (!found.is_string()) throw Error(at(key), "a string", json_excerpt(found));
    return found.get<std::string>();
  }
  /// A text that is shown to people as it stands.
  std::string shown(const char* key) const { return excerpt(bytes(key), 4000, Lines::kept); }
  std::string bytes(const char* key) const {
    const json& found = value(key);
    if (found.is_string()) return found.get<std::string>();
    if (!found.is_object()) throw Error(at(key), "a string or {\"hex\": …}", json_excerpt(found));
    const std::string hex = Reader(found, at(key)).text("hex");
    std::string out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
      const auto high = hex_digits.find(hex[i]), low = hex_digits.find(hex[i + 1]);
      if (high == std::string_view::npos || low == std::string_view::npos) break;
      out += static_cast<char>(high * 16 + low);
    }
    if (2 * out.size() != hex.size()) throw Error(at(key), "pairs of the digits 0-9 a-f", json_excerpt(found["hex"]));
    return out;
  }
  template <class Value, std::size_t n>
  Value choice(const char* key, const NamedValue<Value> (&names)[n]) const {
    const auto found = value_in(names, text(key));
    if (!found) throw Error(at(key), "one of " + listed(names), json_excerpt(value(key)));
    return *found;
  }
  Reader object(const char* key) const { return {value(key), at(key)}; }

 private:
  const json& object_;
  std::string where_;
};

std::vector<Token> read_tokens(const Reader& root, std::size_t text_size) {
  const json& list = root.value("tokens");
  if (!list.is_array()) throw Error(root.at("tokens"), "an array", json_excerpt(list));
  std::vector<Token> tokens;
  tokens.reserve(list.size());
  for (const json& item : list) {
    const Reader reader(item, fmt::format("{}[{}]", root.at("tokens"), tokens.size()));
    Token token;
    token.bytes = reader.bytes("bytes");
    token.label = reader.shown("label");
    const auto size = static_cast<std::int64_t>(text_size);
    token.begin = static_cast<int>(reader.integer("begin", -1, size));
    token.end = static_cast<int>(reader.integer("end", -1, size));
    if (token.begin > token.end || (token.begin < 0) != (token.end < 0))
      throw Error(reader.at("begin"), "a span of the text, or -1 and -1",
                  fmt::format("{} to {}", token.begin, token.end));
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
  if (d.parallel) root["model"]["parallel"] = true;  // absent in files of other models, and in older ones
  root["text"] = from_bytes(trace.text);
  json tokens = json::array();
  for (const Token& token : trace.tokens)
    tokens.push_back({{"bytes", from_bytes(token.bytes)},
                      {"label", from_bytes(token.label)},
                      {"begin", token.begin},
                      {"end", token.end}});
  root["tokens"] = std::move(tokens);
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
  const json root_value = parse_strict_json(text, where, 8);
  const Reader root(root_value, where);
  if (root.text("format") != trace_format_name) throw Error(root.at("format"), trace_format_name, root.text("format"));
  if (const int version = root.count("version"); version != trace_format_version)
    throw Error(root.at("version"), fmt::format("{}", trace_format_version), fmt::format("{}", version),
                "the file was written by another version of this program");

  Trace trace;
  const Reader model = root.object("model");
  trace.model.name = model.shown("name");
  trace.model.family = model.shown("family");
  trace.model.dtype = model.shown("dtype");
  trace.model.parameters = model.integer("parameters", 0, INT64_MAX);
  trace.model.context = model.count("context");
  ModelDims& d = trace.model.dims;
  d = {.layers = model.count("layers"),
       .heads = model.count("heads"),
       .kv_heads = model.count("kv_heads"),
       .d_head = model.count("d_head"),
       .d_model = model.count("d_model"),
       .d_mlp = model.count("d_mlp"),
       .vocab = model.count("vocab"),
       .parallel = model.flag("parallel")};
  trace.text = root.bytes("text");
  if (trace.text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw Error(root.at("text"), "a text below 2 GiB", fmt::format("{} bytes", trace.text.size()));
  trace.tokens = read_tokens(root, trace.text.size());
  trace.source = root.shown("source");
  extents.n_query = root.count("queries");
  extents.n_key = root.count("keys");
  extents.offset = root.count("query_offset");
  extents.kind = root.choice("map_kind", kind_names);
  if (!root.value("rule").is_null()) extents.rule = root.text("rule");
  if (root_value.contains("names")) {
    const auto names = parse_hook_names(root.text("names"));
    if (!names) throw Error(root.at("names"), "transformer-lens, bridge or bridge-gated", root.text("names"));
    extents.names = *names;
  }
  if (const auto rules = root_value.find("head_rules"); rules != root_value.end()) {
    if (!rules->is_array()) throw Error(root.at("head_rules"), "an array", json_excerpt(*rules));
    for (const json& value : *rules) {
      const Reader item(value, root.at("head_rules"));
      extents.head_rules[{item.count("layer"), item.count("head")}] = item.text("rule");
    }
  }
  if (const auto kinds = root_value.find("head_kinds"); kinds != root_value.end()) {
    if (!kinds->is_array()) throw Error(root.at("head_kinds"), "an array", json_excerpt(*kinds));
    for (const json& value : *kinds) {
      const Reader item(value, root.at("head_kinds"));
      extents.head_kinds[{item.count("layer"), item.count("head")}] = item.choice("kind", kind_names);
    }
  }
  const Reader plan = root.object("plan");
  trace.plan.maps = plan.choice("maps", map_storage_names);
  trace.plan.bytes = static_cast<std::size_t>(plan.integer("bytes", 0, INT64_MAX));
  trace.plan.summary = plan.shown("summary");
  trace.milliseconds = root.number("milliseconds");
  return trace;
}

}  // namespace headscope
