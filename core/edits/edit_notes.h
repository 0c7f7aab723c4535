#pragma once
// What one should know of an edit before believing its numbers.

#include <string>
#include <vector>

#include "core/edits/intervention.h"

namespace headscope {

/// One sentence each, in the order of the edits; those that are off have none:
///   rows that see later tokens (a mask, a weight that is set), which most decoders were never trained to do;
///   ablations that take from later positions (Ablate::tells_future);
///   patches of a key head that other heads share (Ainslie et al., GQA, 2023): whom they reach besides;
///   patches of the stream between two layers of a block (ModelDims::paired): what they do not reach.
/// Of a text of `tokens` tokens. What a decoder must not see an encoder sees anyhow: the first two are of decoders.
std::vector<std::string> edit_notes(const std::vector<Intervention>& edits, const ModelInfo& model, int tokens);

}  // namespace headscope
