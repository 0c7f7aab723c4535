#include "viz/scene/matrix_flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/nth.h"

#include "core/base/words.h"
#include "viz/scene/cell_text.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double gap = 30, line_gap = 22, narrowest_card = 132, largest_flow_cell = 26, widest_vector = 14;
// A cell with a number in it: at least so large, and at most.
constexpr double number_cell = 26, widest_number_cell = 58, highest_number_cell = 30;
constexpr double label_gap = 5, longest_label = 62, longest_of_many = 48;
constexpr Index many_labels = 8;

struct Card {
  double left = 0, above = 0;  // room for labels
  double cell_w = 1, cell_h = 1, map_w = 0, map_h = 0, width = 0;
  int decimals = 0;
  bool numbers = false;
};

/// Room for the longest label: of many, one that is far longer than the others must not take the map's place.
double most_room(const std::vector<std::string>& labels, const Style& style) {
  return (static_cast<Index>(labels.size()) > many_labels ? longest_of_many : longest_label) * style.theme.text_scale;
}

/// Logical pixels of the widest.
double widest(const std::vector<std::string>& labels, const Font& font, const Style& style) {
  double most = 0;
  for (const std::string& label : labels) most = std::max(most, style.measure.width(label, font));
  return most;
}

Card card_of(const FlowMatrix& m, const MatrixFlow& flow, const Style& style) {
  Card card;
  const Font font = style.theme.small_token();
  const double scale = style.theme.text_scale;
  const auto rows = static_cast<double>(std::max<Index>(m.values.dim(0), 1));
  const auto columns = static_cast<double>(std::max<Index>(m.values.dim(1), 1));
  if (!m.rows.empty())  // a pixel more than measured: letters are drawn on whole ones
    card.left = std::ceil(std::min(widest(m.rows, font, style), most_room(m.rows, style))) + label_gap + 1;
  const double side = std::max(flow.side - card.left, 40.0);
  // Room for numbers where the matrix is small; else the whole is worth more.
  card.decimals = decimals_of(m);
  double number = 0;
  bool told = false, zeros = true;  // where cells so small are 0.0000 all over, colours say more
  if (rows * columns <= 400)
    for (Index i = 0; i < m.values.dim(0); ++i)
      for (Index j = 0; j < m.values.dim(1); ++j) {
        const std::string text = cell_number(m.values.at(i, j), card.decimals);
        number = std::max(number, style.measure.width(text, font));
        told = told || text.find_first_of("123456789") != std::string::npos;
        zeros = zeros && text == "0";
      }
  const double wanted_w = std::max(number_cell * scale, std::ceil(number) + 7), wanted_h = font.size + 6;
  card.numbers = number > 0 && (told || zeros) && columns * wanted_w <= side && rows * wanted_h <= side;
  if (card.numbers) {
    card.cell_w = std::floor(std::clamp(side / std::max(columns, 4.0), wanted_w, widest_number_cell * scale));
    card.cell_h = std::floor(std::clamp(side / std::max(rows, 5.0), wanted_h, highest_number_cell * scale));
  } else {
    const auto fitted = [](double room, double count) {
      const double cell = std::min(room / count, largest_flow_cell);
      // Whole pixels look even; where that would cost much of a small picture, quarters have to do.
      return cell >= 4 ? std::floor(cell) : cell >= 1 ? std::floor(4 * cell) / 4 : cell;
    };
    const double cell = fitted(side, std::max(rows, columns));
    card.cell_w = card.cell_h = cell;
    // A vector is easier to see, and to hit, as a wider stripe; a wide matrix need not be a thin line.
    if (columns == 1) card.cell_w = std::max(cell, widest_vector);
    if (rows * cell < 40) card.cell_h = std::min(40 / rows, largest_flow_cell);
  }
  card.map_w = card.cell_w * columns;
  card.map_h = card.cell_h * rows;
  if (!m.columns.empty()) {
    const double most = widest(m.columns, font, style);
    card.above = (most <= card.cell_w - 2 ? font.size : std::min(most, most_room(m.columns, style))) + label_gap;
  }
  Font title = style.theme.body();
  title.weight = 600;
  const double words =
      style.measure.width(m.title, title) + 8 +
      style.measure.width(fmt::format("{}×{}", m.values.dim(0), m.values.dim(1)), style.theme.small_token());
  card.width = std::ceil(std::max({card.left + card.map_w, narrowest_card, std::min(words, 2 * narrowest_card)}));
  return card;
}

