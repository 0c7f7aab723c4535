#include "viz/scene/worker_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

Color block_color(int of, int workers, const Theme& theme) {
  // Round the hues of Oklab at one lightness: no block is louder than another.
  const double turn = 2 * std::numbers::pi * of / std::max(workers, 1) + 0.6;
  const double light = to_oklab(theme.key).L;
  return from_oklab({light, 0.11 * std::cos(turn), 0.11 * std::sin(turn)});
}

Scene worker_ring_scene(const WorkerRing& ring, const Style& style) {
  const Theme& theme = style.theme;
  const Font caption = theme.caption(), number = theme.number();
  Font name = theme.body();
  name.weight = 600;
  const double scale = theme.text_scale, line = std::round(15 * scale);
  const auto count = static_cast<int>(ring.workers.size());
  Scene scene;
  scene.background = theme.background;
  scene.width = ring.width;
  scene.height = ring.height;
  scene.title = ring.state;
  double wide = 0;
  for (const WorkerRing::Worker& worker : ring.workers)
    wide = std::max({wide, style.measure.width(worker.queries, number), style.measure.width(worker.keys, number)});
  wide = std::ceil(wide) + 18;
  const double tall = 3 * line + 12;
  const Point center{ring.width / 2, ring.height / 2};
  const double rx = std::min(ring.width / 2 - wide / 2 - 4, std::max(ring.height * 0.9, wide * count / 4.0)),
               ry = ring.height / 2 - tall / 2 - 4;
  const auto angle = [&](double at) { return 2 * std::numbers::pi * at / std::max(count, 1) - std::numbers::pi / 2; };
  const auto place = [&](double at) {
    return Point{center.x + rx * std::cos(angle(at)), center.y + ry * std::sin(angle(at))};
  };
  // The way that blocks go, from each worker to the next, in pieces of the ellipse.
  for (int w = 0; w < count && count > 1; ++w) {
    const WorkerRing::Worker& worker = ring.workers[static_cast<std::size_t>(w)];
    Line arc{{}, with_opacity(block_color(worker.of, count, theme), 0.8), 2};
    constexpr int pieces = 24;
    for (int i = 0; i <= pieces; ++i) arc.points.push_back(place(w + static_cast<double>(i) / pieces));
    const Point middle = arc.points[pieces / 2], before = arc.points[pieces / 2 - 1];
    scene.add({arc, fmt::format("pass.{}", w), said("where its keys and values go in the next round")});
    const double length = std::hypot(middle.x - before.x, middle.y - before.y);
    const double ux = (middle.x - before.x) / length, uy = (middle.y - before.y) / length;
    scene.add({Line{{{middle.x - 7 * ux - 4 * uy, middle.y - 7 * uy + 4 * ux},
                     middle,
                     {middle.x - 7 * ux + 4 * uy, middle.y - 7 * uy - 4 * ux}},
                    arc.color,
                    2},
               "", ""});
  }
  for (int w = 0; w < count; ++w) {
    const WorkerRing::Worker& worker = ring.workers[static_cast<std::size_t>(w)];
    const Point at = place(w);
    const Rect box{at.x - wide / 2, at.y - tall / 2, wide, tall};
    const Color hue = block_color(worker.of, count, theme);
    scene.add({Box{box, theme.background, worker.works ? hue : theme.line, worker.works ? 1.75 : 1, 5},
               fmt::format("worker.{}", w), worker.tooltip});
    const Rect held{box.x + 4, box.bottom() - line - 8, wide - 8, line + 2};
    scene.add({Box{held, with_opacity(hue, worker.works ? 0.45 : 0.14), {0, 0, 0, 0}, 0, 3}, fmt::format("block.{}", w),
               worker.tooltip});
    scene.add({Box{{box.x + 4, box.bottom() - 5, (wide - 8) * worker.met, 2}, theme.accent, {0, 0, 0, 0}, 0, 1},
               fmt::format("met.{}", w), ""});
    const auto write = [&](double y, const std::string& text, const Font& font, Color color) {
      scene.add({Text{{at.x, y + half_capital(font)}, text, font, color, Anchor::middle, 0}, "", ""});
    };
    write(box.y + line / 2 + 3, fmt::format("{}", w), name, worker.works ? theme.text : theme.muted);
    write(box.y + line * 1.5 + 3, worker.queries, number, theme.query);
    write(held.y + held.h / 2, worker.keys, number, worker.works ? theme.text : theme.muted);
  }
  scene.add({Text{{center.x, center.y - 2}, ring.state, theme.title(), theme.text, Anchor::middle, 0}, "state", ""});
  double y = center.y + line;
  for (const std::string& words : wrapped(ring.remark, caption, std::max(1.2 * rx - 20, 120.0), style.measure)) {
    scene.add({Text{{center.x, y}, words, caption, theme.muted, Anchor::middle, 0}, "", ""});
    y += line;
  }
  SceneSeries met{"share of the blocks that a worker has met", {}, {}, {}};
  for (std::size_t w = 0; w < ring.workers.size(); ++w) {
    met.x.push_back(static_cast<double>(w));
    met.y.push_back(ring.workers[w].met);
    met.labels.push_back(ring.workers[w].keys);
  }
  scene.series.push_back(std::move(met));
  return scene;
}

}  // namespace headscope
