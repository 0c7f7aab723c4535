// Cross-attention (Bahdanau et al. 2015; Vaswani et al. 2017): queries come from one sequence, keys and values from
// another; the map is rectangular, decoder length × encoder length, and no causal mask is needed, for all of the other
// sequence is known. Of one text alone, the second part asks and the first part answers. Shapes: Q (n_d, d), K, V (n_e,
// d), P (n_d, n_e). Cost: n_d n_e (d + d_v).

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/attention/mechanisms/softmax.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

MechanismResult run_cross(const MechanismInput& in, const MechanismValues& values, Detail) {
  check(in);
  MechanismInput own = in;
  own.rule = full_rule();
  const bool cuts = !in.two_texts && in.n() == in.m() && in.n() > 1;
  Index cut = 0;
  if (cuts) {
    cut = std::clamp<Index>(std::lround(values.number("cut") * static_cast<double>(in.n())), 1, in.n() - 1);
    own.q = in.q.slice(0, cut, in.n()).copy();
    own.k = in.k.slice(0, 0, cut).copy();
    own.v = in.v.slice(0, 0, cut).copy();
  }
  std::vector<MechanismStep> steps;
  add_inputs(steps, own);
  steps[0].title = said("Q, of the asking sequence");
  steps[1].title = said("K, of the other");
  const Tensor scores = raw_scores(own);
  steps.push_back({.id = "scores",
                   .title = said("Scores"),
                   .formula = say("{}, rectangular", scores_text(own)),
                   .value = scores,
                   .explain = explain_product_t(own.q, own.k, static_cast<double>(own.scale))});
  const MechanismResult whole = softmax_of(own, scores, std::move(steps), Detail::steps);
  MechanismResult result;
  for (const MechanismStep& step : whole.steps)
    if (step.id != "masked") result.steps.push_back(step);
  for (MechanismStep& step : result.steps)
    if (step.rows == MechanismAxis::query) step.first_row = cut;
  result.facts = {{said("Map"), fmt::format("{} × {}", own.n(), own.m()), said("decoder length × encoder length")},
                  {said("Mask"), said("none"), said("all of the other sequence is known")},
                  {said("Asks"),
                   cuts           ? say("the text from token {} on asks what stands before it", cut)
                   : in.two_texts ? said("the open text asks the other one")
                                  : said("the queries' sequence asks the keys'"),
                   said("queries of the one, keys and values of the other")}};
  return result;
}

}  // namespace

Mechanism make_cross() {
  Mechanism m;
  m.id = "cross";
  m.title = to_say("Cross-attention: one sequence asks, another answers");
  m.name = to_say("Cross-attention");
  m.group = to_say("Heads and projections");
  m.source = "Bahdanau et al. 2015; Vaswani et al. 2017";
  m.formula = "O = softmax(Q_d K_eᵀ ÷ √d) V_e";
  m.meaning = to_say(
      "Queries of one sequence read keys and values of another, as a decoder reads an encoder: a rectangular map "
      "without a causal mask.");
  m.keywords =
      "encoder decoder rectangular cross-attention encoder-decoder attention two texts another text second source "
      "target bottleneck seq2seq";
  m.parameters = {number_parameter("cut", to_say("Cut at"),
                                   to_say("Where the text is cut in two, as a share of its length."), 0.05, 0.95, 0.5)};
  m.run = run_cross;
  m.study = true;
  m.crosses = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return say(
        "The map is {}: a row for each asking token, a column for each of the other sequence; every row sums to 1. "
        "Here {}.",
        r.facts[0].value, r.facts[2].value);
  };
  return m;
}

}  // namespace headscope::mechanism
