#pragma once
// The vectorised inner loops of gated_delta, compiled per instruction set. Private to core/attention. Letters as there:
// a state of K rows of V numbers; arrays by token lie `step` numbers apart.

#include "core/attention/state_lanes.h"

namespace headscope::delta_lanes {

using state_lanes::Rows;
using state_lanes::WritableRows;

/// A head of one text.
struct Head {
  Index keys = 0, values = 0;    ///< K, V
  Rows q, k, v;                  ///< (K), (K), (V)
  Rows beta;                     ///< (1)
  const float* keeps = nullptr;  ///< of every token: e^(Δ a)
};

/// o of n tokens, (V) each, from `before` (K, V). `s`: the state behind each; rows at one place (step 0) hold the last.
void mix(const Head& head, Index n, const float* before, WritableRows s, WritableRows o);

/// What the way back writes or adds to.
struct HeadGradients {
  WritableRows q, k;     ///< written
  WritableRows v, beta;  ///< added to where the flags say so
  bool add_v = false, add_beta = false;
  float* decay = nullptr;  ///< (n): of ln e^(Δ a); written
};
/// The way back through n tokens, last one first. `g` (K, V): the gradient of the state behind the last token as later
/// ones left it; then that of `before`. `scratch`: (2, V).
void back(const Head& head, Index n, const float* before, Rows s, Rows d_o, float* g, float* scratch,
          const HeadGradients& out);

/// α_ts of token t for s ≤ t. `reach` (K): scratch.
void implied(const Head& head, Index t, float* reach, float* row);

/// factor ÷ (1 + e^−x)
void sigmoid(const float* x, Index n, float factor, float* out);

}  // namespace headscope::delta_lanes
