#include "core/io/trace_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/memory.h"
#include "core/io/capture_arrays.h"
#include "core/io/imported_maps.h"
#include "core/io/safetensors.h"
#include "core/io/trace_description.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {

/// Rows of a map that are computed at once while writing: about a megabyte.
constexpr Index band_cells = 1 << 18;

const char* const description_key = "headscope";
const char* const recipe_key = "recipe";
const char* const tokens_name = "tokens";
const char* const query_tokens_name = "query_tokens";
const char* const image_name = "image";
const char* const log_mel_name = "log_mel";

TraceExtents extents_of(const Trace& trace) {
  TraceExtents extents;
  extents.n_key = static_cast<Index>(trace.tokens.size());
  extents.n_query = static_cast<Index>(trace.queries().size());
  if (trace.maps.empty()) return extents;
  const AttentionMap& first = trace.maps.front();
  extents.n_query = first.n_query();
  extents.n_key = first.n_key();
  extents.offset = first.place().offset;
  extents.kind = first.place().kind;
  if (first.rule()) extents.rule = first.rule()->describe();
  for (const AttentionMap& map : trace.maps) {
    if (map.rule() && map.rule()->describe() != extents.rule) extents.head_rules[map.id()] = map.rule()->describe();
    if (map.place().kind != extents.kind) extents.head_kinds[map.id()] = map.place().kind;
  }
  return extents;
}

Index extent(std::string_view axis, const ModelDims& dims, const TraceExtents& extents) {
  if (axis == "query") return extents.n_query;
  if (axis == "key") return extents.n_key;
  if (axis == "head") return dims.heads;
  if (axis == "kv_head") return dims.kv_heads;
  if (axis == "d_head") return dims.d_head;
  if (axis == "d_value") return dims.value_width();
  if (axis == "q_latent") return dims.q_latent;
  if (axis == "kv_latent") return dims.kv_latent;
  if (axis == "d_inner") return dims.d_inner;
  if (axis == "d_layer") return dims.d_layer;
  if (axis == "lane") return dims.lanes;
  if (axis == "group") return dims.state_groups;
  if (axis == "d_state") return dims.d_state;
  if (axis == "d_model") return dims.d_model;
  if (axis == "expert") return dims.experts;
  if (axis == "d_mlp") return dims.d_mlp;
  if (axis == "vocab") return dims.vocab;
  return -1;
}

/// The shape that site_table() promises for a kind: its text, with the extents of this trace put in.
/// Keys and values have a row for every key where those are of another text than the queries.
Shape expected_shape(SiteKind kind, const ModelDims& dims, const TraceExtents& extents, bool between) {
  const bool of_keys = between && (kind == SiteKind::k || kind == SiteKind::v);
  std::vector<Index> shape;
  std::string_view text = info(kind).shape;
  while (!text.empty()) {
    const auto begin = text.find_first_not_of("(), ");
    if (begin == std::string_view::npos) break;
    const auto end = text.find_first_of("(), ", begin);
    const std::string_view axis = text.substr(begin, end - begin);
    shape.push_back(axis != "d_model"                    ? extent(axis, dims, extents)
                    : of_embeddings(kind)                ? dims.embed_width()
                    : kind == SiteKind::final_normalized ? dims.out_width()
                                                         : dims.d_model);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end);
  }
  if (of_keys) shape.front() = extents.n_key;
  return Shape(std::span<const Index>(shape));
}

void check_shape(Site site, const Shape& shape, const Trace& trace, const TraceExtents& extents,
                 const std::string& where) {
  const ModelDims& dims = trace.model.dims;
  const Shape expected =
      expected_shape(site.kind, site.layer < 0 ? dims : dims.of_layer(site.layer), extents, trace.between_texts());
  Shape last_only = expected;  // logits may be those of the last position alone
  if (site.kind == SiteKind::logits) last_only[0] = 1;
  if (shape != expected && shape != last_only)
    throw Error(fmt::format("{}: tensor {}", where, name(site)),
                fmt::format("shape {} {}", expected.str(), info(site.kind).shape), shape.str());
}

