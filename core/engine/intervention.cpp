#include "core/engine/intervention.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/attention/masks.h"
#include "core/base/error.h"
#include "core/io/strict_json.h"

namespace headscope {

namespace {
using nlohmann::json;
using nlohmann::ordered_json;

template <class... Arms>
struct Overloaded : Arms... {
  using Arms::operator()...;
};

/// A layer or head by its number; nullopt for "*".
std::optional<int> place_of(std::string_view text, std::string_view whole, const std::string& where) {
  if (text == "*") return std::nullopt;
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    throw Error(where, "a head such as 1.0, a layer such as 1.*, or * for all", fmt::format("\"{}\"", whole));
  return value;
}

double temperature_of(std::string_view text, const std::string& where) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(where, "a temperature such as 0.5", fmt::format("\"{}\"", text));
  return value;
}

/// "L.H=rest" → target and rest; all heads when there is no "=".
HeadTarget split_target(std::string_view& text, const std::string& where) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return {};
  const HeadTarget target = parse_head_target(text.substr(0, equals), where);
  text.remove_prefix(equals + 1);
  return target;
}

std::optional<int> number_from(const json& object, const char* key, const std::string& where) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return std::nullopt;
  const bool fits = found->is_number_integer() && *found >= 0 && *found <= std::numeric_limits<int>::max();
  if (!fits) throw Error(fmt::format("{}: \"{}\"", where, key), "a number from 0", json_excerpt(*found));
  return found->get<int>();
}
}  // namespace

std::string text_of(const HeadTarget& target) {
  if (!target.layer && !target.head) return "*";
  const auto part = [](const std::optional<int>& value) { return value ? std::to_string(*value) : "*"; };
  return part(target.layer) + "." + part(target.head);
}

HeadTarget parse_head_target(std::string_view text, const std::string& where) {
  const auto dot = text.find('.');
  HeadTarget target;
  target.layer = place_of(text.substr(0, dot), text, where);
  if (dot != std::string_view::npos) target.head = place_of(text.substr(dot + 1), text, where);
  return target;
}

std::string describe(const Intervention& edit) {
  return text_of(edit.target) + ": " +
         std::visit(
             Overloaded{[](const SetTemperature& action) { return fmt::format("temperature {:.4g}", action.tau); },
                        [](const SetMask& action) { return "mask " + action.spec; }},
             edit.action);
}

void check(const Intervention& edit, const std::string& where) {
  std::visit(Overloaded{[&](const SetTemperature& action) {
                          if (!(action.tau >= SetTemperature::lowest && action.tau <= SetTemperature::highest))
                            throw Error(where,
                                        fmt::format("a temperature from {} to {}", SetTemperature::lowest,
                                                    SetTemperature::highest),
                                        fmt::format("{}", action.tau));
                        },
                        [&](const SetMask& action) { parse_mask(action.spec, where); }},
             edit.action);
}

void check_targets(const std::vector<Intervention>& edits, const ModelDims& dims) {
  for (const Intervention& edit : edits) {
    if (!edit.enabled) continue;
    if (edit.target.layer.value_or(0) >= dims.layers || edit.target.head.value_or(0) >= dims.heads)
      throw Error("edit " + describe(edit),
                  fmt::format("a layer from 0 to {} and a head from 0 to {}", dims.layers - 1, dims.heads - 1),
                  text_of(edit.target));
  }
}

ordered_json to_json(const Intervention& edit) {
  ordered_json result = ordered_json::object();
  if (edit.target.layer) result["layer"] = *edit.target.layer;
  if (edit.target.head) result["head"] = *edit.target.head;
  std::visit(Overloaded{[&](const SetTemperature& action) { result["temperature"] = action.tau; },
                        [&](const SetMask& action) { result["mask"] = action.spec; }},
             edit.action);
  result["enabled"] = edit.enabled;
  return result;
}

Intervention intervention_from_json(const json& value, const std::string& where) {
  if (!value.is_object()) throw Error(where, "an edit as a JSON object", json_excerpt(value));
  for (const auto& item : value.items())
    if (item.key() != "layer" && item.key() != "head" && item.key() != "temperature" && item.key() != "mask" &&
        item.key() != "enabled")
      throw Error(where, "only the keys layer, head, temperature, mask, enabled", "\"" + item.key() + "\"");
  if (value.contains("temperature") == value.contains("mask"))
    throw Error(where, "one of \"temperature\" and \"mask\"", value.contains("mask") ? "both" : "neither");

  Intervention edit;
  edit.target = {number_from(value, "layer", where), number_from(value, "head", where)};
  if (const auto mask = value.find("mask"); mask != value.end()) {
    if (!mask->is_string()) throw Error(where + ": \"mask\"", "a text such as \"window 8\"", json_excerpt(*mask));
    edit.action = SetMask{mask->get<std::string>()};
  } else {
    const json& tau = value.at("temperature");
    if (!tau.is_number()) throw Error(where + ": \"temperature\"", "a number", json_excerpt(tau));
    edit.action = SetTemperature{tau.get<double>()};
  }
  if (const auto enabled = value.find("enabled"); enabled != value.end()) {
    if (!enabled->is_boolean()) throw Error(where + ": \"enabled\"", "true or false", json_excerpt(*enabled));
    edit.enabled = enabled->get<bool>();
  }
  check(edit, where);
  return edit;
}

Intervention parse_temperature_edit(std::string_view text, const std::string& where) {
  Intervention edit;
  edit.target = split_target(text, where);
  edit.action = SetTemperature{temperature_of(text, where)};
  check(edit, where);
  return edit;
}

Intervention parse_mask_edit(std::string_view text, const std::string& where) {
  Intervention edit;
  edit.target = split_target(text, where);
  edit.action = SetMask{parse_mask(text, where)->describe()};
  return edit;
}

InterventionTap::InterventionTap(const std::vector<Intervention>& edits) {
  for (const Intervention& edit : edits) {
    if (!edit.enabled) continue;
    check(edit, "edit " + describe(edit));
    Step step{edit.target, std::nullopt, nullptr};
    std::visit(Overloaded{[&](const SetTemperature& action) { step.tau = action.tau; },
                          [&](const SetMask& action) { step.mask = parse_mask(action.spec); }},
               edit.action);
    steps_.push_back(std::move(step));
  }
}

HeadRule InterventionTap::head_rule(int layer, int head, HeadRule usual) const {
  double tau = 1;
  for (const Step& step : steps_) {
    if (!step.target.reaches(layer, head)) continue;
    if (step.tau) tau = *step.tau;
    if (step.mask) usual.rule = step.mask;
  }
  usual.scale = static_cast<float>(static_cast<double>(usual.scale) / tau);
  return usual;
}

}  // namespace headscope
