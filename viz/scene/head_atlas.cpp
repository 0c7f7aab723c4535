#include "viz/scene/head_atlas.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/kind_norms.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double smallest_thumb = 8;

/// Classes in the order in which they first appear.
double add_legend(Scene& scene, const std::vector<HeadMark>& marks, double y, double width, const Style& style) {
  const Font font = style.theme.caption();
  const double line = std::round(16 * style.theme.text_scale), swatch = 9;
  std::vector<std::string> seen;
  double x = 0;
  for (const HeadMark& mark : marks) {
    if (std::ranges::find(seen, mark.title) != seen.end()) continue;
    seen.push_back(mark.title);
    const std::string text = printable(mark.title);
    const double room = swatch + 5 + style.measure.width(text, font);
    if (x > 0 && x + room > width) x = 0, y += line;
    const double middle = y + line / 2;
    scene.add(
        {Box{{x + 0.75, middle - swatch / 2 + 0.75, swatch - 1.5, swatch - 1.5}, {0, 0, 0, 0}, mark.color, 1.5, 0}, "",
         ""});
    scene.add(
        {Text{{x + swatch + 5, middle + half_capital(font)}, text, font, style.theme.muted, Anchor::start, 0}, "", ""});
    x += room + 12;
  }
  return seen.empty() ? y : y + line;
}

}  // namespace

Scene head_atlas_scene(const Trace& trace, const HeadAtlasOptions& options, const Style& style) {
  if (trace.maps.empty())
    throw Error("atlas", "a trace with attention maps", "none", "run it again with maps recorded");
  const Theme& theme = style.theme;
  std::vector<int> order = options.order;
  const bool grid = order.empty();
  if (grid) {
    order.resize(trace.maps.size());
    std::iota(order.begin(), order.end(), 0);
  }
  int heads = 0, first_layer = trace.maps.front().layer(), layers = 0;
  for (const AttentionMap& map : trace.maps) {
    heads = std::max(heads, map.head() + 1);
    layers = std::max(layers, map.layer() - first_layer + 1);
  }
  const Font number = theme.small_token();
  const double left = grid ? std::ceil(style.measure.width(std::to_string(first_layer + layers - 1), number) + 6) : 0;
  // As many columns as heads; a sorted or filtered list fills rows of the same tiles. Many heads wrap rather than
  // vanish.
  const int columns = std::max(1, std::min(heads, static_cast<int>((options.width - left) / (smallest_thumb + 1))));
  const double pitch =
      std::clamp(std::floor((options.width - left) / columns), smallest_thumb + 1, options.largest_thumb + 3);
  const double gap = pitch > 24 ? 3 : pitch > 12 ? 2 : 1, side = pitch - gap;

  std::vector<MapCells> cells;
  for (const int index : order) cells.push_back(overview_cells(nth(trace.maps, index), static_cast<Index>(2 * side)));
  const bool tiles = !options.values.empty();
  std::vector<const AttentionMap*> shown;
  for (const int index : order) shown.push_back(&nth(trace.maps, index));
  const auto norms = tiles ? std::map<bool, LayerNorm>() : layer_norms(trace, shown, cells, options.scaling);
  const ColorNorm norm{Scale::linear, options.values_low, std::max(options.values_high, options.values_low + 1e-9)};

  Scene scene;
  scene.background = theme.background;
  scene.width = options.width;
  scene.title = say("{}: atlas of heads", trace.model.name);
  const int wraps = (heads + columns - 1) / columns;
  double bottom = 0;
  SceneSeries numbers{options.values_title + ", in the order shown", {}, {}, {}};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const AttentionMap& map = nth(trace.maps, order[i]);
    const int row = grid ? (map.layer() - first_layer) * wraps + map.head() / columns : static_cast<int>(i) / columns;
    const int column = grid ? map.head() % columns : static_cast<int>(i) % columns;
    const Rect rect{left + column * pitch + 1, row * pitch + 1, side, side};
    bottom = std::max(bottom, rect.bottom());
    const std::string id = fmt::format("head.{}.{}", map.layer(), map.head());
    const auto mark = std::ranges::find_if(options.classes, [&](const HeadMark& m) { return m.head == map.id(); });
    std::string tip = say("Layer {} Head {}", map.layer(), map.head());
    if (mark != options.classes.end()) tip += " · " + mark->title;
    const bool out = std::ranges::find(options.taken_out, map.id()) != options.taken_out.end();
    if (out) tip += said(" · taken out");
    if (tiles) {
      const double value = nth(options.values, order[i]);
      numbers.x.push_back(static_cast<double>(i));
      numbers.y.push_back(value);
      numbers.labels.push_back(to_string(map.id()));
      const Color fill = std::isnan(value) ? (options.quiet_missing ? theme.masked : theme.missing)
                                           : theme.sequential->at(norm(value));
      scene.add({Box{rect, fill, {0, 0, 0, 0}, 0, 2}, id,
                 tip + "\n" + options.values_title + " " +
                     (std::isnan(value) ? said("has no value here") : short_number(value)),
                 map.id()});
    } else {
      Heatmap drawn = heatmap_of(cells[i], rect, norms.at(attends(trace, map)).norm, theme);
      drawn.gap = 0;
      scene.add({std::move(drawn), id, tip + "\n" + map_name(trace, map.id()), map.id()});
    }
    if (mark != options.classes.end())
      scene.add({Box{{rect.x - 0.25, rect.y - 0.25, rect.w + 0.5, rect.h + 0.5},
                     {0, 0, 0, 0},
                     mark->color,
                     1.5,
                     tiles ? 2.0 : 0.0},
                 "", ""});
    if (out) {
      scene.add({Box{rect, with_opacity(theme.background, 0.55), {0, 0, 0, 0}, 0, 0}, "", ""});
      scene.add({Line{{{rect.x, rect.y}, {rect.right(), rect.bottom()}}, theme.key, 1.5}, "", ""});
      scene.add({Line{{{rect.right(), rect.y}, {rect.x, rect.bottom()}}, theme.key, 1.5}, "", ""});
    }
  }
  if (grid)
    for (int layer = 0; layer < layers; ++layer)
      scene.add({Text{{left - 5, layer * wraps * pitch + 1 + side / 2 + half_capital(number)},
                      std::to_string(first_layer + layer),
                      number,
                      theme.faint,
                      Anchor::end,
                      0},
                 "", ""});
  if (tiles) scene.series.push_back(std::move(numbers));
  const bool with_signs = std::ranges::any_of(cells, [](const MapCells& each) { return each.any_negative(); });
  scene.description = tiles ? options.values_title
                      : norms.size() > 1
                          ? say("attention maps, {}, one scale for all heads that attend and one for those of a state",
                                pooled_how(with_signs))
                          : say("attention maps, {}, one scale for all heads", pooled_how(with_signs));
  scene.height = std::ceil(add_legend(scene, options.classes, bottom + 6, options.width, style) + 1);
  return scene;
}

}  // namespace headscope
