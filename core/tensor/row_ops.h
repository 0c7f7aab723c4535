#pragma once
// The vectorised inner loops of Backend's element-wise ops, compiled per instruction set. Pure functions over rows.

#include "core/tensor/tensor.h"

namespace headscope::row_ops {

void add(const float* a, const float* b, Index n, float* out);
void multiply(const float* a, const float* b, Index n, float* out);
void layer_norm(const float* x, const float* gain, const float* bias, Index n, float epsilon, float* out);
void rms_norm(const float* x, const float* gain, Index n, float epsilon, float* out);
void relu(const float* x, Index n, float* out);
void gelu(const float* x, Index n, float* out);       ///< x Φ(x), exact (Hendrycks & Gimpel, GELUs, 2016)
void gelu_tanh(const float* x, Index n, float* out);  ///< its tanh approximation, GPT-2's "gelu_new"
void silu(const float* x, Index n, float* out);       ///< x / (1 + exp(−x))
/// Pair (i, i + half) turned by the angle with these cosines and sines (half values each).
void rotate(const float* x, const float* cosine, const float* sine, Index half, float* out);
bool finite(const float* x, Index n);
/// ln Σ exp(x), added up in double precision. n > 0; −infinity where every x is.
double log_sum_exp(const float* x, Index n);

}  // namespace headscope::row_ops
