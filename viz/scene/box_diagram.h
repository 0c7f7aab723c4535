#pragma once
// Boxes on a grid and arrows between them, each with words and a number: what goes where, and how much of it.

#include <string>
#include <vector>

#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct DiagramBox {
  std::string id;  ///< "memory"
  enum class Kind { value, attention, memory, gate } kind = Kind::value;
  std::string text, number, tooltip;
  double column = 0, row = 0;  ///< of its middle, in steps of the grid
  double rows = 1;             ///< how many steps it is tall
};

/// One of the numbers that an arrow's words say.
struct DiagramNumber {
  std::string label;  ///< which quantity it is: "surprise"
  double value = 0;
};

/// Level where one box stands beside the other, upright where below it, else along and then up or down.
struct DiagramArrow {
  std::string id;        ///< "recalled"
  std::string from, to;  ///< ids of boxes
  std::string words, number, tooltip;
  double lane = 0;                          ///< of an upright one: −1 left … 1 right within the boxes
  std::vector<DiagramNumber> numbers = {};  ///< what `words` and `number` say, or the arrow's own where they say none
};

struct BoxDiagram {
  std::string title, remark;
  std::vector<DiagramBox> boxes;
  std::vector<DiagramArrow> arrows;
  double width = 900, height = 190;  ///< room; it grows no wider than it needs
};

/// Marks "box.<id>", "arrow.<id>", "arrow.<id>.words" and "arrow.<id>.number". Series: the arrows' numbers, each with
/// its label.
Scene box_diagram_scene(const BoxDiagram& diagram, const Style& style);

}  // namespace headscope
