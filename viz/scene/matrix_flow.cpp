#include "viz/scene/matrix_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "viz/scene/cell_text.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double gap = 30, line_gap = 22, narrowest_card = 132, largest_cell = 26, widest_vector = 14;

struct Card {
  double cell_w = 1, cell_h = 1, map_w = 0, map_h = 0, width = 0;
};

Card card_of(const FlowMatrix& m, const MatrixFlow& flow, const Style& style) {
  Card card;
  const auto rows = static_cast<double>(std::max<Index>(m.values.dim(0), 1));
  const auto columns = static_cast<double>(std::max<Index>(m.values.dim(1), 1));
  const auto fitted = [](double room, double count) {
    const double cell = std::min(room / count, largest_cell);
    // Whole pixels look even; where that would cost much of a small picture, quarters have to do.
    return cell >= 4 ? std::floor(cell) : cell >= 1 ? std::floor(4 * cell) / 4 : cell;
  };
  const double cell = fitted(flow.side, std::max(rows, columns));
  card.cell_w = card.cell_h = cell;
  // A vector is easier to see, and to hit, as a wider stripe; a wide matrix need not be a thin line.
  if (columns == 1) card.cell_w = std::max(cell, widest_vector);
  if (rows * cell < 40) card.cell_h = std::min(40 / rows, largest_cell);
  card.map_w = card.cell_w * columns;
  card.map_h = card.cell_h * rows;
  Font title = style.theme.body();
  title.weight = 600;
  const double words =
      style.measure.width(m.title, title) + 8 +
      style.measure.width(fmt::format("{}×{}", m.values.dim(0), m.values.dim(1)), style.theme.small_token());
  card.width = std::ceil(std::max({card.map_w, narrowest_card, std::min(words, 2 * narrowest_card)}));
  return card;
}

/// Draws one card from (x, y) downwards; returns its lower end.
double add_card(Scene& scene, const FlowMatrix& m, const Card& card, double x, double y, const Style& style) {
  const Theme& theme = style.theme;
  const double line = std::round(15 * theme.text_scale);
  Font title = theme.body();
  title.weight = 600;
  scene.add({Text{{x, y + line - 3}, m.title, title, theme.text, Anchor::start, 0}, "title." + m.id, m.formula,
             TitleOf{m.id}});
  const double after = x + style.measure.width(m.title, title) + 8;
  scene.add({Text{{after, y + line - 3},
                  fmt::format("{}×{}", m.values.dim(0), m.values.dim(1)),
                  theme.small_token(),
                  theme.faint,
                  Anchor::start,
                  0},
             "", ""});
  scene.add({Text{{x, y + 2 * line - 2},
                  elided(m.formula, theme.caption(), card.width, style.measure),
                  theme.caption(),
                  theme.muted,
                  Anchor::start,
                  0},
             "formula." + m.id, m.formula});
  if (m.folded) return y + 2 * line + 4;
  const CellRange range = range_of(m.values, m.masked);
  Heatmap map;
  map.rect = {x, y + 2 * line + 7, card.map_w, card.map_h};
  map.values = m.values;
  map.masked = m.masked;
  map.norm = norm_of(range, m.low, m.high);
  map.colormap = map.norm.low < 0 ? theme.diverging : theme.sequential;
  map.masked_color = theme.masked;
  map.missing_color = theme.missing;
  map.gap = std::min(card.cell_w, card.cell_h) >= 7 ? 1 : 0;
  const Rect rect = map.rect;
  const ColorNorm norm = map.norm;
  const Colormap* colors = map.colormap;
  scene.add({std::move(map), m.id, ""});
  // A frame, so that a matrix of zeros is still seen as one.
  scene.add({Box{rect, {0, 0, 0, 0}, with_opacity(theme.line, 0.7), 1, 0}, "", ""});
  return add_color_bar(scene, {m.unit, norm, colors, range.high, false, range.missing}, x, rect.bottom() + 9,
                       card.width, style);
}

}  // namespace

Scene matrix_flow_scene(const MatrixFlow& flow, const Style& style) {
  Scene scene;
  scene.background = style.theme.background;
  scene.width = flow.width;
  scene.title = "Steps";
  double x = 0, y = 0, bottom = 0;
  for (std::size_t i = 0; i < flow.matrices.size(); ++i) {
    const FlowMatrix& m = flow.matrices[i];
    const Card card = card_of(m, flow, style);
    if (x > 0 && (m.new_line || x + card.width > flow.width)) x = 0, y = bottom + line_gap;
    if (x > 0 && flow.arrows)
      scene.add({Text{{x - gap / 2, y + 2 * std::round(15 * style.theme.text_scale) + 24},
                      "→",
                      style.theme.title(),
                      style.theme.faint,
                      Anchor::middle,
                      0},
                 "", ""});
    bottom = std::max(bottom, add_card(scene, m, card, x, y, style));
    x += card.width + gap;
  }
  scene.height = std::ceil(bottom + 4);
  return scene;
}

}  // namespace headscope
