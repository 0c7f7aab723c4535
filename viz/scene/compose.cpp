#include "viz/scene/compose.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace headscope {

namespace {

Point moved(Point point, double dx, double dy) {
  return {point.x + dx, point.y + dy};
}
Rect moved(Rect rect, double dx, double dy) {
  return {rect.x + dx, rect.y + dy, rect.w, rect.h};
}
void move(Mark& mark, double dx, double dy) {
  if (auto* box = std::get_if<Box>(&mark.shape)) box->rect = moved(box->rect, dx, dy);
  if (auto* line = std::get_if<Line>(&mark.shape))
    for (Point& point : line->points) point = moved(point, dx, dy);
  if (auto* curve = std::get_if<Curve>(&mark.shape))
    for (Point* point : {&curve->from, &curve->control_from, &curve->control_to, &curve->to})
      *point = moved(*point, dx, dy);
  if (auto* text = std::get_if<Text>(&mark.shape)) text->at = moved(text->at, dx, dy);
  if (auto* map = std::get_if<Heatmap>(&mark.shape)) map->rect = moved(map->rect, dx, dy);
  if (auto* pixels = std::get_if<Pixels>(&mark.shape)) pixels->rect = moved(pixels->rect, dx, dy);
}

Scene joined(std::span<const Scene> parts, double gap, bool across) {
  Scene all;
  double at = 0;
  int index = 0;
  for (const Scene& part : parts) {
    if (index == 0) {
      all.background = part.background;
      all.title = part.title;
      all.description = part.description;
    }
    place(all, part, across ? at : 0, across ? 0 : at, std::to_string(index++) + ".");
    at += (across ? part.width : part.height) + gap;
    all.width = std::max(all.width, across ? at - gap : part.width);
    all.height = std::max(all.height, across ? part.height : at - gap);
  }
  return all;
}

}  // namespace

void place(Scene& into, const Scene& part, double dx, double dy, const std::string& prefix) {
  for (Mark mark : part.marks) {
    move(mark, dx, dy);
    if (!mark.id.empty()) mark.id = prefix + mark.id;
    if (auto* label = std::get_if<LabelOf>(&mark.meaning)) label->maps = prefix + label->maps;
    into.add(std::move(mark));
  }
  for (SceneSeries series : part.series) {
    series.title = prefix + series.title;
    into.series.push_back(std::move(series));
  }
}

Scene beside(std::span<const Scene> parts, double gap) {
  return joined(parts, gap, true);
}
Scene below(std::span<const Scene> parts, double gap) {
  return joined(parts, gap, false);
}

}  // namespace headscope
