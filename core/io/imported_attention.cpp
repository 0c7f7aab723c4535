// Attention that another program captured, as a trace.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/memory.h"
#include "core/base/nth.h"
#include "core/base/utf8.h"
#include "core/io/capture_arrays.h"
#include "core/io/imported_maps.h"
#include "core/io/trace_file.h"

namespace headscope {

namespace {

constexpr double row_sum_tolerance = 1e-3;
constexpr std::int64_t most_pixels = std::int64_t{1} << 26;

/// Layers that were saved one by one under TransformerLens' names, from 0 on; 0 when there are none.
int layers_by_name(const CaptureArrays& file) {
  int layers = 0;
  while (file.contains(name({SiteKind::pattern, layers}))) ++layers;
  return layers;
}

/// Checks the shape and gives it four axes: (layer, head, query, key). A batch axis of 1 goes.
std::vector<std::int64_t> checked_shape(const NpyArray& array, int layers) {
  std::vector<std::int64_t> shape = array.shape;
  const std::string wanted = "a shape [layer, head, query, key] or [head, query, key] with nothing empty";
  const auto refuse = [&](const std::string& hint) {
    throw Error(array.where, wanted, fmt::format("{}", array.shape), hint);
  };
  const bool one_layer = layers > 0;  // an array for each
  const std::size_t batch = one_layer ? 0 : 1, with_batch = one_layer ? 4 : 5;
  if (shape.size() == with_batch) {
    if (shape[batch] != 1)
      throw Error(array.where, "one text: a batch axis of 1", fmt::format("{}, {} texts", array.shape, shape[batch]),
                  one_layer ? "take one text of the batch: attn[0]" : "take one text of the batch: attn[:, 0]");
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(batch));
  }
  if (shape.size() == 3) shape.insert(shape.begin(), 1);
  if (shape.size() != 4 || array.elements() == 0) refuse("");
  constexpr Index most = 1024;  // layers, and heads in one: no model has more
  const std::int64_t all_layers = one_layer ? layers : shape[0];
  if ((one_layer && shape[0] != 1) || shape[1] > most || all_layers > most)
    throw Error(array.where, fmt::format("at most {} layers and {} heads", most, most), fmt::format("{}", array.shape));
  require_room(static_cast<double>(all_layers) * static_cast<double>(shape[1]), shape[2], shape[3], available_memory(),
               array.where);
  return shape;
}

/// `attn`, the only array of the file that could be it, or layers by name, as (layer, head, query, key).
Tensor read_attention(const CaptureArrays& file) {
  const int layers = layers_by_name(file);
  if (layers == 0) {
    const std::vector<std::string> names = file.names();
    NpyArray array = file.array(!file.contains("attn") && names.size() == 1 ? names.front() : "attn");
    array.shape = checked_shape(array, 0);
    return array.tensor();
  }
  Tensor all;
  for (int layer = 0; layer < layers; ++layer) {
    NpyArray array = file.array(name({SiteKind::pattern, layer}));
    array.shape = checked_shape(array, layers);
    const Tensor one = array.tensor();
    if (layer == 0) all = Tensor::uninitialized({layers, one.dim(1), one.dim(2), one.dim(3)});
    if (one.size() * layers != all.size() || one.dim(1) != all.dim(1) || one.dim(2) != all.dim(2))
      throw Error(array.where, fmt::format("the shape of layer 0, {}", all.select(0, 0).shape().str()),
                  fmt::format("{}", array.shape));
    std::ranges::copy(one.values(), all.mutable_values().begin() + layer * one.size());
  }
  return all;
}

/// Tokens of one side; equal texts get equal ids, on both sides.
class TokenLists {
 public:
  explicit TokenLists(const CaptureArrays& file) : file_(file) {}

