#pragma once
// What a sum is made of: one bar per part, largest first, above the line what adds, below it what takes away.

#include <string>
#include <vector>

#include "core/base/words.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct PartBars {
  std::vector<double> parts;
  std::string label;                  ///< before a part's number below its bar: "p"
  std::string noun = to_say("pair");  ///< of the tooltip
};

/// Draws into `rect`, labels below it. Bars are named "part.<i>"; their series goes by that i.
void add_part_bars(Scene& scene, const PartBars& bars, const Rect& rect, const Style& style);

}  // namespace headscope
