#include "viz/scene/head_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/metrics/trace_difference.h"
#include "viz/scene/head_map_layout.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double largest_pair_cell = 30, between = 26;

/// A part of the difference in the cells of `like`: where several fall into one, the largest either way. Cells without
/// a partner count as masked: there is nothing to compare.
MapCells pooled_difference(const Tensor& all, const MapRegion& region, const MapCells& like) {
  MapCells out = like;
  out.values = Tensor::full({like.rows(), like.columns()}, std::numeric_limits<float>::quiet_NaN());
  for (Index q = 0; q < region.n_query; ++q)
    for (Index k = 0; k < region.n_key; ++k) {
      float& cell = out.values.ref(q / like.bin, k / like.bin);
      const float value = all.at(region.query + q, region.key + k);
      if (!std::isnan(value) && !(std::abs(value) <= std::abs(cell))) cell = value;
    }
  out.masked.resize(static_cast<std::size_t>(out.values.size()));
  for (Index i = 0; i < out.values.size(); ++i)
    if (std::isnan(out.values.data()[i])) nth(out.masked, i) = 1;
  return out;
}

/// The next round number, so that the ends of a scale can be read.
double round_above(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

struct Tile {
  const Trace* trace;
  const AttentionMap* map;
  MapRegion region;
  std::string id, title;
  MapCells cells = {};
  AxisPlan side = {}, top = {};
  double width(double cell) const { return cell * static_cast<double>(cells.columns()); }
  double height(double cell) const { return cell * static_cast<double>(cells.rows()); }
};
using Tiles = std::array<Tile, 3>;

/// What the three maps share, and the room of the labels.
struct Fit {
  double cell = 1;  ///< one size for all, so that the eye can go across
  Index most = 1;   ///< cells on a side
  double above = 0, overhang = 0;
  std::array<double, 3> side{};
};

void plan_axes(Tile& tile, double cell, std::optional<double> longest, const Style& style) {
  const Index first = tile.map->place().offset + tile.region.query, bin = tile.cells.bin;
  tile.side = plan_side_axis({*tile.trace, first, tile.region.n_query, bin, cell, {}, longest, true}, style);
  tile.top = plan_top_axis({*tile.trace, tile.region.key, tile.region.n_key, bin, cell, {}, longest}, style);
}

bool same_tokens(const Trace& a, const Trace& b) {
  return std::ranges::equal(a.tokens, b.tokens, {}, &Token::label, &Token::label);
}

/// Cells as large as the room allows. Labels take room from cells, and smaller cells have fewer labels: a few rounds
/// settle it. Room is kept for the labels of the whole, so that little moves when another part is shown.
Fit fit_to(Tiles& tiles, bool same, double width, double height, double longest, const Style& style) {
  Fit out;
  Index longest_side = 1;
  for (const Tile& tile : tiles) longest_side = std::max({longest_side, tile.region.n_query, tile.region.n_key});
  for (int round = 0; round < 8; ++round) {
    const double across = std::max(width - out.side[0] - out.side[1] - out.side[2] - 2 * between - out.overhang, 72.0);
    const double down = std::max(height - out.above, 24.0);
    out.most = static_cast<Index>(std::clamp(std::min(across / 3, down), 24.0, 2048.0));
    const Index bin = bins(longest_side, out.most);
    Index columns = 0, rows = 1;
    for (const Tile& tile : tiles) {
      columns += bins(tile.region.n_key, bin);
      rows = std::max(rows, bins(tile.region.n_query, bin));
    }
    const double before = out.cell;
    out.cell = std::min({across / static_cast<double>(columns), down / static_cast<double>(rows), largest_pair_cell});
    if (round > 0 && out.cell == before) break;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      Tile& tile = tiles[i];
      const Index offset = tile.map->place().offset;
      const AxisTokens side{*tile.trace, offset, tile.map->n_query(), bin, out.cell, {}, longest, true};
      const AxisTokens top{*tile.trace, 0, tile.map->n_key(), bin, out.cell, {}, longest};
      const AxisPlan down_plan = plan_side_axis(side, style), across_plan = plan_top_axis(top, style);
      if (i == 0 || !same) out.side[i] = std::max(out.side[i], std::ceil(full_depth(down_plan, side, style)));
      const double depth = std::ceil(full_depth(across_plan, top, style));
      out.above = std::max(out.above, depth);
      if (const double angle = -across_plan.degrees * std::numbers::pi / 180; angle > 0)
        out.overhang = std::max(out.overhang, std::ceil(depth / std::tan(angle)));
    }
  }
  return out;
}

}  // namespace

