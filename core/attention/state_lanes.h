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

/// Lanes of one text that are computed together: one of some width, with one step, or several of width 1 beside each
/// other (`columns`), with a step each.
struct Tile {
  Index states = 0, width = 0;  ///< N; P, or the number of columns
  bool columns = false;
  Rows x, delta, b, c;                               ///< per token: (width), (1 or columns), (N), (N)
  const float* a = nullptr;                          ///< (N), or (N, columns)
  const float* d = nullptr;                          ///< (1), or (columns)
  Index own() const { return columns ? width : 1; }  ///< how many numbers of a kind it has
};

/// exp(Δ_t a) of n tokens: (N), or (N, columns), each.
void decays(const Tile& tile, Index n, WritableRows out);
/// y of n tokens, (width) each, from `before` (N, width). `h`: the state behind each; rows at one place (step 0) hold
/// the last. `keep`: the decays of these tokens.
void mix(const Tile& tile, Index n, Rows keep, const float* before, WritableRows h, WritableRows y);

/// What the way back adds to; x and delta may be written instead.
struct TileGradients {
  WritableRows x, delta;
  bool add_x = false, add_delta = false;
  WritableRows b, c;   ///< of these lanes' part
  float* a = nullptr;  ///< as Tile's
  float* d = nullptr;  ///< likewise
};
/// The way back through n tokens, last one first. `g` (N, width): the gradient of the state behind the last token as
/// later ones left it; then that of `before`. `scratch`: (3, width).
void back(const Tile& tile, Index n, Rows keep, const float* before, Rows h, Rows dy, float* g, float* scratch,
          const TileGradients& out);

/// α_ts of token t for s ≤ t of a lane, one of some width. `reach` (N): scratch.
void implied(const Tile& lane, Index t, Rows keep, float* reach, float* row);

/// ln(1 + e^z), z = x + bias (may be null); above 20 z itself.
void softplus(const float* x, const float* bias, Index n, float* out);
/// Its gradient dy ÷ (1 + e^−z).
void softplus_back(const float* x, const float* bias, const float* dy, Index n, float* out);
void minus_exp(const float* x, Index n, float* out);

}  // namespace headscope::state_lanes
