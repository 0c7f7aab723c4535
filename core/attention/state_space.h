#pragma once
// Linear state-space models: x_t = A x_{t−1} + B u_t, y_t = C x_t + D u_t. With fixed matrices the recurrence is a
// convolution with the kernel K = (C B, C A B, C A² B, …), which a fast Fourier transform takes in n log n steps
// (Gu, Goel & Ré, Efficiently Modeling Long Sequences with Structured State Spaces, 2022). HiPPO-LegS gives A and B for
// which the state holds the best polynomial through all that was seen so far (Gu, Dao, Ermon, Rudra & Ré, HiPPO:
// Recurrent Memory with Optimal Polynomial Projections, 2020).
// All numbers are doubles; matrices are row-major. Thread rule: pure functions.

#include <span>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

struct StateSpace {
  Index size = 1;               ///< N, of the state
  std::vector<double> a, b, c;  ///< (N, N), (N), (N)
  double d = 0;                 ///< what passes by the state
};

/// y, as long as u. `states`: filled with x_t one after another, (n, N); may be null.
std::vector<double> run_recurrence(const StateSpace& system, std::span<const double> u,
                                   std::vector<double>* states = nullptr);
/// The first n numbers of K; D is not part of it.
std::vector<double> kernel(const StateSpace& system, Index n);
/// y_t = Σ_s K_s u_{t−s}: the sum itself, n² products …
std::vector<double> convolve(std::span<const double> k, std::span<const double> u);
/// … and by fast Fourier transforms of twice the length, so that nothing wraps round.
std::vector<double> convolve_fft(std::span<const double> k, std::span<const double> u);

/// A system of continuous time, x' = A x + B u, in steps of Δ. Bilinear: A_d = (1 − ΔA/2)⁻¹ (1 + ΔA/2),
/// B_d = (1 − ΔA/2)⁻¹ Δ B. Zero-order hold (the input is constant for a step): A_d = e^{ΔA}, B_d = A⁻¹ (A_d − 1) B, for
/// an A of one number; a larger A throws Error.
enum class Discretization { bilinear, zero_order_hold };
StateSpace discretize(const StateSpace& continuous, double step, Discretization how);

/// The HiPPO-LegS matrices (of x' = −A x / t + B u / t): A_nk = √((2n+1)(2k+1)) for n > k, n + 1 for n = k, else 0;
/// B_n = √(2n+1). (N, N) and (N).
std::vector<double> hippo_matrix(Index size);
std::vector<double> hippo_input(Index size);

/// The states of HiPPO-LegS after each input, by the bilinear form at t = 1, 2, …: (n, N).
std::vector<double> hippo_memory(std::span<const double> u, Index size);
/// What a state after t inputs remembers of them: the polynomial Σ_n x_n √(2n+1) P_n(2 s / t − 1) in the middle of each
/// input's interval, s = ½, 1½, … t − ½.
std::vector<double> hippo_recall(std::span<const double> state, Index t);

}  // namespace headscope
