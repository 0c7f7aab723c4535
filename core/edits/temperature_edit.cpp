#include "core/edits/temperature_edit.h"

#include <fmt/format.h>

#include "core/base/words.h"
#include "core/edits/all.h"
#include "core/edits/edit_step.h"

namespace headscope {

namespace {
class TemperatureStep final : public EditStep {
 public:
  using EditStep::EditStep;
  std::optional<HeldKind> held() const override { return HeldKind::temperature; }
  double temperature() const override { return action().as<SetTemperature>()->tau; }
};

class TemperatureEdit final : public EditOf<SetTemperature> {
 public:
  using EditOf::EditOf;
  const EditKind& kind() const override { return temperature_edit(); }
  std::string text() const override { return fmt::format("temperature {}", value().tau); }
  void check(const std::string& where) const override {
    need(value().tau >= SetTemperature::lowest && value().tau <= SetTemperature::highest, where,
         fmt::format("a temperature from {} to {}", SetTemperature::lowest, SetTemperature::highest),
         fmt::format("{}", value().tau));
  }
  std::unique_ptr<EditStep> make(EditPlace place) const override { return step_of<TemperatureStep>(std::move(place)); }
  std::string needs_of_softmax() const override { return "scores before a softmax"; }
  bool row_by_row(int) const override { return true; }
};
}  // namespace

const EditKind& temperature_edit() {
  static const EditKind kind{
      {"temperature TAU",
       "temperature",
       to_say("Attention weights"),
       to_say("Scores are divided by TAU: below 1 sharper, above 1 flatter."),
       SetTemperature{0.5},
       true,
       {{EditField::Kind::number, "TAU", to_say("Temperature"), to_say("1 is the model's own"), 0.05, 20, true}}},
      [](EditWords& words) -> EditAction { return SetTemperature{words.number<double>()}; }};
  return kind;
}

std::shared_ptr<const Edit> edit_of(SetTemperature value) {
  return std::make_shared<TemperatureEdit>(value);
}

}  // namespace headscope
