#include "viz/scene/map_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/trace/hook_names.h"
#include "core/trace/site.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

// Going through this many weights of a factored map takes about a second; beyond, its stored overview answers.
constexpr Index weights_worth_computing = Index{1} << 24;

Index ceil_div(Index a, Index b) {
  return (a + b - 1) / b;
}

MapRegion whole(const AttentionMap& map) {
  return {0, map.n_query(), 0, map.n_key()};
}

std::vector<std::uint8_t> masked_bins(const AttentionMap& map, const MapRegion& region, Index bin) {
  const AttentionRule* rule = map.rule();
  if (!rule) return {};
  const Index rows = ceil_div(region.n_query, bin), columns = ceil_div(region.n_key, bin);
  std::vector<std::uint8_t> masked(static_cast<std::size_t>(rows * columns), 1);
  bool any = false;
  for (Index q = 0; q < region.n_query; ++q) {
    std::uint8_t* row = masked.data() + (q / bin) * columns;
    const KeyRange seen = rule->keys(map.place().offset + region.query + q, map.n_key());
    // From here on keys count from the region's first.
    const KeyRange range{std::max<Index>(seen.begin - region.key, 0), std::min(seen.end - region.key, region.n_key)};
    if (rule->plain()) {
      if (range.begin < range.end) std::fill(row + range.begin / bin, row + ceil_div(range.end, bin), std::uint8_t{0});
      continue;
    }
    for (Index c = range.begin / bin; c < columns && c * bin < range.end; ++c) {
      if (!row[c]) continue;
      const Index begin = std::max(range.begin, c * bin), end = std::min(range.end, (c + 1) * bin);
      for (Index k = begin; k < end && row[c]; ++k)
        if (!map.masked(region.query + q, region.key + k)) row[c] = 0;
    }
  }
  for (const std::uint8_t m : masked) any |= m != 0;
  return any ? masked : std::vector<std::uint8_t>{};
}

MapCells cells_of(const AttentionMap& map, const MapRegion& region, Index bin, Tensor values) {
  MapCells out{bin, std::move(values), masked_bins(map, region, bin), region.n_query, region.n_key};
  out.query = region.query;
  out.key = region.key;
  out.with_signs = map.stats().any_negative();
  return out;
}

template <class Visit>
void each_shown(const MapCells& cells, Visit visit) {
  for (Index r = 0; r < cells.rows(); ++r)
    for (Index c = 0; c < cells.columns(); ++c)
      if (cells.masked.empty() || !nth(cells.masked, r * cells.columns() + c)) visit(cells.values.at(r, c));
}

}  // namespace

MapCells overview_cells(const AttentionMap& map, Index max_cells) {
  const Overview overview = map.overview(max_cells);
  return cells_of(map, whole(map), overview.bin, overview.values);
}

bool MapCells::any_masked() const {
  return std::any_of(masked.begin(), masked.end(), [](std::uint8_t m) { return m != 0; });
}

bool MapCells::any_missing() const {
  bool any = false;
  each_shown(*this, [&](float v) { any |= std::isnan(v); });
  return any;
}

float MapCells::lowest() const {
  float low = std::numeric_limits<float>::infinity();
  each_shown(*this, [&](float v) { low = std::isfinite(v) ? std::min(low, v) : low; });
  return std::isfinite(low) ? low : 0;
}

float MapCells::highest() const {
  float high = -std::numeric_limits<float>::infinity();
  each_shown(*this, [&](float v) { high = std::isfinite(v) ? std::max(high, v) : high; });
  return std::isfinite(high) ? high : 0;
}

MapCells map_cells(const AttentionMap& map, Index max_cells) {
  const bool pools = std::max(map.n_query(), map.n_key()) > max_cells;
  if (pools && !map.is_dense() && map.n_query() * map.n_key() > weights_worth_computing)
    return overview_cells(map, max_cells);
  return map_cells(map, whole(map), max_cells);
}

