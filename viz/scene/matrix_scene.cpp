#include "viz/scene/matrix_scene.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/nth.h"

#include "core/base/words.h"
#include "viz/scene/cell_text.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double gap_to_labels = 6, lowest_row = 3;

/// `bin` × `bin` numbers in one cell: the largest magnitude, so that no bright cell disappears; pending where all are.
void pool(const Matrix& matrix, Index bin, Heatmap& map) {
  const Index rows = matrix.values.dim(0), columns = matrix.values.dim(1);
  const Index h = (rows + bin - 1) / bin, w = (columns + bin - 1) / bin;
  map.values = Tensor::full({h, w}, std::numeric_limits<float>::quiet_NaN());
  map.masked.assign(matrix.pending.empty() ? 0 : static_cast<std::size_t>(h * w), 1);
  map.row_bin = map.column_bin = bin;
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < columns; ++c) {
      if (!matrix.pending.empty()) {
        if (nth(matrix.pending, r * columns + c)) continue;
        nth(map.masked, r / bin * w + c / bin) = 0;
      }
      const float value = matrix.values.at(r, c);
      float& cell = map.values.ref(r / bin, c / bin);
      if (!std::isnan(value) && (std::isnan(cell) || std::abs(value) > std::abs(cell))) cell = value;
    }
}

/// "0.0214" → ".021": the colour bar says the unit, the cell has little room.
std::string cell_text(double value, int digits) {
  std::string text = short_number(std::abs(value), digits);
  if (text.starts_with("0.")) text.erase(0, 1);
  return (value < 0 && text != "0" ? "−" : "") + text;
}

void add_numbers(Scene& scene, const Heatmap& map, int digits, double smallest, const Style& style) {
  Font font = style.theme.small_token();
  const Rect first = map.cell(0, 0);
  if (first.h - map.gap < font.size + 3) return;
  for (Index r = 0; r < map.rows(); ++r)
    for (Index c = 0; c < map.columns(); ++c) {
      const double value = map.values.at(r, c);
      if (map.is_masked(r, c) || !std::isfinite(value)) continue;
      // What is far below the scale is told by its colour: nothing.
      if (std::abs(value) < smallest) continue;
      const std::string text = cell_text(value, digits);
      if (style.measure.width(text, font) <= first.w - map.gap - 4)
        add_cell_text(scene, map, {r, c}, text, font, style);
    }
}

/// Words in the cells; one that is too long is cut.
void add_texts(Scene& scene, const Heatmap& map, const std::vector<std::string>& texts, const Style& style) {
  const Font font = style.theme.small_token();
  const Rect first = map.cell(0, 0);
  if (first.h - map.gap < font.size + 3 || first.w - map.gap < 2 * font.size) return;
  for (Index r = 0; r < map.rows(); ++r)
    for (Index c = 0; c < map.columns(); ++c) {
      const std::string text =
          elided(printable(nth(texts, r * map.columns() + c)), font, first.w - map.gap - 4, style.measure);
      if (!text.empty() && !map.is_masked(r, c)) add_cell_text(scene, map, {r, c}, text, font, style);
    }
}

}  // namespace