/// Keys are the cached tokens and then those of this pass, and each has its token.
void check_extents(const TraceExtents& e, const Trace& trace, const std::string& where) {
  const std::size_t tokens = trace.tokens.size();
  if (trace.between_texts()) {
    if (e.offset != 0 || e.n_query != static_cast<Index>(trace.query_tokens.size()) ||
        e.n_key != static_cast<Index>(tokens) || tokens == 0)
      throw Error(where, "as many queries as query tokens, and as many keys as tokens",
                  fmt::format("{} queries after {}, {} query tokens; {} keys, {} tokens", e.n_query, e.offset,
                              trace.query_tokens.size(), e.n_key, tokens));
    return;
  }
  if (e.n_query < 1 || e.offset + e.n_query != e.n_key || static_cast<Index>(tokens) != e.n_key)
    throw Error(
        where, "at least one query, and as many tokens and keys as cached tokens and queries together",
        fmt::format("{} queries after {} cached tokens, {} keys, {} tokens", e.n_query, e.offset, e.n_key, tokens));
}

/// Maps of one layer, heads in order.
using LayerMaps = std::vector<const AttentionMap*>;

/// Maps by layer; Error unless every layer has all heads and all maps the same extents.
std::map<int, LayerMaps> maps_by_layer(const Trace& trace, const TraceExtents& extents) {
  std::map<int, LayerMaps> layers;
  for (const AttentionMap& map : trace.maps) {
    LayerMaps& layer = layers[map.layer()];
    if (map.head() != static_cast<int>(layer.size()) || map.n_query() != extents.n_query ||
        map.n_key() != extents.n_key || map.place().offset != extents.offset)
      throw Error("trace to write",
                  fmt::format("head {}.{} of {} × {} after {} cached tokens", map.layer(), layer.size(),
                              extents.n_query, extents.n_key, extents.offset),
                  fmt::format("head {}.{} of {} × {} after {}", map.layer(), map.head(), map.n_query(), map.n_key(),
                              map.place().offset));
    layer.push_back(&map);
  }
  for (const auto& [layer, maps] : layers)
    if (const int heads = trace.model.dims.heads_of(layer); static_cast<int>(maps.size()) != heads)
      throw Error("trace to write", fmt::format("{} maps in layer {}", heads, layer), fmt::format("{}", maps.size()));
  return layers;
}

void write_maps(const LayerMaps& maps, std::ostream& out) {
  for (const AttentionMap* map : maps) {
    const Index band = std::max<Index>(band_cells / std::max<Index>(map->n_key(), 1), 1);
    for (Index row = 0; row < map->n_query() && out; row += band) {
      const Tensor tile = map->tile({row, std::min(map->n_query(), row + band)}, {0, map->n_key()});
      out.write(reinterpret_cast<const char*>(tile.data()), static_cast<std::streamsize>(tile.bytes()));
    }
  }
}

/// Adds every recorded tensor of `kind`; how many there were.
int add_sites(SafetensorsWriter& writer, const Trace& trace, SiteKind kind, const TraceExtents& extents,
              const std::string& where) {
  int count = 0;
  const auto add = [&](Site site, const Tensor& tensor) {
    check_shape(site, tensor.shape(), trace, extents, where);
    writer.add(name(site, trace.model.stack, extents.names), tensor);
    ++count;
  };
  if (kind == SiteKind::logits && trace.logits.defined()) {
    add({SiteKind::logits}, trace.logits);
    return count;
  }
  for (const auto& [site, tensor] : trace.sites)
    if (site.kind == kind) add(site, tensor);
  return count;
}

std::string recorded(const Trace& trace) {
  std::set<std::string> kinds;
  if (!trace.maps.empty()) kinds.insert(std::string(info(SiteKind::pattern).pattern));
  if (trace.logits.defined()) kinds.insert(std::string(info(SiteKind::logits).pattern));
  for (const auto& [site, tensor] : trace.sites) kinds.insert(std::string(info(site.kind).pattern));
  return kinds.empty() ? "nothing was recorded" : fmt::format("recorded were {}", fmt::join(kinds, ", "));
}

