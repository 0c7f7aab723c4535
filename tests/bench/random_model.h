#pragma once
// Models of any shape with random weights, made in memory: speed does not depend on what the weights say.

#include <memory>

#include "core/model/model.h"

namespace headscope::bench {

/// GPT-2 architecture, learned positions, tied embeddings, weights N(0, 0.02²) as at the start of training.
std::shared_ptr<const Model> random_gpt2(int layers, int heads, int d_model, int vocab, int context, Backend& backend);

}  // namespace headscope::bench
