#pragma once
// Heads that share keys, as a picture: eight query heads in every way of sharing, and the open model's own below them.

#include "core/model/config.h"
#include "viz/scene/key_sharing.h"

namespace headscope {

/// Eight query heads of any width, with 8, 4, 2 and 1 key heads, and the latent of DeepSeek-V2's proportions; of a
/// model with keys and values also its own numbers of heads. `model` may be null.
Scene sharing_ways_scene(const ModelConfig* model, double width, const Style& style);

}  // namespace headscope