  bool has(const std::string& side) const { return file_.contains(side + "tokens") || file_.contains(side + "ids"); }
  /// How many the arrays of that side name.
  Index count(const std::string& side) const {
    return static_cast<Index>(file_.is_text(side + "tokens") ? file_.strings(side + "tokens").size()
                                                             : file_.array(ids_name(side)).integers().size());
  }
  /// `count` tokens by `side` + "tokens" and "ids", else numbered; `what` the attention has that many of.
  std::vector<Token> read(const std::string& side, Index count, const std::string& what) {
    std::vector<Token> tokens(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i].id = static_cast<std::int32_t>(i);
      tokens[i].label = std::to_string(i);
    }
    const auto check = [&](const std::string& array, std::size_t found) {
      if (found != tokens.size())
        throw Error(file_.path().string() + ": array " + array,
                    fmt::format("{} tokens, as many as attn has {}", count, what), fmt::format("{}", found),
                    side.empty() ? "tokens of another text than the queries' are key_tokens" : "");
    };
    const std::string texts_name = side + "tokens", ids_name = this->ids_name(side);
    const bool texts_known = file_.is_text(texts_name);
    if (texts_known) {
      const std::vector<std::string> texts = file_.strings(texts_name);
      check(texts_name, texts.size());
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        tokens[i].id = numbers_.emplace(texts[i], static_cast<std::int32_t>(numbers_.size())).first->second;
        tokens[i].bytes = texts[i];
        tokens[i].label = visible_label(texts[i]);
      }
    }
    if (file_.contains(ids_name)) {
      const std::vector<std::int64_t> ids = file_.array(ids_name).integers();
      check(ids_name, ids.size());
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (ids[i] < 0 || ids[i] > std::numeric_limits<std::int32_t>::max())
          throw Error(file_.path().string() + ": array " + ids_name, "ids from 0 to 2147483647",
                      fmt::format("{} at {}", ids[i], i));
        tokens[i].id = static_cast<std::int32_t>(ids[i]);
        if (!texts_known) tokens[i].label = fmt::format("#{}", ids[i]);
      }
    }
    return tokens;
  }

 private:
  /// Many save the numbers of tokens as `tokens`.
  std::string ids_name(const std::string& side) const {
    const bool numbers = file_.contains(side + "tokens") && !file_.is_text(side + "tokens");
    return side + (numbers && !file_.contains(side + "ids") ? "tokens" : "ids");
  }

  const CaptureArrays& file_;
  std::map<std::string, std::int32_t> numbers_;
};

/// Whether no query gives weight to keys from `from` on: caches are padded so (llama.cpp).
bool empty_from(const Tensor& attention, Index from) {
  const Index keys = attention.dim(3);
  const std::span<const float> all = attention.values();
  for (Index row = 0; row < attention.size() / keys; ++row)
    for (Index key = from; key < keys; ++key)
      if (all[static_cast<std::size_t>(row * keys + key)] != 0.0f) return false;
  return true;
}

/// The grid of patches and the picture under it; null without `grid`.
std::shared_ptr<const PatchPicture> read_picture(const CaptureArrays& file, Index keys) {
  if (!file.contains("grid")) {
    if (file.contains("image"))
      throw Error(file.path().string() + ": array image", "beside it the array grid: rows, columns and leading tokens",
                  "no grid", "grid = [14, 14, 1] for 14 × 14 patches after one CLS token");
    return nullptr;
  }
  const NpyArray grid = file.array("grid");
  const std::vector<std::int64_t> numbers = grid.integers();
  auto picture = std::make_shared<PatchPicture>();
  const auto small = [&](std::int64_t n, std::int64_t least) { return n >= least && n <= keys; };
  if ((numbers.size() != 2 && numbers.size() != 3) || !small(numbers[0], 1) || !small(numbers[1], 1) ||
      (numbers.size() == 3 && !small(numbers[2], 0)))
    throw Error(grid.where, fmt::format("rows, columns and, optionally, leading tokens of {} keys", keys),
                fmt::format("{}", numbers));
  picture->rows = numbers[0];
  picture->columns = numbers[1];
  picture->leading = numbers.size() == 3 ? numbers[2] : keys - numbers[0] * numbers[1];
  if (picture->leading < 0 || picture->keys() != keys)
    throw Error(grid.where, fmt::format("as many patches and leading tokens as attn has keys, {}", keys),
                numbers.size() == 3 ? fmt::format("{} × {} patches after {}", numbers[0], numbers[1], numbers[2])
                                    : fmt::format("{} × {} patches", numbers[0], numbers[1]));
  if (!file.contains("image")) return picture;
  NpyArray image = file.array("image");
  if (image.shape.size() == 4 && image.shape[0] == 1) image.shape.erase(image.shape.begin());
  const bool bytes = image.kind == NpyArray::Kind::unsigned_integer && image.item == 1;
  if (!bytes || image.shape.size() != 3 || image.shape[2] != 3 || image.elements() == 0)
    throw Error(image.where, "a picture of shape [height, width, 3] in uint8",
                fmt::format("shape {} of '{}'", image.shape, image.descr),
                bytes ? "channels last: image.transpose(1, 2, 0)" : "(255 * image).round().astype('uint8')");
  if (image.shape[0] * image.shape[1] > most_pixels)
    throw Error(image.where, fmt::format("at most {} pixels", most_pixels),
                fmt::format("{} × {}", image.shape[1], image.shape[0]), "save a smaller picture");
  picture->height = image.shape[0];
  picture->width = image.shape[1];
  picture->rgb.resize(image.data.size());
  std::ranges::transform(image.data, picture->rgb.begin(), [](std::byte b) { return static_cast<std::uint8_t>(b); });
  return picture;
}