void read_ids(const SafetensorsFile& file, const char* name, std::vector<Token>& tokens, const std::string& where) {
  const TensorEntry& entry = file.entry(name);
  const std::string at = where + ": tensor " + name;
  if (entry.dtype != DType::i32 || entry.shape.size() != 1)
    throw Error(at, "I32 with one axis", fmt::format("{} of shape {}", dtype_name(entry.dtype), entry.shape));
  const std::vector<std::int32_t> ids = entry.items<std::int32_t>();
  if (ids.size() != tokens.size())
    throw Error(at, fmt::format("{} ids, as many as tokens are described", tokens.size()),
                fmt::format("{}", ids.size()));
  for (std::size_t i = 0; i < ids.size(); ++i) tokens[i].id = ids[i];
}

void add_ids(SafetensorsWriter& writer, const char* name, const std::vector<Token>& tokens) {
  std::vector<std::int32_t> ids;
  for (const Token& token : tokens) ids.push_back(token.id);
  writer.add(name, DType::i32, {static_cast<Index>(ids.size())}, [ids](std::ostream& out) {
    out.write(reinterpret_cast<const char*>(ids.data()),
              static_cast<std::streamsize>(ids.size() * sizeof(std::int32_t)));
  });
}

/// The grid is in the description already; here are its pixels.
void read_image(const SafetensorsFile& file, const TraceExtents& extents, Trace& trace, const std::string& where) {
  if (!extents.grid) return;
  auto picture = std::make_shared<PatchPicture>(*extents.grid);
  if (picture->keys() != extents.n_key)
    throw Error(where + ": description.grid",
                fmt::format("as many patches and leading tokens as keys, {}", extents.n_key),
                fmt::format("{} × {} after {}", picture->rows, picture->columns, picture->leading));
  if (file.contains(image_name)) {
    const TensorEntry& entry = file.entry(image_name);
    if (entry.dtype != DType::u8 || entry.shape.size() != 3 || entry.shape[2] != 3 || entry.size == 0)
      throw Error(where + ": tensor " + image_name, "U8 of shape [height, width, 3]",
                  fmt::format("{} of shape {}", dtype_name(entry.dtype), entry.shape));
    picture->height = entry.shape[0];
    picture->width = entry.shape[1];
    picture->rgb = entry.items<std::uint8_t>();
  }
  trace.picture = std::move(picture);
}

/// Likewise the spectrogram of a sound.
void read_sound(const SafetensorsFile& file, const TraceExtents& extents, Trace& trace, const std::string& where) {
  if (!extents.sound) return;
  auto sound = std::make_shared<SoundFrames>(*extents.sound);
  if (sound->keys != extents.n_key)
    throw Error(where + ": description.sound", fmt::format("as many keys as there are, {}", extents.n_key),
                std::to_string(sound->keys));
  const std::string at = where + ": tensor " + log_mel_name;
  sound->log_mel = to_float(file.entry(log_mel_name));
  if (sound->log_mel.rank() != 2 || sound->log_mel.dim(1) < 1 || sound->log_mel.dim(0) < sound->keys)
    throw Error(at, fmt::format("[frames, mels], at least a frame for each of {} keys", sound->keys),
                sound->log_mel.shape().str());
  require_finite(sound->log_mel, at);
  trace.patches = sound->log_mel;
  trace.sound = std::move(sound);
}

/// Gives a head the rule that the file states, checked against its weights (query, key).
struct Rules {
  const TraceExtents& extents;
  const RuleParser& parse;
  bool all_causal;
  std::string where;

