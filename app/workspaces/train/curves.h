#pragma once
// What the pages of training draw alike.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/train/trainer.h"
#include "viz/scene/line_chart.h"

namespace headscope {

/// The loss on rows that are held out, at the steps at which it was measured.
inline ChartSeries held_out_series(const std::vector<TrainingPoint>& curve, std::string name, Color color,
                                   double width) {
  ChartSeries line{std::move(name), color, {}, {}, width};
  for (const TrainingPoint& point : curve)
    if (!std::isnan(point.held_out)) {
      line.x.push_back(static_cast<double>(point.step));
      line.y.push_back(point.held_out);
    }
  return line;
}

}  // namespace headscope
