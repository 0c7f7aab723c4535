#pragma once

#include <memory>

#include "core/edits/edit.h"

namespace headscope {

/// Scores are divided by τ before the softmax, biases of positions included: (q·k/√d − m · distance) / τ. Below 1
/// sharper, above 1 flatter.
struct SetTemperature {
  static constexpr double lowest = 1e-6, highest = 1e6;
  double tau = 1;
  bool operator==(const SetTemperature&) const = default;
};
std::shared_ptr<const Edit> edit_of(SetTemperature value);

}  // namespace headscope
