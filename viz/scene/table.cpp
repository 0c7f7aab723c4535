#include "viz/scene/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
/// "−0.25", "1.2e-05", "3.5 %", "–" for none: a column of such is read by its last digits.
bool is_number(const std::string& text) {
  std::string_view rest = text;
  for (const std::string_view sign : {"−", "+", "-", "±"})
    if (rest.starts_with(sign)) rest.remove_prefix(sign.size());
  return text.empty() || text == "–" || (!rest.empty() && rest.front() >= '0' && rest.front() <= '9');
}
}  // namespace

std::string number_cell(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}
std::string number_cell(float value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

Scene table_scene(Table table, const Style& style) {
  const Theme& theme = style.theme;
  const Font head = theme.caption(), cell = theme.number();
  const double line = std::round(19 * theme.text_scale), gap = std::round(22 * theme.text_scale);
  const std::size_t shown = std::min(table.rows.size(), Table::most);
  Scene scene;
  scene.background = theme.background;
  scene.title = table.title;
  double x = 0;
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    const std::string column = said(table.columns[c]);  // as a table for programs it stays English
    double width = style.measure.width(column, head);
    bool numbers = true;
    for (std::size_t r = 0; r < shown; ++r) {
      width = std::max(width, style.measure.width(printable(table.rows[r][c]), cell));
      numbers = numbers && is_number(table.rows[r][c]);
    }
    const double at = numbers ? x + width : x;
    const Anchor anchor = numbers ? Anchor::end : Anchor::start;
    scene.add({Text{{at, line - 6}, column, head, theme.muted, anchor, 0}, fmt::format("head.{}", c), ""});
    for (std::size_t r = 0; r < shown; ++r)
      scene.add(
          {Text{{at, line * static_cast<double>(r + 2) - 3}, printable(table.rows[r][c]), cell, theme.text, anchor, 0},
           fmt::format("cell.{}.{}", r, c), ""});
    x += width + gap;
  }
  scene.width = std::ceil(std::max(x - gap, 120.0));
  scene.add({Line{{{0, line}, {scene.width, line}}, theme.line, 1}, "", ""});
  scene.height = line * static_cast<double>(shown + 1) + 6;
  if (shown < table.rows.size()) {
    scene.add({Text{{0, scene.height + line - 6},
                    say("… {} more rows", table.rows.size() - shown),
                    head,
                    theme.faint,
                    Anchor::start,
                    0},
               "more", ""});
    scene.height += line;
  }
  scene.table = SceneTable{std::move(table.columns), std::move(table.rows)};
  return scene;
}

}  // namespace headscope
