#pragma once
// What makes sinusoidal positions (core/attention/sinusoids.h) relative: moving on by k turns every pair by k · ω_i, so
// PE(p + k) is PE(p) times one matrix, whatever p is (Vaswani et al., 2017, section 3.5).

#include "core/attention/sinusoids.h"

namespace headscope {

/// The matrix M with PE(p + shift) = PE(p) M for every p: d/2 rotations by shift · ω_i. (d, d); REQUIRES d even.
Tensor sinusoidal_shift(double shift, int d, double base = 10000);

}  // namespace headscope
