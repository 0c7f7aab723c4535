#pragma once

#include <memory>

#include "core/edits/edit.h"

namespace headscope {

/// Each norm of the block moves behind its sum, with the weights it has: x' = norm(x + part(x)), as in the first
/// Transformer (Vaswani et al., Attention Is All You Need, 2017), where the model has x' = x + part(norm(x)) (Xiong et
/// al., On Layer Normalization in the Transformer Architecture, 2020). The norm after the last block stays. No model of
/// the families that open here was trained so.
struct PostNorm {
  bool operator==(const PostNorm&) const = default;
};
std::shared_ptr<const Edit> edit_of(PostNorm value);

}  // namespace headscope
