#include "core/edits/weight_edit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_pass.h"
#include "core/edits/edit_step.h"

namespace headscope {

namespace {

/// Sets softmax(scores)[key] = weight, leaving the ratios of the others: s_key = ln(w / (1 − w)) + ln Σ_{j≠key}
/// e^{s_j}, where a sink is one of them. A row that sees no other key stays as it is.
void set_weight(std::span<float> scores, float sink, Index key, double weight) {
  const auto others = [&](auto fold) {
    if (std::isfinite(sink)) fold(sink);
    for (std::size_t j = 0; j < scores.size(); ++j)
      if (static_cast<Index>(j) != key) fold(scores[j]);
  };
  float max = -float_infinity;
  others([&](float s) { max = std::max(max, s); });
  float& own = nth(scores, key);
  if (max == -float_infinity) return;  // no other key to share with
  if (weight == 1) {
    std::ranges::fill(scores, -float_infinity);
    own = std::isfinite(sink) ? std::max(sink, 0.0f) + 40 : 0;  // of e⁻⁴⁰ nothing is left beside 1
    return;
  }
  double sum = 0;
  others([&](float s) { sum += std::exp(static_cast<double>(s) - max); });
  own = weight == 0 ? -float_infinity : static_cast<float>(max + std::log(sum) + std::log(weight / (1 - weight)));
}

/// The same for a row of weights that no softmax follows any more: the others keep their ratios, the row its sum.
void set_final_weight(std::span<float> weights, Index key, double weight) {
  double sum = 0;
  for (const float each : weights) sum += static_cast<double>(each);
  // Beside a learned sink shares add up to less than 1; of signed weights nothing is said by their sum.
  if (std::ranges::all_of(weights, [](float each) { return each >= 0; })) sum = std::max(sum, weight);
  float& own = nth(weights, key);
  const double others = std::accumulate(weights.begin(), weights.end(), 0.0) - static_cast<double>(own);
  if (others == 0) return;  // no other key to share with
  for (float& each : weights) each = static_cast<float>(static_cast<double>(each) * (sum - weight) / others);
  own = static_cast<float>(weight);
}

class WeightStep final : public EditStep {
 public:
  WeightStep(EditPlace place, const SetWeight& set)
      : EditStep(std::move(place)),
        query_(from_end(set.query, pass().scene().rows())),
        key_(from_end(set.key, pass().scene().keys())),
        weight_(set.weight) {
    after_softmax_ = std::ranges::any_of(pass().steps(), [&](const auto& step) { return hides_scores(*step); });
  }
  bool acts(Site site) const override {
    if (site.layer < 0) return false;
    return site.kind == (after_softmax(site.layer) ? SiteKind::pattern : SiteKind::attn_scores);
  }
  void act(Site site, EditedTensor& edited) override {
    if (query_ < first() || query_ > last() || query_ < pass().scene().first_row) return;
    const Index row = query_ - pass().scene().first_row;
    Tensor& value = edited.write();  // (head, query, key)
    for (Index head = 0; head < value.dim(0); ++head) {
      if (target().head && *target().head != head) continue;
      const std::span<float> weights(&value.ref(head, row, 0), static_cast<std::size_t>(value.dim(2)));
      if (!after_softmax(site.layer)) {
        set_weight(weights, pass().looks(static_cast<int>(head)).rule.rule->sink(query_), key_, weight_);
        continue;
      }
      if (!pass().scene().dims.attends(site.layer))
        nth(weights, key_) = static_cast<float>(weight_);  // no softmax that others would share
      else
        set_final_weight(weights, key_, weight_);
      pass().outputs.forget(head, row);
    }
  }

 private:
  bool after_softmax(int layer) const { return after_softmax_ || !pass().scene().dims.attends(layer); }
  /// Whether the row's weights are what an edit listed before says, whatever its scores.
  bool hides_scores(const EditStep& earlier) const {
    const auto meet = [](std::optional<int> a, std::optional<int> b) { return !a || !b || *a == *b; };
    return earlier.action()->writes_weights() && !earlier.action().as<SetWeight>() &&
           meet(earlier.target().layer, target().layer) && meet(earlier.target().head, target().head) &&
           query_ >= earlier.first() && query_ <= earlier.last();
  }

  int query_, key_;
  double weight_;
  bool after_softmax_ = false;
};

class WeightEdit final : public EditOf<SetWeight> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return weight_edit(); }
  std::string text() const override {
    return fmt::format("weight {} {} {}", value().query, value().key, value().weight);
  }
  void check(const std::string& where) const override {
    need(value().weight >= 0 && value().weight <= 1, where, "a weight from 0 to 1", fmt::format("{}", value().weight));
  }
  std::unique_ptr<EditStep> make(EditPlace place) const override {
    return std::make_unique<WeightStep>(std::move(place), value());
  }
  std::vector<int> positions() const override { return {value().query}; }
  std::vector<int> key_positions() const override { return {value().key}; }
  std::string note(const HeadTarget&, const ModelInfo& model, int tokens) const override {
    if (model.objective != Objective::next_token) return "";
    if (from_end(value().key, tokens) <= from_end(value().query, tokens)) return "";
    return say("weight {} {}: the row sees a later token", value().query, value().key);
  }
  bool row_by_row(int) const override { return value().query >= 0 && value().key >= 0 && value().key <= value().query; }
  bool writes_weights() const override { return true; }
};
}  // namespace

const EditKind& weight_edit() {
  using Kind = EditField::Kind;
  static const EditKind kind{
      {"weight QUERY KEY VALUE",
       "weight",
       to_say("Attention weights"),
       to_say("One weight of one row; the others share the rest."),
       SetWeight{-1, 0, 0.5},
       true,
       {{Kind::position, "QUERY", to_say("Row"), to_say("the token that looks")},
        {Kind::position, "KEY", to_say("Key"), to_say("the token that it looks at")},
        {Kind::number, "VALUE", to_say("Weight"), to_say("the others of the row share what is left"), 0, 1}}},
      [](EditWords& words) -> EditAction {
        const int query = words.number<int>(), key = words.number<int>();
        return SetWeight{query, key, words.number<double>()};
      }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(SetWeight value) {
  return std::make_shared<WeightEdit>(value);
}

}  // namespace headscope
