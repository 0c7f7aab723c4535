// Many heads (Vaswani et al. 2017): the width d is cut into h parts, each attends for itself; the parts are put side by
// side and multiplied by W_O. That equals the sum over heads of z_h W_O^h, W_O^h being the rows of W_O that belong to
// the head: heads write side by side into one residual stream (Elhage et al., A Mathematical Framework for Transformer
// Circuits, 2021). Of a model: the queries, keys and values of all heads of the layer, and its W_O (the output bias
// apart); they can be cut into another number of heads. Else W_O is drawn, entries N(0, 1/d). The number of heads
// changes nothing about the parameters.
// Shapes: z_h (n, d/h), W_O (d, d_model). Cost: n² · 2d whatever h is, and n d² for W_O.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/words.h"
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

/// Side by side, (n, Σ d).
Tensor joined_heads(const std::vector<Tensor>& heads) {
  Index width = 0;
  for (const Tensor& each : heads) width += each.dim(1);
  Tensor out = Tensor::uninitialized({heads.front().dim(0), width});
  Index at = 0;
  for (const Tensor& each : heads) {
    for (Index i = 0; i < each.dim(0); ++i)
      for (Index c = 0; c < each.dim(1); ++c) out.ref(i, at + c) = each.at(i, c);
    at += each.dim(1);
  }
  return out;
}

/// "z₀ W⁰ + z₁ W¹ + … =" of a cell; joined (n, heads · d_v), W_O (heads · d_v, d_model).
std::function<std::string(Index, Index)> explain_parts(Tensor joined, Tensor wo, Index heads) {
  return [joined = std::move(joined), wo = std::move(wo), heads](Index i, Index j) {
    const Index d_v = wo.dim(0) / heads;
    double sum = 0;
    std::string out;
    for (Index h = 0; h < heads; ++h) {
      double part = 0;
      for (Index c = h * d_v; c < (h + 1) * d_v; ++c)
        part += static_cast<double>(joined.at(i, c)) * static_cast<double>(wo.at(c, j));
      sum += part;
      if (h < shown_heads) out += (h ? " + " : "") + brief(part);
    }
    if (heads > shown_heads) out += say(" + {} more heads", heads - shown_heads);
    return out + " = " + brief(sum, true);
  };
}

