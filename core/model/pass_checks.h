#pragma once
// What a pass of a model cannot run, refused before it begins.

#include <span>

#include "core/model/model.h"

namespace headscope {

/// Throws Error as Model::forward() says, whose arguments these are.
void check_pass(const ModelConfig& config, const Ctx& ctx, std::span<const std::int32_t> tokens, const KvCache* cache,
                const LayerRange& layers, std::span<const Index> lengths);

}  // namespace headscope
