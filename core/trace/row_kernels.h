#pragma once
// The vectorised inner loops of row_stats.cpp, compiled per instruction set.

#include "core/tensor/tensor.h"

namespace headscope::row_kernels {

struct SoftmaxSums {
  float max = 0;    ///< largest score
  float rest = 0;   ///< Σ_{k≥1} exp(s_k − max), first element left out
  float slope = 0;  ///< Σ_{k≥1} exp(s_k − max) (s_k − max)
};

/// row[k] ← exp(row[k] − max); −infinity gives 0. `n` > 0 and at least one score is finite.
SoftmaxSums exponentiate(float* row, Index n, float max);
float maximum(const float* row, Index n);                  ///< −infinity for n = 0
float least_below_zero(const float* row, Index n);         ///< 0 where none is
Index find_first(const float* row, Index n, float value);  ///< −1 when absent
void scale(float* row, Index n, float factor);             ///< row *= factor
/// row *= factor; column += row; diagonal += row, element by element.
void scale_and_add(float* row, Index n, float factor, float* column, float* diagonal);
/// out[k] = exp(scores[k] − log_sum_exp), as exact as a float holds it though log_sum_exp is longer; −infinity gives 0,
/// NaN stays.
void weights_of_scores(const float* scores, Index n, double log_sum_exp, float* out);
/// peak = whichever of peak and row is farther from 0, element by element: of equals the positive, and NaN where either
/// is NaN.
void farther(float* peak, const float* row, Index n);
/// out[c] = the farthest from 0 of row[c · bin] … row[c · bin + bin − 1], as far as there are n of them: ⌈n / bin⌉
/// numbers, chosen as farther() does. `out` is not `row`.
void farthest(const float* row, Index n, Index bin, float* out);
/// Σ w and Σ w ln w over k ≥ 1 (0 ln 0 = 0). `n` > 0.
struct EntropySums {
  float mass = 0, plogp = 0;
};
EntropySums entropy_sums(const float* row, Index n);

}  // namespace headscope::row_kernels
