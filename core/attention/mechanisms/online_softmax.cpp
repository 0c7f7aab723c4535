#include "core/attention/mechanisms/online_softmax.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/mechanism_math.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {}

OnlineSoftmax::OnlineSoftmax(Index n, Index d_v)
    : max(Tensor::full({n, 1}, -float_infinity)),
      sum(Tensor::zeros({n, 1})),
      mixed(Tensor::zeros({n, d_v})),
      newest(Tensor::zeros({n, 1})) {}

bool OnlineSoftmax::add(const MechanismInput& in, KeyRange rows, KeyRange keys) {
  bool any = false;
  for (Index i = rows.begin; i < rows.end && !any; ++i) {
    const KeyRange seen = in.rule->keys(i, in.m());
    any = seen.size() > 0 && seen.begin < keys.end && seen.end > keys.begin;
  }
  if (!any) return false;
  Tensor scores = times(product_t(in.q.slice(0, rows.begin, rows.end), in.k.slice(0, keys.begin, keys.end)), in.scale);
  for (Index i = rows.begin; i < rows.end; ++i) {
    float* const row = &scores.ref(i - rows.begin, 0);
    const KeyRange seen = in.rule->keys(i, in.m());
    const Index begin = std::clamp(seen.begin, keys.begin, keys.end), end = std::clamp(seen.end, begin, keys.end);
    std::fill(row, row + (begin - keys.begin), -float_infinity);
    std::fill(row + (end - keys.begin), row + keys.size(), -float_infinity);
    if (!in.rule->plain() && end > begin)
      in.rule->apply(i, begin, {row + (begin - keys.begin), static_cast<std::size_t>(end - begin)});
    const float before = max.at(i, 0), here = *std::max_element(row, row + keys.size());
    const float after = std::max(before, here);
    newest.ref(i, 0) = 0;
    if (after == -float_infinity) continue;
    const float shrink = before == -float_infinity ? 0.0f : std::exp(before - after);
    float added = 0;
    for (Index j = 0; j < keys.size(); ++j)
      added += row[j] = row[j] == -float_infinity ? 0.0f : std::exp(row[j] - after);
    max.ref(i, 0) = after;
    sum.ref(i, 0) = sum.at(i, 0) * shrink + added;
    newest.ref(i, 0) = added;
    for (Index c = 0; c < mixed.dim(1); ++c) mixed.ref(i, c) *= shrink;
  }
  // A row of the block without a visible key still holds −∞ only.
  for (float& value : scores.mutable_values())
    if (value == -float_infinity) value = 0;
  const Tensor part = product(scores, in.v.slice(0, keys.begin, keys.end));
  for (Index i = rows.begin; i < rows.end; ++i)
    for (Index c = 0; c < mixed.dim(1); ++c) mixed.ref(i, c) += part.at(i - rows.begin, c);
  return true;
}

Tensor OnlineSoftmax::output() const {
  Tensor out = mixed.copy();
  for (Index i = 0; i < out.dim(0); ++i)
    for (Index c = 0; c < out.dim(1); ++c) out.ref(i, c) = sum.at(i, 0) > 0 ? out.at(i, c) / sum.at(i, 0) : 0;
  return out;
}

Tensor online_weights(const MechanismInput& in, const OnlineSoftmax& state, const std::vector<std::uint8_t>& done) {
  Tensor weights = raw_scores(in);
  apply_rule(*in.rule, weights);
  for (Index i = 0; i < in.n(); ++i)
    for (Index j = 0; j < in.m(); ++j) {
      float& w = weights.ref(i, j);
      const bool counts = nth(done, i * in.m() + j) && w != -float_infinity && state.sum.at(i, 0) > 0;
      w = counts ? std::exp(w - state.max.at(i, 0)) / state.sum.at(i, 0) : 0;
    }
  return weights;
}

void add_weights_so_far(MechanismResult& result, const MechanismInput& in, std::vector<std::uint8_t> hidden) {
  result.steps.push_back({.id = "weights",
                          .title = said("Weights so far"),
                          .formula = "exp(s − m) ÷ l",
                          .value = result.weights,
                          .range = MechanismStep::Range::probability,
                          .masked = std::move(hidden)});
  result.steps.push_back(output_step(result.weights, in.v, result.output, "O ÷ l"));
}

}  // namespace headscope::mechanism
