#include "viz/scene/matrix_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/nth.h"

#include "core/base/words.h"
#include "viz/scene/cell_text.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr Index most_cells = 512;

/// Every k-th row and column, so that no side has more than most_cells.
MapCells cells_of(const MatrixMap& matrix, Index& every) {
  const Index rows = matrix.values.dim(0), columns = matrix.values.dim(1);
  every = std::max<Index>(1, (std::max(rows, columns) + most_cells - 1) / most_cells);
  MapCells cells;
  cells.n_query = rows;
  cells.n_key = columns;
  const Index h = (rows + every - 1) / every, w = (columns + every - 1) / every;
  cells.values = Tensor::uninitialized({h, w});
  if (!matrix.masked.empty()) cells.masked.resize(static_cast<std::size_t>(h * w));
  for (Index r = 0; r < h; ++r)
    for (Index c = 0; c < w; ++c) {
      cells.values.ref(r, c) = matrix.values.at(r * every, c * every);
      if (!matrix.masked.empty()) nth(cells.masked, r * w + c) = nth(matrix.masked, r * every * columns + c * every);
    }
  return cells;
}

ColorNorm norm_of(const MatrixMap& matrix, const MapCells& cells) {
  ColorNorm norm{Scale::linear, matrix.low.value_or(cells.lowest()), matrix.high.value_or(cells.highest())};
  if (matrix.sequential) {
    if (!(norm.high > norm.low)) norm.high = norm.low + 1;
    // Ends that can be read: the next round numbers outside.
    const double step = std::pow(10.0, std::floor(std::log10((norm.high - norm.low) / 4)));
    if (!matrix.low) norm.low = std::floor(norm.low / step + 1e-9) * step;
    if (!matrix.high) norm.high = std::ceil(norm.high / step - 1e-9) * step;
    return norm;
  }
  if (norm.low < 0 && !matrix.low && !matrix.high) {
    norm.high = std::max(norm.high, -norm.low);
    norm.low = -norm.high;
  } else if (!matrix.low) {
    norm.low = std::min(norm.low, 0.0);
  }
  if (!(norm.high > norm.low)) norm.high = norm.low + 1;
  return norm;
}

std::string label_of(const std::vector<std::string>& labels, Index i, Index first) {
  return labels.empty()                          ? std::to_string(first + i)
         : i < static_cast<Index>(labels.size()) ? printable(nth(labels, i))
                                                 : std::string();
}

}  // namespace

MatrixMap mask_map(Index tokens, std::vector<std::uint8_t> hidden) {
  MatrixMap matrix;
  matrix.values = Tensor::full({tokens, tokens}, 1.0f);
  matrix.masked = std::move(hidden);
  matrix.low = 0;
  matrix.high = 1.25;  // the shade of 1 is then not the map's loudest
  matrix.sequential = true;
  matrix.numbers = matrix.colour_bar = false;
  matrix.rows = said("query i");
  matrix.columns = said("key j");
  return matrix;
}