MechanismResult run_multi_head(const MechanismInput& in, const MechanismValues& values, Detail) {
  const bool of_layer = in.layer != nullptr;
  const Tensor q = of_layer ? joined_heads(in.layer->q) : in.q, k = of_layer ? joined_heads(in.layer->k) : in.k,
               v = of_layer ? joined_heads(in.layer->v) : in.v;
  const Index width = q.dim(1), width_v = v.dim(1), own_heads = of_layer ? static_cast<Index>(in.layer->q.size()) : 0;
  const bool own = of_layer && values.on("own");
  const Index heads = own ? own_heads : heads_for(values.whole("heads"), width, width_v), d = width / heads,
              d_v = width_v / heads;
  const auto hidden = hidden_cells(*in.rule, in.n(), in.m());
  const bool has_wo = in.projections && in.projections->o.dim(0) == width_v;
  const Tensor wo = has_wo ? in.projections->o
                           : times(gaussian(width_v, width_v, values.seed()),
                                   static_cast<float>(1 / std::sqrt(static_cast<double>(width_v))));
  const Index out = wo.dim(1);
  std::vector<Tensor> z;
  Tensor sum = Tensor::zeros({in.n(), out}), norms = Tensor::zeros({in.n(), heads});
  MechanismResult result;
  for (Index h = 0; h < heads; ++h) {
    check(in);
    const MechanismInput each{q.slice(1, h * d, (h + 1) * d).copy(), k.slice(1, h * d, (h + 1) * d).copy(),
                              v.slice(1, h * d_v, (h + 1) * d_v).copy(),
                              own ? in.scale : static_cast<float>(1 / std::sqrt(static_cast<double>(d))), in.rule};
    Tensor scores = raw_scores(each);
    apply_rule(*in.rule, scores);
    const Tensor p = softmax_rows(std::move(scores), in.rule.get());
    z.push_back(product(p, each.v));
    const Tensor part = product(z.back(), wo.slice(0, h * d_v, (h + 1) * d_v).packed());  // (n, d_model)
    for (Index i = 0; i < in.n(); ++i) {
      double square = 0;
      for (Index c = 0; c < out; ++c) {
        sum.ref(i, c) += part.at(i, c);
        square += static_cast<double>(part.at(i, c)) * static_cast<double>(part.at(i, c));
      }
      norms.ref(i, h) = static_cast<float>(std::sqrt(square));
    }
    if (h < shown_heads)
      result.steps.push_back(
          {.id = fmt::format("head-{}", h),
           .title = say("Head {}", h),
           .formula = own ? say("of layer {}", in.layer->layer) : say("dimensions {}–{}", h * d, (h + 1) * d - 1),
           .value = p,
           .range = MechanismStep::Range::probability,
           .masked = hidden});
  }
  const Tensor joined = joined_heads(z), at_once = product(joined, wo);
  const double gap = greatest_gap(at_once, sum);
  result.steps.push_back({.id = "joined",
                          .title = said("Heads side by side"),
                          .formula = "[z₀ … z_h]",
                          .value = joined,
                          .columns = MechanismAxis::dimension});
  result.steps.push_back({.id = "wo",
                          .title = "W_O",
                          .formula = has_wo ? say("of layer {}; {} rows a head", in.layer ? in.layer->layer : 0, d_v)
                                            : say("drawn; {} rows a head", d_v),
                          .value = wo,
                          .rows = MechanismAxis::dimension,
                          .columns = MechanismAxis::dimension});
  result.steps.push_back({.id = "at-once",
                          .title = "[z₀ … z_h] W_O",
                          .formula = said("put side by side, then projected"),
                          .value = at_once,
                          .columns = MechanismAxis::dimension,
                          .explain = explain_product(joined, wo)});
  result.steps.push_back({.id = "sum",
                          .title = "Σ z_h W_O^h",
                          .formula = said("each head projected, then added"),
                          .value = sum,
                          .columns = MechanismAxis::dimension,
                          .explain = explain_parts(joined, wo, heads)});
  std::vector<std::string> names;
  for (Index h = 0; h < heads; ++h) names.push_back(std::to_string(h));
  result.steps.push_back({.id = "norms",
                          .title = "‖z_h W_O^h‖",
                          .formula = said("how much each head writes"),
                          .value = norms,
                          .range = MechanismStep::Range::positive,
                          .columns = MechanismAxis::other,
                          .column_names = std::move(names)});
  const Index counted = values.whole("width");
  result.facts = {
      {said("Largest difference"), text(gap), said("of the two ways, over all cells")},
      {said("Heads"), say("{} of width {}", heads, d),
       own ? said("the layer's own") : said("the nearest number up to the chosen one that divides d")},
      {say("Parameters at width {}", counted),
       say("{} attention, {} FFN weights", 4 * counted * counted + 4 * counted, 2 * counted * 4 * counted),
       said("W_Q, W_K, W_V, W_O with biases, whatever h is; FFN d → 4d → d without biases")},
      {said("Numbers"),
       fmt::format("{}, {}", of_layer ? said("Q, K, V of the whole layer") : said("Q, K, V of the input"),
                   has_wo ? said("its own W_O") : said("W_O drawn")),
       of_layer && !own ? said("queries, keys and values of all heads side by side, cut anew") : said("as they are")}};
  return result;
}

}  // namespace

Mechanism make_multi_head() {
  Mechanism m;
  m.id = "multi-head";
  m.title = to_say("Many heads: split, attend, put together");
  m.name = to_say("Multi-head split and W_O");
  m.group = to_say("Heads and projections");
  m.source = "Vaswani et al. 2017; Elhage et al. 2021";
  m.formula = "[z₀ … z_h] W_O = Σ z_h W_O^h";
  m.meaning = to_say(
      "The width is cut into heads that look at different places for the same number of parameters. Side by side and "
      "projected, or each projected and added: the same.");
  m.keywords = "MHA concat output projection heads parameters multi-head attention W_O split concatenate";
  m.parameters = {
      toggle_parameter("own", to_say("The layer's own heads"),
                       to_say("Of a model's layer: its own heads, or all their numbers cut anew."), true),
      whole_parameter("heads", to_say("Heads h"),
                      to_say("From 1 to d; the nearest number below that divides d is taken."), 1, 1024, 4, true),
      whole_parameter("width", to_say("Width for parameters"), to_say("d of the model whose parameters are counted."),
                      8, 8192, 512, true),
      seed_parameter(to_say("of W_O"))};
  m.run = run_multi_head;
  m.ours = to_say("The mask of the selected head, with what it adds to scores, stands for all heads of its layer.");
  m.study = true;
  m.reads_projections = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return say(
        "{}. Side by side through W_O, or each through its rows and added: the largest difference is {}. {}: more "
        "heads see more places, each with fewer dimensions to tell them apart.",
        r.facts[3].value, r.facts[0].value, r.facts[1].value);
  };
  return m;
}

}  // namespace headscope::mechanism
