#pragma once
// A line chart in the window: the picture that is exported, drawn anew in every frame, with what its lines are worth
// under the pointer or where the arrow keys have led. One call each. Thread rule: the UI thread.

#include "app/widgets/ui.h"
#include "viz/scene/line_chart.h"

namespace headscope {

struct PlotTouch {
  bool hovered = false, clicked = false;
  double x = 0;  ///< data coordinate under the pointer
};

/// As wide as there is room and chart.height high. `id` names it for tests. `readout`: a tooltip with the values
/// nearest to the pointer.
PlotTouch plot(const Ui& ui, const char* id, LineChart chart, bool readout = true);

}  // namespace headscope