Scene matrix_scene(const Matrix& matrix, const Style& style) {
  const Theme& theme = style.theme;
  const Index n_rows = matrix.values.dim(0), n_columns = matrix.values.dim(1);
  const Font label = theme.small_token();
  Font title = theme.caption();
  title.weight = 600;
  Scene scene;
  scene.background = theme.background;
  scene.title = matrix.unit;
  scene.description = matrix.provenance;

  double left = std::max(style.measure.width(matrix.row_title, title), style.measure.width(matrix.column_title, title));
  for (const std::string& text : matrix.rows) left = std::max(left, style.measure.width(printable(text), label));
  left = std::ceil(left + gap_to_labels + 3);
  const double bar = std::round(15 * theme.text_scale) * 2 + 32;

  const double line = std::round(14 * theme.text_scale);
  double w = 0, h = 0;
  std::optional<AxisPlan> tokens;
  double above = 0;
  const auto plan = [&](Index bin, double cell) {
    if (matrix.tokens) tokens = plan_top_axis({*matrix.tokens, 0, n_columns, bin, cell, std::nullopt}, style);
    above = std::max(tokens ? tokens->depth : 0.0, 2 * line + gap_to_labels - 2);
  };
  Index bin = 1;
  if (matrix.square) {
    const auto count = static_cast<double>(std::max({n_rows, n_columns, Index{1}}));
    const auto side = [&] { return std::max(40.0, std::min(matrix.width - left, matrix.height - above - bar)); };
    plan(1, std::min((matrix.width - left) / count, matrix.largest_cell));  // labels need room before cells have it
    bin = static_cast<Index>(std::ceil(count / side()));
    w = h = std::min(side() / std::ceil(count / static_cast<double>(bin)), matrix.largest_cell);
    if (w > 3) w = h = std::floor(w);  // smaller ones may end inside a pixel: the whole is worth more
    plan(bin, w);
  } else {
    w = std::floor(std::clamp((matrix.width - left) / static_cast<double>(std::max<Index>(n_columns, 1)), 2.0,
                              matrix.largest_cell));
    plan(1, w);
    const double room = matrix.height - above - bar;
    h = std::floor(std::clamp(room / static_cast<double>(std::max<Index>(n_rows, 1)), lowest_row,
                              std::max(matrix.highest_row, lowest_row)));
  }
  const Index rows = (n_rows + bin - 1) / bin, columns = (n_columns + bin - 1) / bin;

  const CellRange range = range_of(matrix.values, matrix.pending);
  Heatmap map;
  map.rect = {left, above, w * static_cast<double>(columns), h * static_cast<double>(rows)};
  if (bin > 1) {
    pool(matrix, bin, map);
  } else {
    map.values = matrix.values;
    map.masked = matrix.pending;
  }
  map.norm = norm_of(range, matrix.low, matrix.high, matrix.diverging);
  map.colormap = is_signed(map.norm) ? theme.diverging : theme.sequential;
  map.masked_color = theme.masked;
  map.missing_color = theme.missing;
  map.gap = std::min(w, h) > 8 ? 1 : 0;
  scene.add({map, "matrix", ""});
  if (!matrix.texts.empty())
    add_texts(scene, map, matrix.texts, style);
  else if (matrix.digits > 0)
    add_numbers(scene, map, matrix.digits, 0.005 * map.norm.high, style);

  const auto corner = [&](const std::string& text, double y) {
    scene.add({Text{{left - gap_to_labels, y}, text, title, theme.muted, Anchor::end, 0}, "", ""});
  };
  corner(matrix.column_title, above - gap_to_labels - line);
  corner(matrix.row_title, above - gap_to_labels);

  double taken = above - gap_to_labels;  // the title of the rows stands there
  for (std::size_t r = 0; r < matrix.rows.size(); ++r) {
    if (static_cast<Index>(r) % bin) continue;
    const double y = above + h * (static_cast<double>(static_cast<Index>(r) / bin) + 0.5);
    if (y - taken < label.size + 1) continue;  // labels of low rows thin out
    taken = y;
    scene.add({Text{{left - gap_to_labels, y - map.gap / 2 + half_capital(label)},
                    printable(matrix.rows[r]),
                    label,
                    theme.muted,
                    Anchor::end,
                    0},
               fmt::format("row.{}", r), "", LabelOf{LabelOf::row, static_cast<Index>(r)}});
  }
  double overhang = 0;
  if (tokens) {
    add_top_axis(scene, *tokens, left, above, "key", theme.text, style);
    overhang = tokens->overhang;
  } else {
    double end = -1e9;
    for (std::size_t c = 0; c < matrix.columns.size(); ++c) {
      const std::string text = printable(matrix.columns[c]);
      const double x = left + w * (static_cast<double>(c) + 0.5), half = style.measure.width(text, label) / 2;
      if (x - half < end + 3) continue;
      end = x + half;
      scene.add({Text{{x - map.gap / 2, above - gap_to_labels}, text, label, theme.muted, Anchor::middle, 0},
                 fmt::format("column.{}", c), "", LabelOf{LabelOf::column, static_cast<Index>(c)}});
    }
  }
  ColorBar legend{matrix.unit + (bin > 1 ? say(" · the largest of {0} × {0} in a cell", bin) : ""),
                  map.norm,
                  map.colormap,
                  range.high,
                  range.masked,
                  range.missing};
  legend.masked_text = said(matrix.pending_text);
  legend.missing_text = matrix.missing_text;
  const double bottom = add_color_bar(scene, legend, left, above + map.rect.h + 10, matrix.width - left, style);
  scene.width = std::max(matrix.width, left + map.rect.w + overhang);
  scene.height = std::ceil(bottom + 2);
  return scene;
}

Matrix head_matrix(int layers, int heads, std::span<const double> value) {
  Matrix out;
  out.values = Tensor::full({layers, heads}, std::numeric_limits<float>::quiet_NaN());
  out.pending.assign(static_cast<std::size_t>(layers) * static_cast<std::size_t>(heads), 1);
  for (std::size_t i = 0; i < std::min(value.size(), out.pending.size()); ++i) {
    out.values.ref(static_cast<Index>(i) / heads, static_cast<Index>(i) % heads) = static_cast<float>(value[i]);
    out.pending[i] = 0;
  }
  if (value.size() >= out.pending.size()) out.pending.clear();
  for (int layer = 0; layer < layers; ++layer) out.rows.push_back(std::to_string(layer));
  for (int head = 0; head < heads; ++head) out.columns.push_back(std::to_string(head));
  out.row_title = said("layer ↓");
  out.column_title = said("head →");
  return out;
}

Matrix head_matrix(const ModelDims& dims, std::span<const double> value) {
  const int columns = dims.most_heads();
  Matrix out = head_matrix(dims.layers, columns, {});
  std::size_t next = 0;
  bool any_without = false;
  for (int layer = 0; layer < dims.layers; ++layer)
    for (int head = 0; head < columns; ++head) {
      if (!dims.has_head(layer, head) || next == value.size()) continue;
      const double number = value[next++];
      const bool without = std::isnan(number) && !dims.attends(layer);
      any_without |= without;
      nth(out.pending, layer * columns + head) = without;
      out.values.ref(layer, head) = static_cast<float>(number);
    }
  if (next < static_cast<std::size_t>(dims.all_heads())) return out;
  if (std::ranges::count(out.pending, 1) == 0) out.pending.clear();
  out.pending_text = any_without ? to_say("no attention here") : to_say("no such head");  // which holds for both
  return out;
}

}  // namespace headscope