/// Keys without texts of their own are called by their patch: "2,5" is row 2, column 5.
void name_patches(std::vector<Token>& keys, const PatchPicture& picture) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto patch = picture.patch_of(static_cast<Index>(i));
    keys[i].label =
        patch ? fmt::format("{},{}", *patch / picture.columns, *patch % picture.columns) : fmt::format("<{}>", i);
  }
}

/// The first text of an optional array, fit to be shown.
std::optional<std::string> said(const CaptureArrays& file, const std::string& name) {
  if (!file.contains(name)) return std::nullopt;
  const std::vector<std::string> texts = file.strings(name);
  return texts.empty() || texts.front().empty() ? std::nullopt : std::optional(excerpt(texts.front()));
}

}  // namespace

std::shared_ptr<const Trace> open_attention(const CaptureArrays& file) {
  Tensor attention = read_attention(file);
  const std::string where = file.path().string() + ": attn";
  const Index n_query = attention.dim(2);
  TokenLists lists(file);
  const bool two_lists = lists.has("query_") || lists.has("key_");
  const Index named = !two_lists && lists.has("") ? lists.count("") : -1;
  if (named >= n_query && named < attention.dim(3) && empty_from(attention, named))
    attention = attention.slice(3, 0, named).copy();
  const Index n_key = attention.dim(3);

  auto trace = std::make_shared<Trace>();
  AttentionMap::Place place;
  place.between_texts = two_lists || (n_query != n_key && named != n_key);
  if (two_lists) {
    const bool q = lists.has("query_"), k = lists.has("key_");
    trace->query_tokens = lists.read(q ? "query_" : "", n_query, "queries");
    trace->tokens = lists.read(k ? "key_" : "", n_key, "keys");
  } else if (place.between_texts && named >= 0) {
    lists.read("", n_query == named ? n_key : n_query, n_query == named ? "keys" : "queries");  // throws
  } else {
    trace->tokens = lists.read("", n_key, "keys");
    if (place.between_texts) trace->query_tokens = lists.read("", n_query, "queries");
    if (!place.between_texts && n_query < n_key) place.offset = n_key - n_query;
  }
  trace->picture = read_picture(file, n_key);
  if (trace->picture && !lists.has("key_") && (place.between_texts || !lists.has("")))
    name_patches(trace->tokens, *trace->picture);

  ModelDims& dims = trace->model.dims;
  dims.layers = static_cast<int>(attention.dim(0));
  dims.heads = dims.kv_heads = static_cast<int>(attention.dim(1));
  trace->model.name = said(file, "model").value_or(excerpt(file.path().stem().string()));
  trace->model.family = "imported";
  trace->source = "imported from " + excerpt(file.path().filename().string());
  if (const auto source = said(file, "source")) trace->source += ", " + *source;

  bool causal = !place.between_texts, probability = true;
  for (Index layer = 0; layer < attention.dim(0); ++layer) {
    const Tensor weights = attention.select(0, layer);
    require_finite(weights, fmt::format("{}, layer {}", where, layer));
    causal = causal && is_causal(weights, place.offset);
    probability = probability && is_probability(weights, row_sum_tolerance);
  }
  place.kind = probability ? MapKind::probability : MapKind::effective;
  const TokenLinks links = TokenLinks::of(trace->tokens);
  for (place.layer = 0; place.layer < dims.layers; ++place.layer)
    append_maps(
        trace->maps, place, attention.select(0, place.layer), dims,
        [&](int, const Tensor&) { return causal ? causal_rule() : nullptr; }, place.between_texts ? nullptr : &links);
  trace->plan = {MapStorage::dense, attention.bytes(), fmt::format("{} maps dense, imported", trace->maps.size())};
  return trace;
}

}  // namespace headscope
