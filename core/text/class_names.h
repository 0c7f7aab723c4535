#pragma once
// The classes of a model of pictures as a vocabulary: what a score is of is then named as a token is.

#include <memory>
#include <string>
#include <vector>

#include "core/text/tokenizer.h"

namespace headscope {

/// A text is one token where it is the name of a class, or its first name of several ("tabby" of "tabby, tabby cat");
/// else encode() throws Error: such a model reads no text.
std::shared_ptr<const Tokenizer> class_names(std::vector<std::string> labels);

}  // namespace headscope
