#include "viz/scene/flow_diagram.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/arrow.h"
#include "viz/scene/text.h"

namespace headscope {

Scene flow_diagram_scene(const FlowDiagram& diagram, const Style& style) {
  const Theme& theme = style.theme;
  Font title = theme.body();
  title.weight = 600;
  const Font font = theme.body(), number = theme.number();
  const double scale = theme.text_scale, head = std::round(40 * scale);
  std::size_t most = 1;
  for (const FlowColumn& column : diagram.columns) most = std::max(most, column.steps.size());
  const double step = std::clamp((diagram.height - head) / static_cast<double>(most), 30.0 * scale, 54.0 * scale);
  const double box = std::round(std::min(24 * scale, step - 8)), radius = std::round(8 * scale);
  const double each = diagram.width / static_cast<double>(std::max<std::size_t>(diagram.columns.size(), 1));
  Scene scene;
  scene.background = theme.background;
  scene.width = diagram.width;
  scene.height = std::ceil(head + step * static_cast<double>(most));
  scene.title = said("Blocks");
  for (std::size_t c = 0; c < diagram.columns.size(); ++c) {
    const FlowColumn& column = diagram.columns[c];
    const double x = each * static_cast<double>(c);
    scene.add({Text{{x, std::round(14 * scale)}, column.title, title, theme.text, Anchor::start, 0}, "", ""});
    scene.add({Text{{x, std::round(30 * scale)},
                    elided(column.remark, theme.caption(), each - 16, style.measure),
                    theme.caption(),
                    theme.muted,
                    Anchor::start,
                    0},
               "", ""});
    double widest = 0;
    for (const FlowStep& s : column.steps) widest = std::max(widest, style.measure.width(s.text, font));
    const double w = std::ceil(widest) + 28 * scale, side = 22 * scale, middle = x + side + w / 2;
    const auto center = [&](int i) { return Point{middle, head + step * (static_cast<double>(i) + 0.5)}; };
    const auto half = [&](int i) { return nth(column.steps, i).kind == FlowStep::Kind::sum ? radius : box / 2; };
    for (int i = 0; i + 1 < static_cast<int>(column.steps.size()); ++i)
      add_arrow(scene, {{middle, center(i).y + half(i)}, {middle, center(i + 1).y - half(i + 1) - 1}}, theme.muted);
    for (const auto& [from, to] : column.past) {
      const double turn = center(from).y + half(from) + 3, at = middle - w / 2 - side / 2;
      scene.add({Line{{{middle, turn}, {at, turn}, {at, center(to).y}}, theme.accent, 1.75}, "", ""});
      add_arrow(scene, {{at, center(to).y}, {middle - radius - 1, center(to).y}}, theme.accent);
    }
    SceneSeries numbers{column.title, {}, {}, {}};
    for (int i = 0; i < static_cast<int>(column.steps.size()); ++i) {
      const FlowStep& s = nth(column.steps, i);
      const Point p = center(i);
      const std::string id = fmt::format("column.{}.{}", c, i);
      if (s.kind == FlowStep::Kind::sum) {
        scene.add(
            {Box{{p.x - radius, p.y - radius, 2 * radius, 2 * radius}, theme.background, theme.accent, 1.5, radius}, id,
             s.tooltip});
        scene.add({Text{{p.x, p.y + half_capital(title)}, "+", title, theme.accent, Anchor::middle, 0}, "", ""});
      } else {
        const bool plain = s.kind == FlowStep::Kind::value;
        const Color hue = s.kind == FlowStep::Kind::norm ? theme.value : theme.query;
        scene.add({Box{{p.x - w / 2, p.y - box / 2, w, box},
                       plain ? theme.background : mix(hue, theme.background, 0.8),
                       plain ? theme.line : mix(hue, theme.background, 0.35),
                       1,
                       5},
                   id, s.tooltip});
        scene.add({Text{{p.x, p.y + half_capital(font)}, s.text, font, theme.text, Anchor::middle, 0}, "", ""});
      }
      const double after = middle + w / 2 + 10;
      scene.add({Text{{after, p.y + half_capital(number)},
                      elided(s.number, number, x + each - after - 4, style.measure),
                      number,
                      theme.muted,
                      Anchor::start,
                      0},
                 id + ".number", s.tooltip});
      if (!s.value) continue;
      numbers.x.push_back(i);
      numbers.y.push_back(*s.value);
      numbers.labels.push_back(s.kind == FlowStep::Kind::sum ? "+" : s.text);
    }
    if (!numbers.y.empty()) scene.series.push_back(std::move(numbers));
  }
  return scene;
}

}  // namespace headscope