Scene matrix_map_scene(const MatrixMap& matrix, const Style& style) {
  const Theme& theme = style.theme;
  const Font label = theme.small_token(), caption = theme.caption();
  Font title = theme.body();
  title.weight = 600;
  const double line = std::round(15 * theme.text_scale);
  Index every = 1;
  const MapCells cells = cells_of(matrix, every);
  const ColorNorm norm = norm_of(matrix, cells);

  Scene scene;
  scene.background = theme.background;
  scene.title = matrix.title;
  scene.description = matrix.provenance;
  double top = 0;
  if (!matrix.title.empty()) {
    scene.add({Text{{0, line - 3},
                    elided(matrix.title, title, matrix.width, style.measure),
                    title,
                    theme.text,
                    Anchor::start,
                    0},
               "title", ""});
    top += line + 4;
  }
  double side = 0;
  for (Index r = 0; r < cells.rows(); ++r)
    side = std::max(side, style.measure.width(label_of(matrix.row_labels, r * every, matrix.first_row), label));
  side = std::min(side, 90 * theme.text_scale) + 6;
  const double head = line + (matrix.columns.empty() ? 0 : line);
  top += head;
  const double foot = matrix.colour_bar ? 3 * line + 18 : 4;
  const double room_w = std::max(20.0, matrix.width - side - 2), room_h = std::max(20.0, matrix.height - top - foot);
  double cell_w = room_w / static_cast<double>(cells.columns()), cell_h = room_h / static_cast<double>(cells.rows());
  if (matrix.square) cell_w = cell_h = std::min(cell_w, cell_h);
  // Whole pixels where cells are large enough that a fraction would show.
  if (cell_w > 3) cell_w = std::floor(cell_w);
  if (cell_h > 3) cell_h = std::floor(cell_h);
  const Rect rect{side, top, cell_w * static_cast<double>(cells.columns()), cell_h * static_cast<double>(cells.rows())};

  Heatmap map = heatmap_of(cells, rect, norm, theme);
  map.row_bin = map.column_bin = static_cast<int>(every);
  if (matrix.sequential) map.colormap = theme.sequential;
  scene.add({map, "map", matrix.provenance});
  // Labels: every so many rows and columns as have room.
  const Index row_every = round_every(cell_h, label.size + 2);
  for (Index r = 0; r < cells.rows(); r += row_every) {
    const double y = rect.y + cell_h * (static_cast<double>(r) + 0.5);
    scene.add({Text{{rect.x - 5, y + half_capital(label)},
                    elided(label_of(matrix.row_labels, r * every, matrix.first_row), label, side - 6, style.measure),
                    label,
                    theme.muted,
                    Anchor::end,
                    0},
               fmt::format("label.row.{}", r * every), "", LabelOf{LabelOf::row, r * every}});
  }
  // Words are as wide as they are: whichever has room. Numbers count up in steps of one size.
  const std::string last = label_of(matrix.column_labels, (cells.columns() - 1) * every, matrix.first_column);
  const Index column_every =
      matrix.column_labels.empty() ? round_every(cell_w, style.measure.width(last, label) + 5) : 1;
  double taken = -1e9;
  for (Index c = 0; c < cells.columns(); c += column_every) {
    const std::string text = label_of(matrix.column_labels, c * every, matrix.first_column);
    const double w = style.measure.width(text, label), x = rect.x + cell_w * (static_cast<double>(c) + 0.5);
    if (x - w / 2 < taken + 5 || x + w / 2 > rect.right() + 8) continue;
    taken = x + w / 2;
    scene.add({Text{{x, rect.y - 4}, text, label, theme.muted, Anchor::middle, 0},
               fmt::format("label.column.{}", c * every), "", LabelOf{LabelOf::column, c * every}});
  }
  if (!matrix.columns.empty())
    scene.add({Text{{rect.x, rect.y - line - 3},
                    elided(matrix.columns + (matrix.rows.empty() ? "" : " →   " + matrix.rows + " ↓"), caption,
                           matrix.width - rect.x, style.measure),
                    caption,
                    theme.faint,
                    Anchor::start,
                    0},
               "", ""});
  if (matrix.numbers && cell_w >= 30 * theme.text_scale && cell_h >= 14 * theme.text_scale)
    for (Index r = 0; r < cells.rows(); ++r)
      for (Index c = 0; c < cells.columns(); ++c) {
        const double value = static_cast<double>(cells.values.at(r, c));
        if (map.is_masked(r, c) || !std::isfinite(value)) continue;
        const std::string text = short_number(value, 3);
        if (style.measure.width(text, label) <= cell_w - 3) add_cell_text(scene, map, {r, c}, text, label, style);
      }
  if (matrix.marked && matrix.marked->row / every < cells.rows() && matrix.marked->column / every < cells.columns()) {
    const Rect at = map.cell(matrix.marked->row / every, matrix.marked->column / every);
    scene.add(
        {Box{{at.x - 1, at.y - 1, std::max(at.w, 4.0) + 2, std::max(at.h, 4.0) + 2}, {0, 0, 0, 0}, theme.accent, 2, 1},
         "marked", ""});
  }
  double bottom = rect.bottom() + 4;
  if (matrix.colour_bar)
    bottom =
        add_color_bar(scene,
                      {said(matrix.bar) + (every > 1 ? say(" · every {}th row and column", every) : ""), norm,
                       map.colormap, cells.highest(), cells.any_masked() && matrix.mask_legend, cells.any_missing()},
                      rect.x, rect.bottom() + 8, std::max(rect.w, std::min(matrix.width - side, 240.0)), style);
  scene.width = std::max(rect.right() + 8, std::min(matrix.width, side + 240));
  scene.height = std::ceil(bottom + 2);
  return scene;
}

}  // namespace headscope
