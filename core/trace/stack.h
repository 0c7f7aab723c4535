#pragma once
// The stacks of a model. A decoder or an encoder by itself is one. An encoder-decoder (Vaswani et al., Attention Is All
// You Need, 2017) has two, and between them the decoder's cross-attention, whose queries are of the target and whose
// keys and values are of the source.

#include "core/base/named_values.h"

namespace headscope {

/// As addresses write it before a head: "enc.1.0", "dec.0.2", "cross.0.1".
enum class Stack {
  only,     ///< of a model of one stack; where a model has several and none is named: the decoder
  encoder,  ///< self-attention of the source
  decoder,  ///< self-attention of the target
  cross     ///< the target's attention to the source
};
inline constexpr NamedValue<Stack> stack_names[] = {
    {"", Stack::only}, {"enc", Stack::encoder}, {"dec", Stack::decoder}, {"cross", Stack::cross}};

}  // namespace headscope
