#pragma once
// Sinusoidal positions (Vaswani et al., Attention Is All You Need, 2017): dimensions 2i and 2i + 1 of position p are
// sin(p · ω_i) and cos(p · ω_i), ω_i = base^(−2i/d). Moving on by k turns every pair by k · ω_i, whatever p is.

#include "core/tensor/tensor.h"

namespace headscope {

/// (count, d): positions first … first + count − 1. An odd d ends with a sine.
Tensor sinusoidal_positions(Index first, Index count, Index d, double base = 10000);

}  // namespace headscope
