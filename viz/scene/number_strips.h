#pragma once
// Vectors as strips of cells, one below another, each with its name, its shape and a number beside it: the stages of a
// pass at one position, or a row before and after a norm.

#include <string>
#include <vector>

#include "viz/scene/annotations.h"
#include "viz/scene/scene.h"

namespace headscope {

struct NumberStrip {
  std::string name;     ///< "0 attention"
  std::string remark;   ///< quiet, behind the name: the shape
  std::string formula;  ///< quiet, below the name
  Tensor values;        ///< (width), contiguous
  std::string number;   ///< right of the strip: "‖x‖ 3.21"
  std::string tooltip;  ///< of name and number
  bool inset = false;   ///< a part that is added to what stands around it
};

struct NumberStrips {
  std::vector<NumberStrip> strips;
  bool one_scale = false;  ///< else each strip has the scale of its own largest magnitude, written beside it
  std::string unit;        ///< at the colour bar
  double width = 900;
};

/// Strips are the marks "strip.<i>", names "name.<i>". A vector longer than its strip has pixels is shown whole, its
/// cells below one pixel.
Scene number_strips_scene(const NumberStrips& strips, const Style& style);

}  // namespace headscope
