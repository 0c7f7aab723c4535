// Attention that another program captured, as a trace.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>
#include <map>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/memory.h"
#include "core/base/utf8.h"
#include "core/io/imported_maps.h"
#include "core/io/npz.h"
#include "core/io/trace_file.h"

namespace headscope {

namespace {

constexpr double row_sum_tolerance = 1e-3;

/// `attn`, or the only array of the file, as (layer, head, query, key).
Tensor read_attention(const NpzFile& file) {
  const std::string array_name = !file.contains("attn") && file.names().size() == 1 ? file.names().front() : "attn";
  const NpyArray array = file.array(array_name);
  const auto& shape = array.shape;
  const std::size_t rank = shape.size();
  const bool square = rank >= 2 && shape[rank - 1] == shape[rank - 2];
  constexpr Index most = 1024;  // layers, and heads in one: no model has more
  if ((rank != 3 && rank != 4) || !square || array.elements() == 0)
    throw Error(array.where, "a shape [layer, head, T, T] or [head, T, T] with nothing empty", fmt::format("{}", shape),
                rank == 5 ? "take one text of the batch: attn[:, 0]" : "");
  if (shape[0] > most || shape[rank - 3] > most)
    throw Error(array.where, fmt::format("at most {} layers and {} heads", most, most), fmt::format("{}", shape));
  const double maps = static_cast<double>(shape[rank - 3]) * (rank == 4 ? static_cast<double>(shape[0]) : 1);
  require_room(maps, shape[rank - 1], shape[rank - 1], available_memory(), array.where);
  const Tensor weights = array.tensor();
  return rank == 4 ? weights : weights.reshape({1, shape[0], shape[1], shape[2]});
}

std::vector<Token> read_tokens(const NpzFile& file, Index count) {
  std::vector<Token> tokens(static_cast<std::size_t>(count));
  const auto check = [&](const std::string& array_name, std::size_t found) {
    if (found != tokens.size())
      throw Error(file.path().string() + ": array " + array_name,
                  fmt::format("{} tokens, as many as attn has rows", count), fmt::format("{}", found));
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i].id = static_cast<std::int32_t>(i);
    tokens[i].label = std::to_string(i);
  }
  if (file.contains("tokens")) {
    const NpyArray array = file.array("tokens");
    const std::vector<std::string> texts = array.strings();
    check("tokens", texts.size());
    std::map<std::string, std::int32_t> numbers;  // equal texts are equal tokens
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i].id = numbers.emplace(texts[i], static_cast<std::int32_t>(numbers.size())).first->second;
      tokens[i].bytes = texts[i];
      tokens[i].label = visible_label(texts[i]);
    }
  }
  if (file.contains("ids")) {
    const std::vector<std::int64_t> ids = file.integers("ids");
    check("ids", ids.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (ids[i] < 0 || ids[i] > std::numeric_limits<std::int32_t>::max())
        throw Error(file.path().string() + ": array ids", "ids from 0 to 2147483647",
                    fmt::format("{} at {}", ids[i], i));
      tokens[i].id = static_cast<std::int32_t>(ids[i]);
      if (!file.contains("tokens")) tokens[i].label = fmt::format("#{}", ids[i]);
    }
  }
  return tokens;
}

}  // namespace

std::shared_ptr<const Trace> open_attention_npz(const std::filesystem::path& path) {
  const NpzFile file = NpzFile::open(path);
  const Tensor attention = read_attention(file);
  const std::string where = path.string() + ": attn";

  auto trace = std::make_shared<Trace>();
  trace->tokens = read_tokens(file, attention.dim(3));
  ModelDims& dims = trace->model.dims;
  dims.layers = static_cast<int>(attention.dim(0));
  dims.heads = dims.kv_heads = static_cast<int>(attention.dim(1));
  trace->model.name = excerpt(path.stem().string());
  trace->model.family = "imported";
  trace->source = "imported from " + excerpt(path.filename().string());

  bool causal = true, probability = true;
  for (Index layer = 0; layer < attention.dim(0); ++layer) {
    const Tensor weights = attention.select(0, layer);
    require_finite(weights, fmt::format("{}, layer {}", where, layer));
    causal = causal && is_causal(weights, 0);
    probability = probability && is_probability(weights, row_sum_tolerance);
  }
  const TokenLinks links = TokenLinks::of(trace->ids());
  const MapKind kind = probability ? MapKind::probability : MapKind::effective;
  for (int layer = 0; layer < dims.layers; ++layer)
    append_maps(
        trace->maps, {.layer = layer, .kind = kind}, attention.select(0, layer), dims.kv_heads,
        [&](int, const Tensor&) { return causal ? causal_rule() : nullptr; }, links);
  trace->plan = {MapStorage::dense, attention.bytes(), fmt::format("{} maps dense, imported", trace->maps.size())};
  return trace;
}

}  // namespace headscope