MapCells map_cells(const AttentionMap& map, const MapRegion& region, Index max_cells) {
  const Index bin = std::max<Index>(1, ceil_div(std::max(region.n_query, region.n_key), std::max<Index>(1, max_cells)));
  return cells_of(
      map, region, bin,
      map.pooled({region.query, region.query + region.n_query}, {region.key, region.key + region.n_key}, bin));
}

MapCells map_cells(MapPyramid& pyramid, const MapRegion& region, Index max_cells, const std::function<bool()>& go_on,
                   ThreadPool* pool) {
  const AttentionMap& map = pyramid.map();
  const int level = pyramid.level_for(std::max(region.n_query, region.n_key), std::max<Index>(1, max_cells));
  const Index bin = MapPyramid::bin(level);
  const auto range = [&](Index first, Index count, Index cells) {
    const Index shown = ceil_div(count, bin), begin = std::clamp<Index>((first + bin / 2) / bin, 0, cells - shown);
    return KeyRange{begin, begin + shown};
  };
  const MapPyramid::Window window{level, range(region.query, region.n_query, pyramid.rows(level)),
                                  range(region.key, region.n_key, pyramid.columns(level))};
  const bool done = pyramid.refine(window, go_on, pool);
  MapRegion whole_bins{window.rows.begin * bin, 0, window.columns.begin * bin, 0};
  whole_bins.n_query = std::min(window.rows.end * bin, map.n_query()) - whole_bins.query;
  whole_bins.n_key = std::min(window.columns.end * bin, map.n_key()) - whole_bins.key;
  MapCells out = cells_of(map, whole_bins, bin, pyramid.read(window).values);
  out.unfinished = !done;
  return out;
}

ColorNorm norm_for(std::span<const MapCells> maps, MapKind kind, const Scaling& scaling) {
  double lowest = 0, highest = 0;
  // A difference has two signs even where nothing differs, or all of it one way.
  bool negative = kind == MapKind::difference;
  for (const MapCells& cells : maps) {
    negative |= cells.any_negative();
    lowest = std::min<double>(lowest, cells.lowest());
    highest = std::max<double>(highest, cells.highest());
  }
  if (negative && scaling.scale != Scale::linear)
    throw Error("colour scale", "weights that are not negative for a " + std::string(name(scaling.scale)) + " scale",
                lowest < 0 ? fmt::format("a weight of {:.4g}", lowest) : "some below 0", "use the linear scale");
  ColorNorm norm;
  norm.scale = scaling.scale;
  if (scaling.scale == Scale::per_row) return norm;
  const double largest = std::max(-lowest, highest);
  if (kind == MapKind::effective || kind == MapKind::difference || negative) norm.high = largest > 0 ? largest : 1;
  if (negative) norm.low = -norm.high;
  if (scaling.high) norm.high = *scaling.high;
  if (scaling.scale == Scale::log) norm.low = norm.high * 1e-4;
  if (scaling.high && negative && !scaling.low) norm.low = -norm.high;
  if (scaling.low) norm.low = *scaling.low;
  const bool usable = std::isfinite(norm.low) && std::isfinite(norm.high) && norm.low < norm.high &&
                      (norm.scale != Scale::log || norm.low > 0);
  if (!usable)
    throw Error("colour scale", norm.scale == Scale::log ? "0 < low < high" : "low < high",
                fmt::format("{:g} … {:g}", norm.low, norm.high));
  return norm;
}

Heatmap heatmap_of(const MapCells& cells, const Rect& rect, const ColorNorm& norm, const Theme& theme) {
  Heatmap map;
  map.rect = rect;
  map.values = cells.values;
  map.masked = cells.masked;
  map.colormap = is_signed(norm) ? theme.diverging : theme.sequential;
  map.norm = norm;
  map.row_bin = map.column_bin = static_cast<int>(cells.bin);
  if (norm.scale == Scale::per_row) map.row_high = row_maxima(cells.values, cells.masked);
  map.masked_color = theme.masked;
  map.missing_color = theme.missing;
  // Between large cells a line of ground helps the eye along rows and columns; small ones need every pixel.
  const double side =
      std::min(rect.w / static_cast<double>(cells.columns()), rect.h / static_cast<double>(cells.rows()));
  map.gap = side >= 16 ? 1 : 0;
  return map;
}

