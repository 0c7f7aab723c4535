// Softmax is not enough (Veličković et al., softmax is not enough (for sharp out-of-distribution), 2024): a query whose
// best key leads by a fixed margin Δ gives it the weight e^Δ ÷ (e^Δ + n − 1), which falls to 0 as keys are added.
// Scores multiplied by ln n ÷ ln m (Su 2021) hold it where it was at n = m. "drawn": the other scores are N(0, 1) in
// place of 0.

#include <algorithm>
#include <cmath>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/nth.h"
#include "core/base/random.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

struct DispersionRow {
  double largest = 0, entropy = 0;
};

DispersionRow row_of(Index n, double margin, double factor, bool drawn, std::uint64_t seed) {
  Random random(seed);
  Tensor scores = Tensor::zeros({1, n});
  double most = 0;
  for (Index j = 1; j < n; ++j) {
    scores.ref(0, j) = drawn ? random.normal() : 0.0f;
    most = std::max(most, static_cast<double>(scores.at(0, j)));
  }
  scores.ref(0, 0) = static_cast<float>(most + margin);
  const Tensor p = softmax_rows(times(scores, static_cast<float>(factor)));
  return {static_cast<double>(p.at(0, 0)), mean_entropy(p)};
}

MechanismResult run_dispersion(const MechanismInput& in, const MechanismValues& values, Detail) {
  const double margin = values.number("margin"), trained = values.number("trained");
  const bool drawn = values.on("drawn");
  MechanismCurve weight{said("Weight of the best key as keys are added"), said("keys n"), said("largest weight"),
                        {{"softmax", {}, {}}, {"· ln n ÷ ln m", {}, {}}}, true,           {}};
  MechanismCurve entropy{
      said("Entropy of the row; the upper bound is ln n, all keys alike"), said("keys n"), said("nats"),
      {{"softmax", {}, {}}, {"· ln n ÷ ln m", {}, {}}, {"", {}, {}}},      true,           {}};
  for (Index n = 2; n <= 65536; n *= 2) {
    check(in);
    for (int scaled = 0; scaled < 2; ++scaled) {
      const double factor = scaled ? std::log(static_cast<double>(n)) / std::log(trained) : 1;
      const DispersionRow row = row_of(n, margin, factor, drawn, values.seed());
      for (auto* curve : {&weight, &entropy}) nth(curve->lines, scaled).x.push_back(static_cast<double>(n));
      nth(weight.lines, scaled).y.push_back(row.largest);
      nth(entropy.lines, scaled).y.push_back(row.entropy);
    }
    entropy.lines[2].x.push_back(static_cast<double>(n));
    entropy.lines[2].y.push_back(std::log(static_cast<double>(n)));
  }
  MechanismResult result;
  const auto at = [&](std::size_t line, std::size_t i) { return text(weight.lines[line].y[i]); };
  result.facts = {{said("Weight of the best key"), say("{} at 16 keys, {} at 65,536", at(0, 3), at(0, 15)),
                   said("softmax of margin Δ and the others")},
                  {said("Scaled by ln n ÷ ln m"), say("{} at 16 keys, {} at 65,536", at(1, 3), at(1, 15)),
                   said("the same scores times ln n ÷ ln m")}};
  result.curves = {std::move(weight), std::move(entropy)};
  return result;
}

}  // namespace

Mechanism make_dispersion() {
  Mechanism m;
  m.id = "dispersion";
  m.title = to_say("Softmax disperses as the text grows");
  m.name = to_say("Dispersion with length");
  m.group = to_say("Softmax and scaling");
  m.source = "Veličković et al. 2024; Su 2021";
  m.formula = "p = e^Δ ÷ (e^Δ + n − 1) → 0";
  m.meaning = to_say(
      "One key leads by a fixed margin Δ. However large Δ is, with enough keys the weight of the best one is lost; the "
      "margin would have to grow with ln n.");
  m.keywords =
      "softmax is not enough sharp out of distribution length entropy invariant dispersion with attention fading";
  m.parameters = {
      number_parameter("margin", to_say("Margin Δ"), to_say("By how much the best score leads."), 0, 20, 5),
      whole_parameter("trained", to_say("Trained length m"), to_say("Of the scaling by ln n ÷ ln m."), 2, 65536, 16,
                      true),
      toggle_parameter("drawn", to_say("Other scores drawn"), to_say("N(0, 1) in place of 0."), false),
      only_where(seed_parameter(), [](const MechanismValues& v, const MechanismShape&) { return v.on("drawn"); })};
  m.run = run_dispersion;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues& v, const MechanismResult& r) -> std::string {
    return say("A lead of {} gives {}.", text(v.number("margin")), r.facts[0].value);
  };
  return m;
}

}  // namespace headscope::mechanism
