#pragma once
// The vectorised inner loops of state_mixing, compiled per instruction set. Private to core/attention. Letters as
// there: N states of width P; arrays by token lie `step` numbers apart.

#include "core/tensor/tensor.h"

namespace headscope::state_lanes {

struct Rows {
  const float* data = nullptr;
  Index step = 0;
  const float* operator[](Index t) const { return data + t * step; }
  Rows from(Index t) const { return {data + t * step, step}; }
};
struct WritableRows {
  float* data = nullptr;
  Index step = 0;
  float* operator[](Index t) const { return data + t * step; }
  WritableRows from(Index t) const { return {data + t * step, step}; }
};

/// One lane of one text.
struct Lane {
  Index states = 0, width = 0;  ///< N, P
  Rows x, delta, b, c;          ///< (P), (1), (N), (N) per token
  const float* a = nullptr;     ///< (N)
  float d = 0;
};

/// exp(Δ_t a) of n tokens, (N) each.
void decays(const Lane& lane, Index n, WritableRows out);
/// y of n tokens, (P) each, from `before` (N, P). `h`: the state behind each; rows at one place (step 0) hold the last.
/// `keep`: the decays of these tokens.
void mix(const Lane& lane, Index n, Rows keep, const float* before, WritableRows h, WritableRows y);

/// What the way back through one lane adds to; all but x and delta hold something already.
struct LaneGradients {
  WritableRows x, delta;
  bool add_x = false, add_delta = false;  ///< false: written
  WritableRows b, c;                      ///< of this lane's part of the text
  float* a = nullptr;                     ///< (N)
  float d = 0;
};
/// The way back through n tokens, last one first. `g` (N, P): the gradient of the state behind the last token as later
/// ones left it; then that of `before`.
void back(const Lane& lane, Index n, Rows keep, const float* before, Rows h, Rows dy, float* g, LaneGradients& out);

/// α_ts of token t for s ≤ t. `reach` (N): scratch.
void implied(const Lane& lane, Index t, Rows keep, float* reach, float* row);

/// ln(1 + e^z), z = x + bias (may be null); above 20 z itself.
void softplus(const float* x, const float* bias, Index n, float* out);
/// Its gradient dy ÷ (1 + e^−z).
void softplus_back(const float* x, const float* bias, const float* dy, Index n, float* out);
void minus_exp(const float* x, Index n, float* out);

}  // namespace headscope::state_lanes
