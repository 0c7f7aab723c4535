#pragma once
// What a mechanism computed, as pictures: its steps as matrices, its curves as charts, and all of it below one another.
// One place for the command line and for the window. Pure functions.

#include <string>
#include <vector>

#include "core/attention/mechanism.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/matrix_flow.h"

namespace headscope {

/// What the positions of the two axes are called; empty = nothing is written.
struct AxisNames {
  std::vector<std::string> queries, keys;
  /// Of `count` positions from `first` on; nothing where one of them has no name.
  std::vector<std::string> of(MechanismAxis axis, Index first, Index count) const;
};

FlowMatrix flow_matrix(const MechanismStep& step, const AxisNames& names);

/// Without its title, which stands above it.
LineChart curve_chart(const MechanismCurve& curve, double width, double height, const Theme& theme);

/// The machine of one that works block by block or the diagram of one that joins a memory, the steps, the way through a
/// code's tree, the curves under their titles.
Scene mechanism_scene(const MechanismResult& result, const Mechanism& mechanism, const AxisNames& names, double width,
                      const Style& style);

}  // namespace headscope
