#pragma once
// An op's gradient against central differences of its definition in float64.

#include <functional>
#include <vector>

#include "core/tensor/backend.h"

namespace headscope::testing {

using Numbers = std::vector<double>;

struct GradientCheck {
  /// What the op computes, in float32, from `inputs`.
  std::function<Tensor(Backend&)> op;
  /// The op's definition from the inputs' elements in row-major order; gives the output's likewise.
  std::function<Numbers(const std::vector<Numbers>&)> definition;
  std::vector<Tensor> inputs;  ///< watched; views too
  double tolerance = 2e-5;     ///< of every element, relative to the largest of its tensor
};

/// Checks the op's result and its gradients (of a random weighting of the result), with one thread and with three.
void check_gradients(const GradientCheck& check, std::uint64_t seed);

/// How `value` changes with one number it is computed from: central differences, over ±step and over ±2 step. Where
/// they differ, something turns in between.
struct Slopes {
  double near = 0, far = 0;
};
Slopes slopes(float& number, const std::function<double()>& value, float step = 4e-3f);

}  // namespace headscope::testing
