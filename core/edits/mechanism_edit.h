#pragma once

#include <memory>
#include <string>

#include "core/edits/edit.h"

namespace headscope {

/// Another mechanism takes the place of softmax attention, on the head's own queries, keys and values, its mask and its
/// scale. `spec` as parse_mechanism (core/attention/mechanism.h) reads it, every value written out.
struct SwapMechanism {
  std::string spec = "linear map=elu normalise=sum";
  bool operator==(const SwapMechanism&) const = default;
};
std::shared_ptr<const Edit> edit_of(SwapMechanism value);

}  // namespace headscope
