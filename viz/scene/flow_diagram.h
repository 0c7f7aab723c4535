#pragma once
// What is done to a vector, box after box from top to bottom, with lines that go past boxes: the two arrangements of a
// transformer block side by side, each box with the number that came out of it.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct FlowStep {
  enum class Kind {
    value,  ///< what goes in or comes out
    norm,
    part,  ///< attention, MLP
    sum    ///< a circle with a plus
  } kind = Kind::part;
  std::string text;                            ///< "LayerNorm"
  std::string number;                          ///< right of it: "‖x‖ 12.3"
  std::string tooltip;                         ///< tensor and formula
  std::optional<double> value = std::nullopt;  ///< what `number` says
};

struct FlowColumn {
  std::string title, remark;
  std::vector<FlowStep> steps;
  std::vector<std::pair<int, int>> past;  ///< from below step a into sum b, past what lies between
};

struct FlowDiagram {
  std::vector<FlowColumn> columns;
  double width = 700, height = 380;  ///< room; boxes shrink to fit the height
};

/// Steps are the marks "column.<c>.<i>". Series: a column's values over i.
Scene flow_diagram_scene(const FlowDiagram& diagram, const Style& style);

}  // namespace headscope
