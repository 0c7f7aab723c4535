#pragma once
// What the mechanisms share: products, rules applied to whole score matrices, softmax of rows (the one of the attention
// pass), and the arithmetic behind a cell written out. Shapes stand at each function; results are contiguous.

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "core/attention/mechanism.h"
#include "core/trace/row_stats.h"

namespace headscope::mechanism {

Tensor product(const Tensor& a, const Tensor& b);    ///< (n, r) · (r, m)
Tensor product_t(const Tensor& a, const Tensor& b);  ///< (n, r) · (m, r)ᵀ
/// f of every entry; inlined, so that the loop is the compiler's to vectorise.
template <class Function>
Tensor each(const Tensor& x, Function f) {
  Tensor out = x.copy();
  for (float& value : out.mutable_values()) value = f(value);
  return out;
}
Tensor times(const Tensor& x, float factor);
/// a − b and a + b; REQUIRES equal shapes.
Tensor minus(const Tensor& a, const Tensor& b);
Tensor plus(const Tensor& a, const Tensor& b);
/// √Σ x² over all entries, in float64.
double norm(const Tensor& x);
/// Entries drawn from N(0, 1), (rows, columns).
Tensor gaussian(Index rows, Index columns, std::uint64_t seed);

/// How the scores come about, by the scale that is used: "Q Kᵀ ÷ √d", "Q Kᵀ" or "0.25 · Q Kᵀ".
std::string scores_text(const MechanismInput& in, std::string_view keys = "Kᵀ");
/// scale · Q Kᵀ, every cell.
Tensor raw_scores(const MechanismInput& in);
/// Adds the rule's bias and writes −∞ into the cells that it hides; row i is query `first` + i.
void apply_rule(const AttentionRule& rule, Tensor& scores, Index first = 0);
/// One query alone, for studies of a row.
struct RowScores {
  Index row = 0;
  Tensor plain;                      ///< (1, m) scale · q·k
  Tensor scores;                     ///< (1, m) after the rule: −∞ where it hides
  std::vector<std::uint8_t> hidden;  ///< (m), 1 = hidden
  float sink = no_sink;              ///< AttentionRule::sink of the row
  Index seen() const { return static_cast<Index>(std::ranges::count(hidden, 0)); }
};
/// Of the query at `place`: 0 the first, 1 the last.
RowScores row_scores(const MechanismInput& in, double place);
/// Sharper or flatter, and 0 in the hidden cells: as a step shows it.
Tensor shown_scores(const RowScores& row, double sharpness);
/// Softmax of the scores so sharp, (1, m); the sink, where there is one, stays what it is.
Tensor row_weights(const RowScores& row, double sharpness);
/// softmax_gradient() of these weights.
double row_gradient(const RowScores& row, double sharpness);
/// "Σ e^score", "(Σ e^score + e^0.50)" where a sink takes part.
std::string row_sum_text(const RowScores& row);
/// The first `most` queries and keys of a longer text.
MechanismInput first_tokens(const MechanismInput& in, Index most);
/// Row-major, 1 = hidden; empty when nothing is.
std::vector<std::uint8_t> hidden_cells(const AttentionRule& rule, Index n, Index m);
/// 1 + elu(x): the positive feature map of linear attention.
float one_plus_elu(float x);
/// Rows of length 1; a row of zeros stays.
Tensor unit_rows(const Tensor& x);
/// x σ(x).
float silu(float x);
/// Mean over the rows of −Σ p ln p in nats, rows divided by their sums, rows without weight left out; NaN when a weight
/// is negative.
double mean_entropy(const Tensor& weights);
/// Frobenius norm of diag(p) − p pᵀ, the gradient of a row p (1, m) of softmax by its scores: 0 for a one-hot row.
/// `sink`: what a sink takes. REQUIRES that p and it sum to 1, or p is 0 everywhere.
double softmax_gradient(const Tensor& p, double sink = 0);
/// 0 in the cells that `hidden` marks.
void hide(const std::vector<std::uint8_t>& hidden, Tensor& cells);
/// Softmax of each row, a row with no finite score all zero: the attention pass's own row function.
/// `rule`: whose sinks take part, row i for query `first` + i; may be null.
Tensor softmax_rows(Tensor scores, const AttentionRule* rule = nullptr, Index first = 0);

/// Throws Cancelled when asked to stop.
void check(const MechanismInput& in);
/// Throws Error naming `id` unless the rule is causal and n = m.
void need_causal(const MechanismInput& in, std::string_view id);

// ---- arithmetic in words
std::string text(double value);
/// As worked examples write it: two decimals, "0.40", one from 10 on, "20.0", two digits below 0.1; a whole number as
/// such, "10", unless `decimals`.
std::string brief(double value, bool decimals = false);
/// "0.40·10 + 0.20·20 + 0.40·30 = 20.0" for row i of a and column j of b, times `factor`; the largest terms of a long
/// sum.
std::string sum_text(Index terms, const std::function<std::pair<double, double>(Index)>& term, double factor = 1);
std::function<std::string(Index, Index)> explain_product(Tensor a, Tensor b, double factor = 1);
std::function<std::string(Index, Index)> explain_product_t(Tensor a, Tensor b, double factor = 1);

// ---- steps
MechanismStep given(std::string id, std::string title, Tensor value, MechanismAxis rows);
/// Q, K and V as they come in.
void add_inputs(std::vector<MechanismStep>& steps, const MechanismInput& in);
MechanismStep output_step(const Tensor& weights, const Tensor& v, const Tensor& output, std::string formula);

// ---- chips
ShapeChip chip(ShapeChip::Role role, std::string_view text, Index rows, Index columns, std::string before = "→");

// ---- cost of the plain form: n² scores and their mixing, everything kept in a cache
MechanismCost plain_cost(const MechanismShape& s);
inline double cache_of(const MechanismShape& s) {
  return static_cast<double>(s.n) * static_cast<double>(s.d + s.d_v) * 4;
}

}  // namespace headscope::mechanism
