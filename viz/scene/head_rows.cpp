#include "viz/scene/head_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double largest_row = 18, layer_gap = 5;

/// One layer's rows, `bin` positions in a cell by their largest weight.
Tensor binned(const Tensor& rows, Index bin) {
  const Index columns = (rows.dim(1) + bin - 1) / bin;
  Tensor out = Tensor::zeros({rows.dim(0), columns});
  for (Index r = 0; r < rows.dim(0); ++r)
    for (Index k = 0; k < rows.dim(1); ++k) out.ref(r, k / bin) = std::max(out.at(r, k / bin), rows.at(r, k));
  return out;
}

}  // namespace

Scene head_rows_scene(const Trace& tokens, const Tensor& rows, const HeadRowsOptions& options, const Look& look) {
  const Theme& theme = look.theme;
  if (rows.rank() != 2 || options.heads < 1 || rows.dim(0) % options.heads != 0 || rows.dim(0) == 0)
    throw Error("rows of the heads", fmt::format("whole layers of {} heads", options.heads), rows.shape().str());
  if (options.scale == Scale::per_row)
    throw Error("rows of the heads", "one scale for all rows, linear or log", "a scale for each row");
  const auto layers = static_cast<int>(rows.dim(0) / options.heads);
  const Index positions = rows.dim(1);
  const Font number = theme.small_token();
  Font layer_font = theme.caption();
  layer_font.weight = 600;
  // Labels below lean to the left: the first of them reaches beyond the map.
  const double first_label = look.measure.width(token_label(tokens, 0), theme.small_token());
  const double left = std::ceil(std::max(look.measure.width(fmt::format("L{}", layers - 1), layer_font) +
                                             look.measure.width(std::to_string(options.heads - 1), number) + 16,
                                         std::min(0.64 * first_label, 64.0) * theme.text_scale));
  const double room = std::max(options.width - left - 4, 40.0);
  const Index bin = std::max<Index>(1, static_cast<Index>(std::ceil(static_cast<double>(positions) / room)));
  const Index columns = (positions + bin - 1) / bin;
  const double cell = std::clamp(std::floor(4 * room / static_cast<double>(columns)) / 4, 1.0, 44.0);
  const AxisPlan axis = plan_bottom_axis({tokens, 0, positions, bin, cell, positions - 1}, look);
  const double furniture = axis.depth + 52 * theme.text_scale;
  const double row_height =
      std::clamp(std::floor((options.height - furniture - layer_gap * layers) / static_cast<double>(rows.dim(0))), 2.0,
                 largest_row);

  std::vector<MapCells> cells;
  for (int layer = 0; layer < layers; ++layer) {
    MapCells strip;
    strip.bin = bin;
    strip.values = binned(rows.slice(0, Index{layer} * options.heads, Index{layer + 1} * options.heads), bin);
    strip.n_query = options.heads;
    strip.n_key = positions;
    cells.push_back(std::move(strip));
  }
  const Norm norm = norm_for(cells, MapKind::probability, {options.scale, {}, {}});

  Scene scene;
  scene.background = theme.background;
  scene.width = options.width;
  scene.title = "rows of all heads";
  double y = 1;
  const double width = cell * static_cast<double>(columns);
  float highest = 0;
  for (int layer = 0; layer < layers; ++layer) {
    const MapCells& strip = cells[static_cast<std::size_t>(layer)];
    const Rect rect{left, y, width, row_height * options.heads};
    highest = std::max(highest, strip.highest());
    Heatmap drawn = heatmap_of(strip, rect, norm, theme);
    drawn.row_bin = 1;  // a row is a head
    drawn.gap = row_height >= 8 && cell >= 8 ? 1 : 0;
    scene.add({std::move(drawn), fmt::format("rows.{}", layer),
               name(Site{SiteKind::pattern, layer}) + fmt::format("[head, {}, :]", positions - 1)});
    scene.add({Text{{0, rect.y + rect.h / 2 + half_capital(layer_font)},
                    fmt::format("L{}", layer),
                    layer_font,
                    theme.muted,
                    Anchor::start,
                    0},
               "", ""});
    for (int head = 0; head < options.heads; ++head)
      if (row_height >= number.size)
        scene.add({Text{{left - 6, rect.y + row_height * (head + 0.5) + half_capital(number)},
                        std::to_string(head),
                        number,
                        theme.faint,
                        Anchor::end,
                        0},
                   "", ""});
    if (options.selected && options.selected->first == layer)
      scene.add({Box{{rect.x - 1, rect.y + row_height * options.selected->second - 1, width + 2, row_height + 2},
                     {0, 0, 0, 0},
                     theme.accent,
                     1.5,
                     0},
                 "selected", ""});
    y = rect.bottom() + layer_gap;
  }
  add_bottom_axis(scene, axis, left, y - layer_gap + 2, "key", theme.accent, look);
  y += axis.depth + 4;
  const std::string pooled = bin > 1 ? fmt::format(", max-pooled {} → {}", positions, columns) : "";
  y = add_color_bar(
      scene,
      {describe_weights(MapKind::probability, norm.scale) + pooled, norm, theme.sequential, highest, false, false},
      left, y, std::max(options.width - left, 200.0), look);
  scene.description = fmt::format("row {} of every head's pattern", positions - 1) + pooled;
  scene.height = std::ceil(y + 2);
  return scene;
}

}  // namespace headscope
