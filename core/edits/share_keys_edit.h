#pragma once

#include <memory>

#include "core/edits/edit.h"

namespace headscope {

/// Keys and values are shared by more heads than in training: the model's key heads, in `groups` equal groups, become
/// their group's mean (Ainslie et al., GQA, 2023: how a trained model is converted). 1 = MQA.
struct ShareKeys {
  int groups = 1;
  bool operator==(const ShareKeys&) const = default;
};
std::shared_ptr<const Edit> edit_of(ShareKeys value);

}  // namespace headscope