/// Names of rows on the left and of columns above `rect`: all of them, or every k-th, k a round number.
void add_labels(Scene& scene, const FlowMatrix& m, const Card& card, const Rect& rect, const Style& style) {
  const Font font = style.theme.small_token();
  const Index row_every = round_every(card.cell_h, font.size + 1);
  for (Index i = 0; i < std::min(m.values.dim(0), static_cast<Index>(m.rows.size())); i += row_every)
    scene.add({Text{{rect.x - label_gap, rect.y + (static_cast<double>(i) + 0.5) * card.cell_h + half_capital(font)},
                    elided(nth(m.rows, i), font, card.left - label_gap, style.measure),
                    font,
                    style.theme.muted,
                    Anchor::end,
                    0},
               "", ""});
  const bool flat = widest(m.columns, font, style) <= card.cell_w - 2;
  const Index column_every = flat ? 1 : round_every(card.cell_w, font.size + 1);
  for (Index j = 0; j < std::min(m.values.dim(1), static_cast<Index>(m.columns.size())); j += column_every) {
    const double middle = rect.x + (static_cast<double>(j) + 0.5) * card.cell_w;
    if (flat)
      scene.add(
          {Text{{middle, rect.y - label_gap}, nth(m.columns, j), font, style.theme.muted, Anchor::middle, 0}, "", ""});
    else
      scene.add({Text{{middle + half_capital(font), rect.y - label_gap + 1},
                      elided(nth(m.columns, j), font, card.above - label_gap + 1, style.measure),
                      font,
                      style.theme.muted,
                      Anchor::start,
                      -90},
                 "", ""});
  }
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
  map.rect = {x + card.left, y + 2 * line + 7 + card.above, card.map_w, card.map_h};
  map.values = m.values;
  map.masked = m.masked;
  map.norm = norm_of(range, m.low, m.high);
  map.colormap = map.norm.low < 0 ? theme.diverging : theme.sequential;
  map.masked_color = theme.masked;
  map.missing_color = theme.missing;
  map.gap = std::min(card.cell_w, card.cell_h) >= 7 ? 1 : 0;
  add_labels(scene, m, card, map.rect, style);
  const Rect rect = map.rect;
  const ColorNorm norm = map.norm;
  const Colormap* colors = map.colormap;
  scene.add({map, m.id, ""});
  // A frame, so that a matrix of zeros is still seen as one.
  scene.add({Box{rect, {0, 0, 0, 0}, with_opacity(theme.line, 0.7), 1, 0}, "", ""});
  if (card.numbers)
    for (Index i = 0; i < map.rows(); ++i)
      for (Index j = 0; j < map.columns(); ++j)
        if (!map.is_masked(i, j) && std::isfinite(map.values.at(i, j)))
          add_cell_text(scene, map, {i, j}, cell_number(map.values.at(i, j), card.decimals), theme.small_token(),
                        style);
  // Under the map where it is wide enough there for its numbers, else under the labels too.
  const double bar = card.width - card.left >= narrowest_card - 24 ? card.left : 0;
  return add_color_bar(scene, {m.unit, norm, colors, range.high, false, range.missing}, x + bar, rect.bottom() + 9,
                       card.width - bar, style);
}

}  // namespace

int decimals_of(const FlowMatrix& matrix) {
  double most = 0;
  bool whole = !matrix.decimals;
  for (Index i = 0; i < matrix.values.dim(0); ++i)
    for (Index j = 0; j < matrix.values.dim(1); ++j) {
      const auto value = static_cast<double>(matrix.values.at(i, j));
      if (!std::isfinite(value)) continue;
      if (!matrix.masked.empty() && nth(matrix.masked, i * matrix.values.dim(1) + j)) continue;
      most = std::max(most, std::abs(value));
      whole = whole && value == std::round(value);
    }
  if (whole || most == 0) return 0;
  return most >= 99.95 ? 0 : most >= 9.995 ? 1 : most >= 0.095 ? 2 : most >= 0.0095 ? 3 : 4;
}

std::string cell_number(double value, int decimals) {
  if (value == 0 || !std::isfinite(value)) return "0";
  const std::string text = fmt::format("{:.{}f}", std::abs(value), decimals);
  const bool none = text.find_first_not_of("0.") == std::string::npos;
  return (value < 0 && !none ? "−" : "") + text;
}

Scene matrix_flow_scene(const MatrixFlow& flow, const Style& style) {
  Scene scene;
  scene.background = style.theme.background;
  scene.width = flow.width;
  scene.title = said("Steps");
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
