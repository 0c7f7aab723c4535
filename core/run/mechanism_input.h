#pragma once
// Queries, keys and values of one head of a run, for a mechanism to work on.

#include <memory>

#include "core/attention/mechanism.h"
#include "core/run/run_request.h"

namespace headscope {

/// As softmax attention would get them: after rotation, under the head's mask and scale. Edits that put other scores or
/// weights into this head's layer are left out; all others act. `trace` (may be null) gets the run, whose tokens name
/// the positions: the part of it that is of `stack`, whose head it is (`only` = the decoder's in an encoder-decoder).
/// Throws Error as run() does.
MechanismInput head_input(const LoadedModel& model, const RunRequest& request, HeadId head, const Ctx& ctx,
                          std::shared_ptr<const Trace>* trace = nullptr, Stack stack = Stack::only);

/// How often the model expects each token of its vocabulary on this text: the mean of its next-token distributions over
/// all positions, with what its unembedding is given after the last one. Throws Error as run() does.
std::shared_ptr<const VocabularyUse> vocabulary_use(const LoadedModel& model, const RunRequest& request,
                                                    const Ctx& ctx);

/// The weights that this head's queries, keys and values come from, with what they multiply, and the layer's W_O. Null
/// where they are made of latents or of another text. Throws Error as run() does.
std::shared_ptr<const HeadProjections> head_projections(const LoadedModel& model, const RunRequest& request,
                                                        HeadId head, const Ctx& ctx, Stack stack = Stack::only);

/// The request for another text, read as this one is. Edits that name positions, which are those of this text, are left
/// out.
RunRequest asking_another_text(RunRequest request, const std::string& text);

/// The queries of `asking` on the keys and values of `other`, both of one head, every key seen.
MechanismInput crossed(const MechanismInput& asking, const MechanismInput& other);

}  // namespace headscope
