#pragma once
// Queries, keys and values of one head of a run, for a mechanism to work on.

#include <memory>

#include "core/attention/mechanism.h"
#include "core/engine/run_request.h"

namespace headscope {

/// Every head of a layer, from q (query, head, d), k and v (key, head or group of heads, d), which may be views.
std::shared_ptr<const HeadsOfLayer> heads_of_layer(const Tensor& q, const Tensor& k, const Tensor& v, Index layer,
                                                   Index layers);
/// Queries, keys and values of one of them; scale and rule are left to the caller.
MechanismInput input_of_head(std::shared_ptr<const HeadsOfLayer> layer, Index head);

/// As softmax attention would get them: after rotation, under the head's mask and scale. Edits that put other scores or
/// weights into this head's layer are left out; all others act. `trace` (may be null) gets the run, whose tokens name
/// the positions. Throws Error as run() does.
MechanismInput head_input(const LoadedModel& model, const RunRequest& request, HeadId head, const Ctx& ctx,
                          std::shared_ptr<const Trace>* trace = nullptr);

/// How often the model expects each token of its vocabulary on this text: the mean of its next-token distributions over
/// all positions, with what its unembedding is given after the last one. Throws Error as run() does.
std::shared_ptr<const VocabularyUse> vocabulary_use(const LoadedModel& model, const RunRequest& request,
                                                    const Ctx& ctx);

}  // namespace headscope
