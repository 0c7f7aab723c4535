#pragma once
// What a layer mixes tokens by, in words.

#include "core/base/words.h"
#include "core/trace/model_info.h"

namespace headscope {

/// "attention", "a state space", "the gated delta rule", "a short convolution"; said() where it is shown.
inline const char* mixer_words(const ModelDims& dims, int layer) {
  if (dims.attends(layer)) return to_say("attention");
  switch (dims.state_kind) {
    case StateKind::delta:
      return to_say("the gated delta rule");
    case StateKind::convolution:
      return to_say("a short convolution");
    case StateKind::selective:
      break;
  }
  return to_say("a state space");
}

/// Of the first layer that does not attend; "" where all do.
inline const char* state_words(const ModelDims& dims) {
  for (int layer = 0; layer < dims.layers; ++layer)
    if (!dims.attends(layer)) return mixer_words(dims, layer);
  return "";
}

}  // namespace headscope