const char* pooled_how(bool signed_values) {
  return signed_values ? said("pooled by largest |weight|") : said("max-pooled");
}

std::string pooling_note(const MapCells& cells) {
  if (cells.bin == 1) return "";
  return fmt::format("{} {} × {} → {} × {}", pooled_how(cells.any_negative()), cells.n_query, cells.n_key, cells.rows(),
                     cells.columns());
}

namespace {

std::string label_in(const std::vector<Token>& tokens, Index position) {
  if (position < 0 || position >= static_cast<Index>(tokens.size())) return fmt::format("{}", position);
  const Token& token = nth(tokens, position);
  const std::string text = printable(token.label);
  return text.empty() ? fmt::format("#{}", token.id) : text;
}

std::string word_of(const std::string& label) {
  static constexpr std::string_view space = "␣";
  std::string_view word = label;
  while (word.starts_with(space)) word.remove_prefix(space.size());
  while (word.ends_with(space)) word.remove_suffix(space.size());
  return word.empty() ? label : std::string(word);
}

}  // namespace

std::string token_label(const Trace& trace, Index position) {
  return label_in(trace.tokens, position);
}

std::string query_label(const Trace& trace, Index position) {
  return label_in(trace.queries(), position);
}

std::string token_word(const Trace& trace, Index position) {
  return word_of(token_label(trace, position));
}

std::string query_word(const Trace& trace, Index position) {
  return word_of(query_label(trace, position));
}

namespace {

struct Pair {
  std::string from, to;
};

/// The two tokens of a cell, cut where one of them is a long word.
Pair pair_of(const Trace& trace, Index query, Index key) {
  const auto cut = [&](const std::string& whole) {
    const std::string begin = printable(whole, 48);
    return begin.size() < whole.size() ? begin + "…" : whole;
  };
  const bool itself = query == key && !trace.between_texts();
  return {cut(query_word(trace, query)), itself ? said("itself") : cut(token_word(trace, key))};
}

/// "0.99", "0.003", "under 0.001".
std::string two_digits(double value) {
  if (std::isnan(value)) return said("masked");
  if (value != 0 && std::abs(value) < 0.0005) return said("under 0.001");
  if (std::abs(value) < 0.005) return short_number(value, 1);
  return (value < 0 ? "−" : "") + fmt::format("{:.2f}", std::abs(value));
}

}  // namespace

std::string looks_at(const Trace& trace, Index query, Index key, double weight, std::optional<double> before) {
  const Pair pair = pair_of(trace, query, key);
  if (std::isnan(weight) && (!before || std::isnan(*before))) return say("{} cannot see {}", pair.from, pair.to);
  return say("{} looks at {}: {}{}", pair.from, pair.to, before ? two_digits(*before) + " → " : "", two_digits(weight));
}

std::string weight_says(const Trace& trace, MapKind kind, Index query, Index key, double weight) {
  if (kind != MapKind::difference || std::isnan(weight)) return looks_at(trace, query, key, weight);
  const Pair pair = pair_of(trace, query, key);
  if (weight == 0) return say("{} looks at {} as much as before", pair.from, pair.to);
  return say("{} looks at {} {} {}", pair.from, pair.to, two_digits(std::abs(weight)),
             weight > 0 ? said("more") : said("less"));
}

std::string map_name(const Trace& trace, HeadId head) {
  const Site site{SiteKind::pattern, head.layer};
  return fmt::format("{}[{}]", name(site, trace.model.stack, HookNames::transformer_lens), head.head);
}

const AttentionMap& map_of(const Trace& trace, HeadId head) {
  if (trace.maps.empty())
    throw Error("picture", "a trace with attention maps", "none", "run it again with maps recorded");
  return trace.map(head);
}

}  // namespace headscope
