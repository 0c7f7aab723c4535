#pragma once
// Positions as binary numbers: the clock of which sinusoids are the smooth form. Bit b flips every 2^b positions as
// hand i of the sinusoids turns every 2π · base^(2i/d).

#include "core/tensor/tensor.h"

namespace headscope {

/// Bits of positions [0, count), the fastest first: 0 or 1, (count, bits).
Tensor binary_table(Index count, int bits);

}  // namespace headscope
