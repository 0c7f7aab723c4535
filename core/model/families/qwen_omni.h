#pragma once
// The thinkers of Qwen's Omni models: what reads, beside what speaks. A file holds both, or the thinker alone.

#include "core/model/families/text_half.h"

namespace headscope {

/// `around`: the object in which text_config stands, of a file with both; "" of a thinker alone.
Family qwen2_5_omni_half(std::string model_type, std::string architecture, std::string around);
Family qwen3_omni_half(std::string model_type, std::string architecture, std::string around);

}  // namespace headscope
