#pragma once

#include <memory>

#include "core/edits/edit.h"

namespace headscope {

/// The heads look by rule, whatever their queries and keys say, at visible keys only.
struct ForcePattern {
  enum class Shape { uniform, previous, self, first } shape = Shape::uniform;
  bool operator==(const ForcePattern&) const = default;
};
std::shared_ptr<const Edit> edit_of(ForcePattern value);

}  // namespace headscope
