#pragma once
// What models of few bits do to what their matrices read (Wang et al., BitNet: Scaling 1-bit Transformers for Large
// Language Models, 2023; b1.58, 2024): each row is rounded to whole numbers −2^(b−1) … 2^(b−1) − 1 times a step of its
// own, of which its largest number has 2^(b−1) − 1; a row whose largest is below 1e-5 has the step of that.

#include "core/tensor/backend.h"
#include "core/tensor/tensor.h"

namespace headscope {

/// x (rows, columns) rounded to `bits`; x itself where these are 0. Gradients pass as if it were not rounded
/// (straight-through, Bengio et al. 2013), as in training such models. The backend holds x's values.
Tensor rounded_rows(Backend& backend, const Tensor& x, int bits);

}  // namespace headscope
