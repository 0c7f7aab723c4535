#pragma once
// How sure a mean over rows is: how often chance alone would do as well.

#include "core/tensor/tensor.h"

namespace headscope {

/// Of `rows` independent numbers within 0 … 1 whose expected values average `chance`, the mean reaches `score` with at
/// most this probability: exp(−rows · KL(score ‖ chance)), KL of two coins, natural logarithm (Hoeffding, Probability
/// Inequalities for Sums of Bounded Random Variables, 1963, theorem 1). 1 where the score is not above chance. A bound:
/// the probability itself is smaller, often by far. REQUIRES scores and chances within 0 … 1.
///
/// For attention: a head that places the weights of each row in random order on the keys that the row may see puts on k
/// chosen ones of n visible, in expectation, k / n of the row, whatever the weights are.
double chance_bound(double score, double chance, Index rows);
/// Its natural logarithm, which does not underflow.
double log_chance_bound(double score, double chance, Index rows);

}  // namespace headscope
