#pragma once

#include <memory>

#include "core/edits/edit.h"

namespace headscope {

/// How much of the model's LoRA adapter there is: each adapted matrix is W_base + strength · ΔW (Hu et al., LoRA,
/// 2021). 1 is the model as it was opened, 0 its base model.
struct ScaleAdapter {
  static constexpr double largest = 100;  ///< of |strength|
  double strength = 0;
  bool operator==(const ScaleAdapter&) const = default;
};
std::shared_ptr<const Edit> edit_of(ScaleAdapter value);

}  // namespace headscope