  std::shared_ptr<const AttentionRule> operator()(int layer, int head, const Tensor& weights) const {
    const auto own = extents.head_rules.find({layer, head});
    const std::optional<std::string> stated =
        own != extents.head_rules.end() ? std::optional(own->second) : extents.rule;
    const auto rule = stated ? parsed(*stated) : nullptr;
    if (!rule) return all_causal ? causal_rule() : nullptr;
    if (*stated == full_rule()->describe() || (all_causal && *stated == causal_rule()->describe())) return rule;
    for (Index q = 0; q < weights.dim(0); ++q)
      for (Index k = 0; k < weights.dim(1); ++k)
        if (weights.at(q, k) != 0.0f && masked(*rule, extents.offset + q, k, extents.n_key)) {
          if (*stated == causal_rule()->describe())
            throw Error(where, "no weight on later keys, as its rule is causal", "weights above the diagonal");
          throw Error(fmt::format("{}: layer {} head {}", where, layer, head),
                      "no weight on keys that its rule, " + excerpt(*stated) + ", masks",
                      fmt::format("{} at query {}, key {}", weights.at(q, k), q, k));
        }
    return rule;
  }

  std::shared_ptr<const AttentionRule> parsed(const std::string& text) const {
    if (text == causal_rule()->describe()) return causal_rule();
    if (text == full_rule()->describe()) return full_rule();
    try {
      return parse ? parse(text) : nullptr;
    } catch (const Error&) {
      return nullptr;  // a rule that this program does not know: the weights are all there is
    }
  }
};

}  // namespace

void write_trace(const Trace& trace, const fs::path& path, const TraceFileOptions& options) {
  const std::string where = path.string();
  TraceExtents extents = extents_of(trace);
  extents.names = options.names;
  check_extents(extents, trace, "trace to write");

  SafetensorsWriter writer;
  writer.metadata("format", trace_format_name);
  writer.metadata("version", std::to_string(trace_format_version));
  writer.metadata(description_key, describe_trace(trace, extents));
  if (!options.recipe.empty()) writer.metadata(recipe_key, options.recipe);
  add_ids(writer, tokens_name, trace.tokens);
  if (trace.between_texts()) add_ids(writer, query_tokens_name, trace.query_tokens);
  if (trace.picture && !trace.picture->rgb.empty())
    writer.add(image_name, DType::u8, {trace.picture->height, trace.picture->width, 3},
               [picture = trace.picture](std::ostream& out) {
                 out.write(reinterpret_cast<const char*>(picture->rgb.data()),
                           static_cast<std::streamsize>(picture->rgb.size()));
               });
  if (trace.sound) writer.add(log_mel_name, trace.sound->log_mel);
  for (const SiteKind kind : options.sites) {
    int count = 0;
    if (kind == SiteKind::pattern && !trace.maps.empty()) {
      for (auto& [layer, maps] : maps_by_layer(trace, extents)) {
        writer.add(name({SiteKind::pattern, layer}, trace.model.stack, extents.names), DType::f32,
                   {static_cast<Index>(maps.size()), extents.n_query, extents.n_key},
                   [layer_maps = maps](std::ostream& out) { write_maps(layer_maps, out); });
        ++count;
      }
    } else {
      count = add_sites(writer, trace, kind, extents, where);
    }
    if (count == 0)
      throw Error(where, fmt::format("{} in the trace to write", info(kind).pattern), "none recorded", recorded(trace));
  }
  writer.write(path, options.progress);
}

