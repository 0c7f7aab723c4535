#pragma once
// What BigBird and BigBird-PEGASUS share.

#include "core/model/config_map.h"

namespace headscope {

/// attention_type with block_size and num_random_blocks: with block-sparse attention `context` ends where every token
/// sees all others, and what the table of positions has beyond is `position_tail`.
void seen_whole(ConfigMap& keys, ModelConfig& c);

}  // namespace headscope
