#pragma once
// Activations, number by number. Private to core/cuda.

#include "core/cuda/kernels.h"

namespace headscope::cuda {

__device__ inline float bent(Curve f, float x) {
  switch (f) {
    case Curve::relu:
      return x < 0 ? 0.0f : x;
    case Curve::gelu:
      return x * normcdff(x);
    case Curve::gelu_tanh:
      return 0.5f * x * (1.0f + tanhf(0.7978845608028654f * (x + 0.044715f * x * x * x)));
    case Curve::silu:
      break;
  }
  return x / (1.0f + expf(-x));
}

}  // namespace headscope::cuda
