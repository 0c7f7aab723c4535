// Many heads (Vaswani et al. 2017): the width d is cut into h parts, each attends for itself; the parts are put side by
// side and multiplied by W_O. That equals the sum over heads of z_h W_O^h, W_O^h being the rows of W_O that belong to
// the head: heads write side by side into one residual stream (Elhage et al., A Mathematical Framework for Transformer
// Circuits, 2021). W_O is drawn, entries N(0, 1/d); the number of heads changes nothing about the parameters.
// Shapes: z_h (n, d/h), W_O (d, d). Cost: n² · 2d whatever h is, and n d² for W_O.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/tensor/gap.h"

namespace headscope::mechanism {

namespace {

constexpr Index shown_heads = 8;

/// The largest number of heads up to `wanted` that divides d.
Index heads_for(Index wanted, Index d, Index d_v) {
  for (Index h = std::min(wanted, d); h > 1; --h)
    if (d % h == 0 && d_v % h == 0) return h;
  return 1;
}

MechanismResult run(const MechanismInput& in, const MechanismValues& values, Detail) {
  const Index heads = heads_for(values.whole("heads"), in.d(), in.d_v()), d = in.d() / heads, d_v = in.d_v() / heads;
  const auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  const Tensor wo = times(gaussian(in.d_v(), in.d_v(), values.seed()),
                          static_cast<float>(1 / std::sqrt(static_cast<double>(in.d_v()))));
  Tensor joined = Tensor::zeros({in.n(), in.d_v()}), sum = Tensor::zeros({in.n(), in.d_v()});
  MechanismResult result;
  for (Index h = 0; h < heads; ++h) {
    check(in);
    const MechanismInput own{in.q.slice(1, h * d, (h + 1) * d).copy(), in.k.slice(1, h * d, (h + 1) * d).copy(),
                             in.v.slice(1, h * d_v, (h + 1) * d_v).copy(),
                             static_cast<float>(1 / std::sqrt(static_cast<double>(d))), in.rule};
    Tensor scores = raw_scores(own);
    apply_rule(*in.rule, scores);
    const Tensor p = softmax_rows(std::move(scores)), z = product(p, own.v);
    const Tensor part = product(z, wo.slice(0, h * d_v, (h + 1) * d_v));
    for (Index i = 0; i < in.n(); ++i) {
      for (Index c = 0; c < d_v; ++c) joined.ref(i, h * d_v + c) = z.at(i, c);
      for (Index c = 0; c < in.d_v(); ++c) sum.ref(i, c) += part.at(i, c);
    }
    if (h < shown_heads)
      result.steps.push_back({.id = fmt::format("head-{}", h),
                              .title = fmt::format("Head {}", h),
                              .formula = fmt::format("dimensions {}–{}", h * d, (h + 1) * d - 1),
                              .value = p,
                              .range = MechanismStep::Range::probability,
                              .masked = hidden});
  }
  const Tensor at_once = product(joined, wo);
  const double gap = greatest_gap(at_once, sum);
  result.steps.push_back({.id = "joined",
                          .title = "Heads side by side",
                          .formula = "[z₀ … z_h]",
                          .value = joined,
                          .columns = MechanismAxis::dimension});
  result.steps.push_back({.id = "wo",
                          .title = "W_O",
                          .formula = "drawn; rows belong to heads",
                          .value = wo,
                          .rows = MechanismAxis::dimension,
                          .columns = MechanismAxis::dimension});
  result.steps.push_back({.id = "at-once",
                          .title = "[z₀ … z_h] W_O",
                          .formula = "put side by side, then projected",
                          .value = at_once,
                          .columns = MechanismAxis::dimension,
                          .explain = explain_product(joined, wo)});
  result.steps.push_back({.id = "sum",
                          .title = "Σ z_h W_O^h",
                          .formula = "each head projected, then added",
                          .value = sum,
                          .columns = MechanismAxis::dimension});
  const Index width = values.whole("width");
  result.facts = {
      {"Largest difference", text(gap), "of the two ways, over all cells"},
      {"Heads", fmt::format("{} of width {}", heads, d), "the nearest number up to the chosen one that divides d"},
      {fmt::format("Parameters at width {}", width),
       fmt::format("{} attention, {} FFN weights", 4 * width * width + 4 * width, 2 * width * 4 * width),
       "W_Q, W_K, W_V, W_O with biases, whatever h is; FFN d → 4d → d without biases"}};
  return result;
}

}  // namespace

Mechanism make_multi_head() {
  Mechanism m;
  m.id = "multi-head";
  m.title = "Many heads: split, attend, put together";
  m.name = "Multi-head split and W_O";
  m.group = "Heads and projections";
  m.source = "Vaswani et al. 2017; Elhage et al. 2021";
  m.formula = "[z₀ … z_h] W_O = Σ z_h W_O^h";
  m.meaning =
      "The width is cut into heads that look at different places for the same number of parameters. Side by side and "
      "projected, or each projected and added: the same.";
  m.keywords = "MHA concat output projection heads parameters multi-head attention W_O split concatenate";
  m.parameters = {whole_parameter("heads", "Heads h", "From 1 to d; the nearest number below that divides d is taken.",
                                  1, 64, 4, true),
                  whole_parameter("width", "Width for parameters", "d of the model whose parameters are counted.", 8,
                                  8192, 512, true),
                  seed_parameter("of W_O")};
  m.run = run;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return fmt::format(
        "Both ways agree up to {}. {}: more heads see more places, each with fewer dimensions to tell them apart.",
        r.facts[0].value, r.facts[1].value);
  };
  return m;
}

}  // namespace headscope::mechanism
