#pragma once
// A beam search as its picture: one place for the command line and for the window.

#include <string>

#include "core/generate/beam_search.h"
#include "core/text/tokenizer.h"
#include "viz/scene/beam_tree.h"

namespace headscope {

/// Of a step's candidates the finished ones have their place among the best; `tokenizer` may be null.
BeamTreeOptions beam_tree_options(const BeamTree& tree, const Tokenizer* tokenizer);
/// "4 beams, at most 32 tokens, score Σ ln p / tokens^1"
std::string words_of(const BeamSettings& settings);

}  // namespace headscope
