#pragma once

#include <memory>

#include "core/edits/edit.h"

namespace headscope {

/// Nobody sees the first `count` tokens. Renormalised, the others share their weight; else it is lost.
struct DropFirst {
  int count = 1;
  bool renormalize = true;
  bool operator==(const DropFirst&) const = default;
};
std::shared_ptr<const Edit> edit_of(DropFirst value);

}  // namespace headscope
