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

// Means of α over lanes (state_means.cpp): every row of numbers below is `depth` long, those of a lane's N states
// beside the next lane's, filled up with zeros to a multiple of depth_step.
inline constexpr Index leaf_tokens = 16;  ///< most tokens at once
inline constexpr Index depth_step = 16;   ///< whole vectors, whatever the processor

/// Lanes of one text from some token on.
struct Bundle {
  Index lanes = 0, states = 0, depth = 0;
  Rows delta, b, c;              ///< per token: (lanes), and what all groups have
  const float* a = nullptr;      ///< (lanes, N)
  const Index* place = nullptr;  ///< (lanes): where a lane's group begins in b and c
};
/// Per token exp(Δ a), Δ B and C.
struct Factors {
  float *keep, *write, *read;
};

/// Those of n tokens; decays below exp(−80) are 0.
void spread(const Bundle& in, Index n, const Factors& out);
/// exp(a · span), span (lanes); 0 below exp(−80).
void passed(const Bundle& in, const float* span, float* out);
/// C of each of n tokens, decayed since before the first of them: rows from `skip` on.
void since(const Factors& of, Index n, Index skip, Index depth, float* out);
/// Δ B of each of n tokens, decayed until the last of them.
void until(const Factors& of, Index n, Index depth, float* out);
/// The same, to the same bits, without any factors but in passing. `left` (depth): scratch.
void until(const Bundle& in, Index n, float* left, float* out);
/// Adds α_ts of n tokens among each other, t ≥ first, as vectors whose lanes are still to be summed, to
/// partial_size() numbers.
void among(const Factors& of, Index n, Index first, Index depth, float* partial);
Index partial_size();
/// Their sums: `row` (t + 1).
void summed(const float* partial, Index t, float* row);
/// Multiplies n rows by `factors`, or panels of `width` (depth, width) each number of depth by its own. What float32
/// holds below 1e-35 becomes 0: it has few digits soon, and takes a processor long.
void decay_rows(float* rows, Index n, Index depth, const float* factors);
void decay_panels(float* panels, Index n, Index depth, Index width, const float* factors);

/// exp(a (upto − sum_s)) Δ_s of n tokens; 0 below exp(−80).
void reaches(const double* sums, double upto, double a, const float* delta, Index n, float* out);
/// out_s = product_s · (left · reach_s), or adds that.
void scaled(const float* product, const float* reach, float left, Index n, bool add, float* out);

/// ln(1 + e^z), z = x + bias (may be null); above 20 z itself.
void softplus(const float* x, const float* bias, Index n, float* out);
/// Its gradient dy ÷ (1 + e^−z).
void softplus_back(const float* x, const float* bias, const float* dy, Index n, float* out);
void minus_exp(const float* x, Index n, float* out);

}  // namespace headscope::state_lanes
