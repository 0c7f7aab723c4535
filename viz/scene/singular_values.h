#pragma once
// The singular values of a weight matrix as bars, as they are and as they are scaled, with the scales z below: the
// picture of a Transformer² vector.

#include <optional>
#include <vector>

#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct SingularValuesChart {
  static constexpr double most = 2;  ///< the z at which the lower strip ends
  std::vector<double> values;        ///< σ, largest first
  std::vector<double> z;             ///< as many
  std::optional<Index> chosen;
  double width = 640, height = 260;
};

/// Marks "values" and "z" cover the two plots, so that a place in them can be read back: value i takes the i-th of
/// `values.size()` equal parts of their width; "z" reaches from 0 at its lower edge to `most` at its upper one. Series:
/// σ, z and z σ over the place, from 1.
Scene singular_values_scene(const SingularValuesChart& chart, const Style& style);

}  // namespace headscope
