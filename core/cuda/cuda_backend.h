#pragma once
// Matrix products on an NVIDIA card. One header, two bodies chosen by CMake (HEADSCOPE_CUDA): cuda_backend.cpp with
// cuBLAS, no_cuda.cpp without. Everything but the products with weights stays on the CPU, which the base class
// computes.

#include <memory>
#include <string>

#include "core/tensor/backend.h"

namespace headscope {

/// "" when a card can be used, else why not: not built in, no driver, no card.
std::string why_no_cuda();
/// Weights live on the first card; activations travel there and back for each product. Throws Error when there is none.
std::unique_ptr<Backend> make_cuda_backend(int threads = 0);

}  // namespace headscope
