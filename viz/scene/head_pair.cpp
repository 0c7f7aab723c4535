#include "viz/scene/head_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/metrics/trace_difference.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double largest_cell = 30, between = 26;

/// The difference in the cells of `like`: where several fall into one, the largest either way. Cells without a partner
/// count as masked: there is nothing to compare.
MapCells difference_cells(const AttentionMap& a, const AttentionMap& b, std::span<const int> partner,
                          const MapCells& like) {
  MapCells out = like;
  const Tensor all = aligned_difference(a, b, partner);
  out.values = Tensor::full({like.rows(), like.columns()}, std::numeric_limits<float>::quiet_NaN());
  for (Index q = 0; q < all.dim(0); ++q)
    for (Index k = 0; k < all.dim(1); ++k) {
      float& cell = out.values.ref(q / like.bin, k / like.bin);
      const float value = all.at(q, k);
      if (!std::isnan(value) && !(std::abs(value) <= std::abs(cell))) cell = value;
    }
  out.masked.resize(static_cast<std::size_t>(out.values.size()));
  for (Index i = 0; i < out.values.size(); ++i)
    if (std::isnan(out.values.data()[i])) out.masked[static_cast<std::size_t>(i)] = 1;
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
  MapCells cells;
  std::string id, title;
  AxisPlan side, top;
  double cell = 1;
  double width() const { return cell * static_cast<double>(cells.columns()); }
  double height() const { return cell * static_cast<double>(cells.rows()); }
};

bool same_tokens(const Trace& a, const Trace& b) {
  return std::ranges::equal(a.tokens, b.tokens, {}, &Token::label, &Token::label);
}

}  // namespace

