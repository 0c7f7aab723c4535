#pragma once
// How a state space begins. Private to core/train.

#include "core/base/random.h"
#include "core/model/family.h"

namespace headscope {

/// As its authors publish it (Gu & Dao 2023; Dao & Gu 2024): projections and convolution uniform in ±1 ÷ √(what they
/// sum over), the one that writes to the stream ÷ √layers; A = −1 … −N for the states of each channel, or of each head
/// uniform in −[1, 16]; steps log-uniform in [0.001, 0.1] before anything is read; D and gains 1, other biases 0.
void draw_state_space(RawLayer& layer, const ModelConfig& config, Random& random);

}  // namespace headscope
