#pragma once
// What a state space makes of every token (Gu & Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces,
// 2023): by its steps Δ it selects what its states take in and what they forget.
//   kept_t, lane    = mean over states of e^(Δ_t a)     share of what a state held that is left behind token t: near 1
//                                                       a lane passes over the token, near 0 it starts anew
//   written_t, lane = Δ_t |x_t|                         what it takes in, before B; of the gated delta rule β_t |v_t|,
//                                                       less what already stands at its key
// and ‖B_t‖, ‖C_t‖ over all groups: how strongly the token is written into states, and how strongly they are read
// there.

#include <set>
#include <vector>

#include "core/model/model.h"
#include "core/trace/trace.h"

namespace headscope {

struct StateSteps {
  int layer = 0;
  Tensor delta, kept, written;  ///< (token, lane)
  std::vector<double> b, c;     ///< (token): ‖B‖, ‖C‖
};

/// Throws Error in a model without a state space.
std::set<SiteKind> state_step_sites(const Model& model);
/// Of every layer that is one, in order. `trace` must have recorded state_step_sites(). Throws likewise.
std::vector<StateSteps> read_state_steps(const Model& model, const Trace& trace);

/// Mean over lanes of a row (token).
double lane_mean(const Tensor& values, Index token);

}  // namespace headscope
