#pragma once
// A change to a forward pass as a plain value: which heads, what to do to them. Interventions save, compare, undo and
// run from the command line; an InterventionTap carries them out.
// A new kind of intervention is one struct in `Action`, its words in the three functions below, and its arm in the tap.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/trace/capture.h"
#include "core/trace/tap.h"

namespace headscope {

/// Which heads an intervention reaches. An absent number means every one: {} all heads, {3, {}} layer 3, {{}, 1} head 1
/// of every layer.
struct HeadTarget {
  std::optional<int> layer, head;
  bool reaches(int of_layer, int of_head) const {
    return (!layer || *layer == of_layer) && (!head || *head == of_head);
  }
  bool operator==(const HeadTarget&) const = default;
};

/// Scores are divided by τ before the softmax: below 1 sharper, above 1 flatter.
struct SetTemperature {
  static constexpr double lowest = 1e-6, highest = 1e6;
  double tau = 1;
  bool operator==(const SetTemperature&) const = default;
};

/// The mask takes the place of the model's own (causal) one. `spec` as in core/attention/masks.h.
struct SetMask {
  std::string spec = "causal";
  bool operator==(const SetMask&) const = default;
};

struct Intervention {
  using Action = std::variant<SetTemperature, SetMask>;
  HeadTarget target;
  Action action;
  bool enabled = true;
  bool operator==(const Intervention&) const = default;
};

/// "1.0", "1.*" (a layer), "*.0", "*" (all heads). parse also takes "1" for a layer; throws Error at `where`.
std::string text_of(const HeadTarget& target);
HeadTarget parse_head_target(std::string_view text, const std::string& where);
/// "1.0: temperature 0.5", "*: mask window 8"
std::string describe(const Intervention& edit);

/// Throws Error at `where` when a temperature is out of range, or a mask's spec does not parse.
void check(const Intervention& edit, const std::string& where);
/// Throws Error when an edit names a layer or head that such a model does not have.
void check_targets(const std::vector<Intervention>& edits, const ModelDims& dims);

/// {"layer": 1, "head": 0, "temperature": 0.5, "enabled": true}; an absent layer or head is left out. Reading throws
/// Error at `where` on anything else, also on two actions in one edit.
nlohmann::ordered_json to_json(const Intervention& edit);
Intervention intervention_from_json(const nlohmann::json& value, const std::string& where);

/// What the command line's `--temperature [L.H=]τ` and `--mask [L.H=]spec` mean. Throw Error at `where`.
Intervention parse_temperature_edit(std::string_view text, const std::string& where);
Intervention parse_mask_edit(std::string_view text, const std::string& where);

/// Carries out the enabled edits, for one model or many. Of several edits that set the same thing for a head the last
/// wins. Watches no site, so the fused pass and factored maps stay.
class InterventionTap final : public Tap {
 public:
  /// Throws as check() does.
  explicit InterventionTap(const std::vector<Intervention>& edits);
  bool empty() const { return steps_.empty(); }
  HeadRule head_rule(int layer, int head, HeadRule usual) const override;
  bool wants(Site) const override { return false; }
  Tensor at(Site, const Tensor& value) override { return value; }

 private:
  struct Step {
    HeadTarget target;
    std::optional<double> tau;
    std::shared_ptr<const AttentionRule> mask;
  };
  std::vector<Step> steps_;
};

}  // namespace headscope
