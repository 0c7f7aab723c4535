#pragma once
// The vectorised inner loops of the ops' backward passes, compiled per instruction set. Pure functions over rows.
// `add`: the gradient is added to what `dx` holds; otherwise written.

#include "core/tensor/tensor.h"

namespace headscope::row_gradients {

void accumulate(const float* from, Index n, bool add, float* to);
/// dx of x · other
void multiply(const float* dy, const float* other, Index n, bool add, float* dx);
void relu(const float* x, const float* dy, Index n, bool add, float* dx);
void gelu(const float* x, const float* dy, Index n, bool add, float* dx);
void gelu_tanh(const float* x, const float* dy, Index n, bool add, float* dx);
void silu(const float* x, const float* dy, Index n, bool add, float* dx);
/// The rotation of row_ops::rotate backwards.
void rotate(const float* dy, const float* cosine, const float* sine, Index half, bool add, float* dx);
/// One row of layer_norm or, with center false, rms_norm. dx may be null; d_gain and d_bias are added to, d_bias may be
/// null.
void norm(bool center, const float* x, const float* gain, const float* dy, Index n, float epsilon, bool add, float* dx,
          float* d_gain, float* d_bias);
/// Of a row p = softmax(scale · s), in place: dp → ds = scale · p (dp − Σ p dp)
void softmax(const float* p, Index n, float scale, float* dp);
/// Of weights p with the sum S: dp += price · dH/dp for the entropy H = −Σ p/S ln(p/S) of the row renormalised, that is
/// −price/S · (ln(p/S) + H); cells of weight 0, and rows whose S is 0, stay as they are.
void entropy(const float* p, Index n, float price, float* dp);
/// p = factor · softmax(x); returns ln Σ exp(x), not finite when an element is not.
double scaled_softmax(const float* x, Index n, float factor, float* p);
/// Σ x², in float64 from partial sums of at most 4,096 elements.
double sum_of_squares(const float* x, Index n);

}  // namespace headscope::row_gradients
