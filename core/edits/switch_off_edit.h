#pragma once

#include <memory>

#include "core/edits/edit.h"

namespace headscope {

/// A part of the block adds nothing (attention, MLP), or passes on what it is given (a norm).
struct SwitchOff {
  enum class Part { attention, mlp, ln1, ln2 } part = Part::mlp;
  bool operator==(const SwitchOff&) const = default;
};
std::shared_ptr<const Edit> edit_of(SwitchOff value);

}  // namespace headscope
