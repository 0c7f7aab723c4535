#pragma once
// Where marks lie and which of them is under a point: geometry only.
// Thread rule: pure functions.

#include "viz/scene/scene.h"
#include "viz/scene/text_measure.h"

namespace headscope {

Rect bounds(const Line& line);
Rect bounds(const Curve& curve);  ///< of the control points: never too small
/// Upright rectangle round the mark; of a text that leans, round its corners.
Rect bounds(const Mark& mark, const TextMeasure& measure);
double distance(Point p, Point from, Point to);  ///< to the segment
double distance(Point p, const Curve& curve);

}  // namespace headscope
