#pragma once
// The steps of a mechanism as matrices of a picture: one place for the command line and for the window. Pure functions.

#include <string>
#include <vector>

#include "core/attention/mechanism.h"
#include "viz/scene/matrix_flow.h"

namespace headscope {

/// What the positions of the two axes are called; empty = nothing is written.
struct AxisNames {
  std::vector<std::string> queries, keys;
  /// Of `count` positions from `first` on; nothing where one of them has no name.
  std::vector<std::string> of(MechanismAxis axis, Index first, Index count) const;
};

FlowMatrix flow_matrix(const MechanismStep& step, const AxisNames& names);

}  // namespace headscope
