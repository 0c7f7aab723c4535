#pragma once
// What memories of different depth (neural_memory.h) still know of the pairs they were taught: the question for which
// Titans (Behrouz, Zhong & Mirrokni 2024, sections 3.1 and 5.5) prefers L ≥ 2 layers to a matrix. Thread rule: pure
// functions.

#include <stop_token>
#include <string>
#include <vector>

#include "core/attention/neural_memory.h"

namespace headscope {

struct RecallCurve {
  MemoryShape shape;
  std::vector<double> pairs;  ///< taught so far, ascending
  std::vector<double> error;  ///< Σ ‖M(kₛ) − vₛ‖² ÷ Σ ‖vₛ‖² over all of them: 1 for a memory that says 0
  /// How many pairs had been taught when the error passed `most_recall_error`: the line ends before. 0 = never.
  Index lost_at = 0;
};
constexpr double most_recall_error = 10;

/// Teaches the pairs k (n, d) → v (n, d_v) once, in order, and asks for all so far after each of the counts that
/// recall_points(n) gives. Throws Cancelled.
RecallCurve recall_while_learning(const Tensor& k, const Tensor& v, const MemoryRates& rates, const MemoryShape& shape,
                                  const std::stop_token& stop = {});
/// Every count up to 32, then 24 in even ratios, the last n.
std::vector<Index> recall_points(Index n);

struct TaughtPairs {
  Tensor k, v;
};
/// `count` pairs of a map that is no matrix: keys of four signs, each ± ½, and v = 8 k₁ k₂ k₃ = ± 1 (parity). Every
/// matrix is wrong by at least as much as one of zeros, which is wrong by 1, where all sixteen keys come equally often.
TaughtPairs parity_pairs(Index count, std::uint64_t seed);

}  // namespace headscope
