#pragma once
// Small charts of a few lines over one axis: metrics across depth, entropy against temperature, loss per token.

#include <optional>
#include <string>
#include <vector>

#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct ChartSeries {
  std::string title;  ///< written beside the line's end; "" = none
  Color color;
  std::vector<double> x, y;  ///< equally long; NaN leaves a gap
  double width = 1.75;
  bool dashed = false;                        ///< what is expected, beside what was measured
  bool quiet = false;                         ///< one of many, or a level: left out where values are read off
  bool dots = false;                          ///< no line joins the values
  std::vector<double> least = {}, most = {};  ///< a band about the line, as long as it; empty = none
};

/// A thin vertical line with a word: "trained context".
struct ChartMark {
  double x = 0;
  std::string text;
};

struct LineChart {
  std::vector<ChartSeries> series;
  std::string y_title;                  ///< in the corner, "entropy, nats"
  std::optional<double> y_low, y_high;  ///< else from the data
  bool log_x = false;
  bool log_y = false;  ///< whole decades are written beside the axis; what is not positive is left out
  bool bars = false;   ///< every value is a bar from the ground up, of its series' colour; the one at the marker's x in
                       ///< the accent, with its number above it
  bool points = false;          ///< a dot at every value of the lines that are not dashed, with its numbers as tooltip
  std::vector<double> x_ticks;  ///< values to write under the axis; empty = both ends
  std::vector<std::string> x_labels;  ///< what to write there instead of the values; empty = the values
  std::optional<Point> marker;        ///< a dot at this (x, y), in data units
  std::vector<ChartMark> marks;
  std::string x_title;  ///< at the right end below the axis
  bool grid = false;    ///< round values beside both axes, in place of the ends
  double width = 320, height = 110;
  std::optional<double> x_low, x_high;  ///< else from the data
  bool pickable = false;                ///< a place along x may be chosen: the mark "plot" means PlotArea
};

/// Lines named "line.<title>". Without a finite point the chart says so instead of drawing an axis.
Scene line_chart_scene(const LineChart& chart, const Style& style);

}  // namespace headscope
