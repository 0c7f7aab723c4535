// What a mask writes into a hidden score: −∞, or a large negative number such as −10⁹ (the Annotated Transformer's
// masked_fill; Rush 2018). Where some key is seen both give the same weights, since e^(−10⁹ − m) is 0. They part where
// a whole row is hidden (padding): −∞ gives 0 ÷ 0, not a number; −10⁹ gives the even average over keys that were to be
// hidden. In float16, whose largest number is 65,504, −10⁹ is −∞ itself; −65,504 is what is left.
// The attention pass here (core/attention/softmax_attention.h) gives a row without keys the weight 0 everywhere.
// Shapes, of one row: scores, weights (1, m).

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/mechanism_math.h"
#include "core/attention/mechanisms/all.h"
#include "core/base/half.h"
#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/base/words.h"

namespace headscope::mechanism {

namespace {

/// As a textbook writes it, nothing caught: e^(x − max) ÷ Σ. In half: every number rounded to float16.
std::vector<float> textbook(const std::vector<float>& scores, bool half) {
  const auto kept = [half](float x) { return half ? half_to_float(float_to_half(x)) : x; };
  float max = -float_infinity, sum = 0;
  for (const float x : scores) max = std::max(max, x);
  std::vector<float> out;
  for (const float x : scores) out.push_back(kept(std::exp(kept(x - max))));
  for (const float x : out) sum = kept(sum + x);
  for (float& x : out) x = kept(x / sum);
  return out;
}

MechanismResult run_mask_value(const MechanismInput& in, const MechanismValues& values, Detail) {
  check(in);
  const RowScores row = row_scores(in, values.number("query"));
  const Tensor& raw = row.plain;
  const Index m = in.m(), gone = std::lround(values.number("hidden") * static_cast<double>(m));
  std::vector<std::uint8_t> hidden;
  for (Index j = 0; j < m; ++j) hidden.push_back(j >= m - gone);
  MechanismResult result;
  const auto add = [&](const char* id, const char* title, std::string formula, const Tensor& value,
                       MechanismStep::Range range, std::vector<std::uint8_t> masked) {
    result.steps.push_back({.id = id,
                            .title = title,
                            .formula = std::move(formula),
                            .value = value,
                            .range = range,
                            .rows = MechanismAxis::other,
                            .masked = std::move(masked)});
  };
  add("row-scores", said("Scores of the row"), say("query {}; {} of {} keys hidden", row.row, gone, m), raw,
      MechanismStep::Range::signed_values, {});
  struct Way {
    const char *id, *title, *name;
    float fill;
    bool half;
  };
  for (const Way& way : {Way{"infinity", said("With −∞"), "−∞", -float_infinity, false},
                         Way{"billion", said("With −10⁹, float32"), "−10⁹, float32", -1e9f, false},
                         Way{"billion-half", said("With −10⁹, float16"), "−10⁹, float16", -1e9f, true},
                         Way{"least-half", said("With −65,504, float16"), "−65,504, float16", -65504.0f, true}}) {
    std::vector<float> scores;
    for (Index j = 0; j < m; ++j) {
      const float x = nth(hidden, j) ? way.fill : raw.at(0, j);
      scores.push_back(way.half ? half_to_float(float_to_half(x)) : x);
    }
    std::vector<float> weights = textbook(scores, way.half);
    Index lost = 0;
    double leaked = 0;
    std::vector<std::uint8_t> none;
    for (Index j = 0; j < m; ++j) {
      float& w = nth(weights, j);
      none.push_back(std::isnan(w));
      lost += std::isnan(w);
      if (std::isnan(w)) w = 0;
      if (nth(hidden, j)) leaked += static_cast<double>(w);
    }
    add(way.id, way.title, lost > 0 ? said("0 ÷ 0: not a number") : say("{} on hidden keys", text(leaked)),
        Tensor::from({1, m}, weights), MechanismStep::Range::positive, none);
    result.facts.push_back(
        {way.name,
         lost > 0 ? say("{} weights are not a number", lost) : say("{} of the weight on hidden keys", text(leaked)),
         way.half ? said("every number rounded to float16 on the way") : "float32"});
  }
  result.facts.push_back({said("In this program"), gone == m ? said("0 everywhere") : said("as with −∞"),
                          said("a row without keys has no weights: core/attention/softmax_attention.h")});
  return result;
}

}  // namespace

Mechanism make_mask_value() {
  Mechanism m;
  m.id = "mask-value";
  m.title = to_say("What a mask writes: −∞ against −10⁹");
  m.name = to_say("Mask value, −∞ or −10⁹");
  m.group = to_say("Softmax and scaling");
  m.source = "Rush 2018";
  m.formula = to_say("softmax(… , −∞)   against   softmax(… , −10⁹)");
  m.meaning = to_say(
      "Both hide a key as long as the row sees another. Hide the whole row: −∞ divides 0 by 0, −10⁹ gives every hidden "
      "key an even share. In float16 −10⁹ is −∞.");
  m.keywords =
      "masked_fill -inf -1e9 minus infinity NaN padding fully masked row float16 half precision fp16 mask value";
  m.parameters = {number_parameter("hidden", to_say("Share hidden"),
                                   to_say("Of the keys, from the last; 1 is the whole row."), 0, 1, 1),
                  number_parameter("query", to_say("Query"), to_say("Which row, 0 the first, 1 the last."), 0, 1, 1)};
  m.run = run_mask_value;
  m.study = true;
  m.note = [](const MechanismInput&, const MechanismValues&, const MechanismResult& r) -> std::string {
    return say("With −∞: {}. With −10⁹ in float32: {}; in float16: {}. In this program: {}.", nth(r.facts, 0).value,
               nth(r.facts, 1).value, nth(r.facts, 2).value, nth(r.facts, 4).value);
  };
  return m;
}

}  // namespace headscope::mechanism