namespace {
/// Captured elsewhere: no description, but attention by name.
bool is_attention(const SafetensorsFile& file) {
  return file.contains("attn") || file.contains(name({SiteKind::pattern, 0}));
}

std::shared_ptr<const Trace> read_trace(const SafetensorsFile& file, const std::string& description,
                                        const RuleParser& parse) {
  const std::string where = file.path().string();
  TraceExtents extents;
  auto trace = std::make_shared<Trace>(parse_trace_description(description, where + ": description", extents));
  const ModelDims& dims = trace->model.dims;
  check_extents(extents, *trace, where);
  read_ids(file, tokens_name, trace->tokens, where);
  if (trace->between_texts()) read_ids(file, query_tokens_name, trace->query_tokens, where);
  read_image(file, extents, *trace, where);
  read_sound(file, extents, *trace, where);

  std::map<int, Tensor> patterns;
  const bool between = trace->between_texts();
  bool causal = !between;
  std::size_t bytes = 0;
  for (const auto& [key, entry] : file.tensors()) {
    const auto site = parse_site(key, trace->model.stack, extents.names);
    if (!site) continue;  // `tokens`, and whatever a notebook added
    if (info(site->kind).per_layer && site->layer >= dims.layers)
      throw Error(where + ": tensor " + excerpt(key), fmt::format("layers below {}", dims.layers),
                  fmt::format("{}", site->layer));
    const Tensor tensor = to_float(entry);
    check_shape(*site, tensor.shape(), *trace, extents, where);
    bytes += tensor.bytes();
    if (site->kind == SiteKind::pattern) {
      require_finite(tensor, where + ": tensor " + excerpt(key));
      causal = causal && is_causal(tensor, extents.offset);
      patterns.emplace(site->layer, tensor);
    } else if (site->kind == SiteKind::logits) {
      trace->logits = tensor;
    } else {
      trace->sites.emplace(*site, tensor);
    }
  }
  if (!patterns.empty()) {
    double maps = 0;
    for (const auto& [layer, weights] : patterns) maps += dims.heads_of(layer);
    require_room(maps, extents.n_query, extents.n_key, available_memory(), where);
    for (const auto& [layer, weights] : patterns)
      if (const int keys = dims.widths_of(layer).kv_heads; dims.attends(layer) && keys > 0 && dims.heads % keys != 0)
        throw Error(where, fmt::format("as many query heads for each of {} key heads in layer {}", keys, layer),
                    fmt::format("{} heads", dims.heads));
    const Rules rules{extents, parse, causal, where};
    const TokenLinks links = TokenLinks::of(trace->tokens);
    for (const auto& [layer, weights] : patterns)
      append_maps(
          trace->maps, {.layer = layer, .offset = extents.offset, .kind = extents.kind, .between_texts = between},
          weights, dims, [&, at = layer](int head, const Tensor& one) { return rules(at, head, one); },
          between ? nullptr : &links,
          [&, at = layer](int head) {
            const auto own = extents.head_kinds.find({at, head});
            return own != extents.head_kinds.end() ? own->second : extents.kind;
          });
  }
  trace->plan.maps = patterns.empty() ? MapStorage::none : MapStorage::dense;
  trace->plan.bytes = bytes;
  return trace;
}

}  // namespace

std::shared_ptr<const Trace> open_trace_file(const fs::path& path, const RuleParser& parse) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  if (const auto said = file.metadata().find(description_key); said != file.metadata().end())
    return read_trace(file, said->second, parse);
  if (is_attention(file)) return open_attention(*safetensors_arrays(file));
  throw Error(file.path().string(), fmt::format("a trace ({}: a description in __metadata__)", trace_format_name),
              fmt::format("a safetensors file of {} tensors without one", file.tensors().size()),
              "is it a model? Traces are written by the command capture; captured attention is a tensor attn");
}

std::string recipe_of_trace(const fs::path& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const auto said = file.metadata().find(recipe_key);
  return said == file.metadata().end() ? "" : said->second;
}

std::shared_ptr<const Trace> open_trace(const fs::path& path, const RuleParser& parse) {
  const std::string extension = path.extension().string();
  if (extension == ".npz" || extension == ".npy") return open_attention(*numpy_arrays(path));
  return open_trace_file(path, parse);
}

bool may_be_trace(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".npz" || extension == ".npy" || extension == ".safetensors";
}

bool holds_trace(const fs::path& path) {
  if (!may_be_trace(path)) return false;
  if (path.extension() != ".safetensors") return true;
  try {
    const SafetensorsFile file = SafetensorsFile::open(path);
    return file.metadata().contains(description_key) || is_attention(file);
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace headscope
