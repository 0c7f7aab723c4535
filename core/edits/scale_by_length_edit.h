#pragma once

#include <memory>

#include "core/edits/edit.h"

namespace headscope {

/// Scores of a row that sees n keys under the head's mask are multiplied by ln n / ln m, so that a longer row is not
/// flatter (Su, Entropy-invariant attention, 2021; Chiang & Cholak, Overcoming a Theoretical Limitation of
/// Self-Attention, 2022).
struct ScaleByLength {
  int trained = 512;  ///< m, the row length at which nothing changes
  bool operator==(const ScaleByLength&) const = default;
};
std::shared_ptr<const Edit> edit_of(ScaleByLength value);

}  // namespace headscope
