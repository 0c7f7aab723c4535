#pragma once

#include <memory>

#include "core/edits/edit.h"

namespace headscope {

/// One weight of one row; the other weights of the row keep their ratios and share the rest. A masked key can be given
/// weight too. A row with no other key stays as it is. After an edit that writes the row's weights themselves (a frozen
/// pattern, a mechanism, lost weight) it changes those; one listed before is replaced by them.
struct SetWeight {
  int query = 0, key = 0;  ///< positions; below 0 they count from the end
  double weight = 1;       ///< 0…1
  bool operator==(const SetWeight&) const = default;
};
std::shared_ptr<const Edit> edit_of(SetWeight value);

}  // namespace headscope
