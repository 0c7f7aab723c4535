#pragma once
// Small curves: profiles across depth, entropy against temperature, loss per token. One call each, no state.
// Thread rule: the UI thread.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/widgets/ui.h"

namespace headscope {

struct Series {
  std::string label;         ///< written at the line's end; "" = none
  std::vector<double> x, y;  ///< same length; a y that is no number leaves a gap
  Color color;
  double width = 1.75;
  bool quiet = false;  ///< one of many: without a label and left out of the readout
};

struct PlotOptions {
  double height = 80;                                          ///< logical pixels
  std::optional<double> x_low{}, x_high{}, y_low{}, y_high{};  ///< absent = from the data; y with a little room
  bool log_x = false;
  std::vector<std::pair<double, std::string>> x_ticks{};  ///< written below
  bool scales = false;            ///< round values beside both axes (x_ticks instead, where given), with thin lines
  std::string title = "";         ///< small, in the top left corner
  std::optional<Point> marker{};  ///< "you are here", data coordinates
  bool frame = true;
  bool end_labels = true;    ///< off: series are named in the readout only
  bool readout = true;       ///< a tooltip with the values nearest to the pointer
  std::string x_name = "x";  ///< for the tooltip
};

struct PlotTouch {
  bool hovered = false, clicked = false;
  double x = 0;  ///< data coordinate under the pointer
};

/// As wide as there is room. `id` names it for tests.
PlotTouch plot(const Ui& ui, const char* id, std::span<const Series> series, const PlotOptions& options = {});

}  // namespace headscope
