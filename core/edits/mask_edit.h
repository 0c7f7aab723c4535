#pragma once

#include <memory>
#include <string>

#include "core/edits/edit.h"

namespace headscope {

/// The mask takes the place of the model's own (causal) one. `spec` as in core/attention/masks.h.
struct SetMask {
  std::string spec = "causal";
  bool operator==(const SetMask&) const = default;
};
std::shared_ptr<const Edit> edit_of(SetMask value);

}  // namespace headscope