Scene head_pair_scene(const Trace& a, const Trace& b, const HeadPairOptions& options, const Style& style) {
  const Theme& theme = style.theme;
  const AttentionMap &left = map_of(a, options.head), &right = map_of(b, options.head);
  const MapRegion part_a = shown_region(options.region_a, left), part_b = shown_region(options.region_b, right);
  Tiles tiles{Tile{&a, &left, part_a, "a", printable(options.name_a)},
              Tile{&b, &right, part_b, "b", printable(options.name_b)},
              Tile{&a, &left, part_a, "difference", printable(options.name_b) + " − " + printable(options.name_a)}};
  const bool same = same_tokens(a, b);  // the same labels are written once
  const double edge = options.bare ? slim_margin : margin;
  const double line = std::round(18 * theme.text_scale);
  const double most_width = options.room ? std::clamp(options.room->width, 240.0, 8192.0) - 2 * edge : 0;

  // Two colour bars, the second below the difference, or where there is room for it.
  const auto bars = [&](Scene& into, const ColorBar& weights, const ColorBar& change, double first, double split,
                        double end, double y) {
    return std::max(add_color_bar(into, weights, first, y, std::max(split - first - between, 120.0), style),
                    add_color_bar(into, change, split, y, end - split, style));
  };
  ColorBar weights_bar, change_bar;
  weights_bar.colormap = change_bar.colormap = theme.diverging;
  weights_bar.masked = change_bar.masked = true;
  change_bar.masked_text = said("masked, or no partner");
  change_bar.missing_text = "";

  Fit shape;
  std::optional<double> longest;
  if (options.room) {
    longest =
        std::clamp(0.26 * std::min(most_width / 3, options.room->height), 36.0, max_label_width * theme.text_scale);
    Scene aside;
    const double split = most_width - bar_column * theme.text_scale;
    const double below = 10 + bars(aside, weights_bar, change_bar, 0, split, most_width, 0);
    shape = fit_to(tiles, same, most_width, options.room->height - 2 * edge - line - below, *longest, style);
  } else {
    shape.most = static_cast<Index>(std::clamp(options.plot, 48.0, 2048.0));
  }
  const auto cells_of = [&](const AttentionMap& map, const std::optional<MapRegion>& region) {
    return region ? map_cells(map, *region, shape.most) : map_cells(map, shape.most);
  };
  tiles[0].cells = cells_of(left, options.region_a);
  tiles[1].cells = cells_of(right, options.region_b);
  MapCells exact;
  const std::vector<int> queries = a.between_texts() && b.between_texts() ? align_queries(a, b) : std::vector<int>();
  exact.values = aligned_difference(left, right, options.partner, queries);
  tiles[2].cells = pooled_difference(exact.values, part_a, tiles[0].cells);
  // Colours of a part are those of the whole.
  std::array<MapCells, 2> both{tiles[0].cells, tiles[1].cells};
  if (options.region_a) both[0] = overview_cells(left, stored_overview_cells);
  if (options.region_b) both[1] = overview_cells(right, stored_overview_cells);
  const ColorNorm weights = norm_for(both, left.place().kind, options.scaling);
  const double largest =
      round_above(std::max({static_cast<double>(exact.highest()), -static_cast<double>(exact.lowest()), 0.01}));
  const ColorNorm change{Scale::linear, -largest, largest};

  if (!options.room) {
    shape.cell = largest_pair_cell;
    for (const Tile& tile : tiles) {
      const double fit = std::clamp(options.plot, 48.0, 2048.0) /
                         static_cast<double>(std::max(tile.cells.rows(), tile.cells.columns()));
      shape.cell = std::min(shape.cell, fit >= 8 ? std::floor(fit) : std::max(1.0, std::floor(4 * fit) / 4));
    }
  }
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    Tile& tile = tiles[i];
    plan_axes(tile, shape.cell, longest, style);
    shape.above = std::max(shape.above, tile.top.depth);
    if (i == 0 || !same) shape.side[i] = std::max(shape.side[i], tile.side.depth);
  }
  const double cell = shape.cell;

  Scene scene;
  scene.background = theme.background;
  scene.title =
      say("{} and {}: layer {} head {}", options.name_a, options.name_b, options.head.layer, options.head.head);
  double width = 0, x = edge;
  for (std::size_t i = 0; i < tiles.size(); ++i) width += (i > 0 ? between : 0) + shape.side[i] + tiles[i].width(cell);
  width = options.room ? most_width : std::max(width + tiles.back().top.overhang, narrowest * theme.text_scale);
  double y = edge;
  if (!options.bare)
    y = add_header(scene,
                   {head_title(options.head),
                    {},
                    options.name_a + ": " + describe_run(a) + "   " + options.name_b + ": " + describe_run(b),
                    options.facts},
                   edge, y, width, style) +
        12;
  Font name_font = theme.body();
  name_font.weight = 600;
  const double maps_y = std::round(y + line + shape.above);
  double bottom = maps_y;
  std::vector<double> starts;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const Tile& tile = tiles[i];
    const bool labelled = i == 0 || !same;
    x = std::round(x + (i > 0 ? between : 0) + shape.side[i]);
    starts.push_back(x);
    const Rect rect{x, maps_y, tile.width(cell), tile.height(cell)};
    Heatmap drawn = heatmap_of(tile.cells, rect, i < 2 ? weights : change, theme);
    drawn.first_row = tile.map->place().offset + tile.region.query;
    drawn.first_column = tile.region.key;
    const std::string what = i < 2 ? map_name(*tile.trace, tile.map->id())
                                   : say("{} of {} − the same of {}, paired tokens",
                                         map_name(*tile.trace, tile.map->id()), options.name_b, options.name_a);
    scene.add({std::move(drawn), "map." + tile.id, what});
    scene.add({Box{{rect.x - 0.5, rect.y - 0.5, rect.w + 1, rect.h + 1}, {0, 0, 0, 0}, theme.line, 1, 0}, "", ""});
    scene.add({Text{{x, y + line - 5},
                    elided(tile.title, name_font, std::max(tile.width(cell), 60.0), style.measure),
                    name_font,
                    theme.text,
                    Anchor::start,
                    0},
               "title." + tile.id, ""});
    const std::string maps = same ? "" : "map." + tile.id;  // of one text, the first map's labels are all maps'
    if (labelled) add_side_axis(scene, tile.side, x, maps_y, tile.id + ".query", theme.text, style, Side::left, maps);
    add_top_axis(scene, tile.top, x, maps_y, tile.id + ".key", theme.text, style, maps);
    x += tile.width(cell);
    bottom = std::max(bottom, rect.bottom());
  }
  scene.width = std::ceil(width) + 2 * edge;

  y = bottom + 10;
  weights_bar = {say("{}, one scale for both", describe_weights(left.place().kind, weights.scale)),
                 weights,
                 is_signed(weights) ? theme.diverging : theme.sequential,
                 std::max(both[0].highest(), both[1].highest()),
                 both[0].any_masked() || both[1].any_masked(),
                 false};
  change_bar = {say("weight in {} − in {}", tiles[1].title, tiles[0].title),
                change,
                theme.diverging,
                largest,
                true,
                false,
                said("masked, or no partner"),
                ""};
  const double bar_room = (options.room ? bar_column : 260) * theme.text_scale;
  const double split = options.room ? std::min(starts[2], edge + most_width - bar_room) : starts[2];
  const double end = std::max(scene.width - edge, split + bar_room);
  y = bars(scene, weights_bar, change_bar, starts[0], split, end, y);
  scene.description = fmt::format("{} · {} · {}", map_name(a, left.id()), a.source, b.source);
  if (const std::string note = pooling_note(tiles[0].cells); !note.empty()) scene.description += " · " + note;
  if (!options.bare) y = add_caption(scene, scene.description, edge, y + 8, width, style);
  scene.width = std::max(scene.width, end + edge);
  scene.height = std::ceil(y + edge);
  return scene;
}

}  // namespace headscope