Scene head_pair_scene(const Trace& a, const Trace& b, const HeadPairOptions& options, const Look& look) {
  const Theme& theme = look.theme;
  const double plot = std::clamp(options.plot, 48.0, 2048.0);
  std::vector<Tile> tiles(3);
  const AttentionMap &left = map_of(a, {options.layer, options.head}),
                     &right = map_of(b, {options.layer, options.head});
  tiles[0] = {&a, &left, map_cells(left, static_cast<Index>(plot)), "a", printable(options.name_a), {}, {}, 1};
  tiles[1] = {&b, &right, map_cells(right, static_cast<Index>(plot)), "b", printable(options.name_b), {}, {}, 1};
  tiles[2] = {&a,
              &left,
              difference_cells(left, right, options.partner, tiles[0].cells),
              "difference",
              printable(options.name_b) + " − " + printable(options.name_a),
              {},
              {},
              1};
  const std::vector<MapCells> both = {tiles[0].cells, tiles[1].cells};
  const Norm weights = norm_for(both, left.place().kind, options.scaling);
  const double largest = round_above(
      std::max({static_cast<double>(tiles[2].cells.highest()), -static_cast<double>(tiles[2].cells.lowest()), 0.01}));
  const Norm change{Scale::linear, -largest, largest};

  // One size of cell for all, so that the eye can go across; the same labels are written once.
  double cell = largest_cell;
  for (const Tile& tile : tiles) {
    const double fit = plot / static_cast<double>(std::max(tile.cells.rows(), tile.cells.columns()));
    cell = std::min(cell, fit >= 8 ? std::floor(fit) : std::max(1.0, std::floor(4 * fit) / 4));
  }
  const bool same = same_tokens(a, b);
  double above = 0, side_first = 0;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    Tile& tile = tiles[i];
    tile.cell = cell;
    const Index offset = tile.map->place().offset;
    tile.side = plan_side_axis({*tile.trace, offset, tile.map->n_query(), tile.cells.bin, cell, {}}, look);
    tile.top = plan_top_axis({*tile.trace, 0, tile.map->n_key(), tile.cells.bin, cell, {}}, look);
    above = std::max(above, tile.top.depth);
    if (i == 0) side_first = tile.side.depth;
  }

  Scene scene;
  scene.background = theme.background;
  scene.title = fmt::format("{} and {}: layer {} head {}", options.name_a, options.name_b, options.layer, options.head);
  const double edge = options.bare ? slim_margin : margin;
  double width = side_first, x = edge;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (i > 0) width += same ? between : between + tiles[i].side.depth;
    width += tiles[i].width();
  }
  width = std::max(width + tiles.back().top.overhang, narrowest * theme.text_scale);
  double y = edge;
  if (!options.bare)
    y = add_header(scene,
                   {fmt::format("Layer {} · Head {}", options.layer, options.head),
                    {},
                    options.name_a + ": " + describe_run(a) + "   " + options.name_b + ": " + describe_run(b),
                    options.facts},
                   edge, y, width, look) +
        12;
  Font name_font = theme.body();
  name_font.weight = 600;
  const double line = std::round(18 * theme.text_scale);
  const double maps_y = std::round(y + line + above);
  double bottom = maps_y;
  std::vector<double> starts;
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    const Tile& tile = tiles[i];
    const bool labelled = i == 0 || !same;
    x += i == 0 ? side_first : same ? between : between + tile.side.depth;
    x = std::round(x);
    starts.push_back(x);
    const Rect rect{x, maps_y, tile.width(), tile.height()};
    Heatmap drawn = heatmap_of(tile.cells, rect, i < 2 ? weights : change, theme);
    drawn.first_row = tile.map->place().offset;
    const std::string what = i < 2 ? map_name(*tile.map)
                                   : fmt::format("{} of {} − the same of {}, paired tokens", map_name(*tile.map),
                                                 options.name_b, options.name_a);
    scene.add({std::move(drawn), "map." + tile.id, what});
    scene.add({Box{{rect.x - 0.5, rect.y - 0.5, rect.w + 1, rect.h + 1}, {0, 0, 0, 0}, theme.line, 1, 0}, "", ""});
    scene.add({Text{{x, y + line - 5},
                    elided(tile.title, name_font, std::max(tile.width(), 60.0), look.measure),
                    name_font,
                    theme.text,
                    Anchor::start,
                    0},
               "title." + tile.id, ""});
    if (labelled) add_side_axis(scene, tile.side, x, maps_y, tile.id + ".query", theme.text, look);
    add_top_axis(scene, tile.top, x, maps_y, tile.id + ".key", theme.text, look);
    x += tile.width();
    bottom = std::max(bottom, rect.bottom());
  }
  scene.width = std::ceil(width) + 2 * edge;

  // Two colour bars: below the first map, and below the difference.
  y = bottom + 10;
  const double split = starts[2];
  const double first_end = add_color_bar(
      scene,
      {describe_weights(left.place().kind, weights.scale) + ", one scale for both", weights,
       is_signed(weights) ? theme.diverging : theme.sequential, std::max(both[0].highest(), both[1].highest()),
       both[0].any_masked() || both[1].any_masked(), false},
      starts[0], y, std::max(starts[2] - starts[0] - between, 120.0), look);
  ColorBar bar{"weight in " + tiles[1].title + " − in " + tiles[0].title,
               change,
               theme.diverging,
               largest,
               true,
               false,
               "masked, or no partner",
               ""};
  y = std::max(first_end, add_color_bar(scene, bar, split, y,
                                        std::max(scene.width - edge - split, 260.0 * theme.text_scale), look));
  scene.description = fmt::format("{} · {} · {}", map_name(left), a.source, b.source);
  if (const std::string note = pooling_note(tiles[0].cells); !note.empty()) scene.description += " · " + note;
  if (!options.bare) y = add_caption(scene, scene.description, edge, y + 8, width, look);
  scene.width = std::max(scene.width, split + 260 * theme.text_scale + edge);
  scene.height = std::ceil(y + edge);
  return scene;
}

}  // namespace headscope
