#include "core/engine/intervention.h"

#include <fmt/format.h>

#include <charconv>

#include "core/attention/masks.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/overloaded.h"
#include "core/io/strict_json.h"

namespace headscope {

namespace {
using nlohmann::json;
using nlohmann::ordered_json;

std::optional<int> integer(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// A layer or head by its number; nullopt for "*".
std::optional<int> place_of(std::string_view text, std::string_view whole, const std::string& where) {
  if (text == "*") return std::nullopt;
  const auto value = integer(text);
  if (!value || *value < 0)
    throw Error(where, "a head such as 1.0, a layer such as 1.*, or * for all", fmt::format("\"{}\"", whole));
  return value;
}

PositionRange positions_of(std::string_view text, const std::string& where) {
  const auto dots = text.find("..");
  const auto first = integer(text.substr(0, dots));
  const auto last = dots == std::string_view::npos ? first
                    : dots + 2 == text.size()      ? std::optional<int>(-1)
                                                   : integer(text.substr(dots + 2));
  if (!first || !last)
    throw Error(where, "positions such as 3, 3..7, 3.. or -1 (the last)", fmt::format("\"{}\"", text));
  return {*first, *last};
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

}  // namespace

bool whole_layer(const EditAction& action) {
  if (const auto* patch = std::get_if<Patch>(&action))
    return patch->site != SiteKind::q && patch->site != SiteKind::k && patch->site != SiteKind::v &&
           patch->site != SiteKind::z;
  return !form_of(action).per_head;
}

std::string text_of(const HeadTarget& target) {
  const auto part = [](const std::optional<int>& value) { return value ? std::to_string(*value) : "*"; };
  std::string text = !target.layer && !target.head ? "*" : part(target.layer) + "." + part(target.head);
  if (const auto& at = target.positions)
    text += at->first == at->last ? fmt::format("@{}", at->first)
            : at->last == -1      ? fmt::format("@{}..", at->first)
                                  : fmt::format("@{}..{}", at->first, at->last);
  return text;
}

HeadTarget parse_head_target(std::string_view text, const std::string& where) {
  HeadTarget target;
  if (const auto at = text.find('@'); at != std::string_view::npos) {
    target.positions = positions_of(text.substr(at + 1), where);
    text = text.substr(0, at);
  }
  const auto dot = text.find('.');
  target.layer = place_of(text.substr(0, dot), text, where);
  if (dot != std::string_view::npos) target.head = place_of(text.substr(dot + 1), text, where);
  return target;
}

std::string describe(const Intervention& edit) {
  return text_of(edit.target) + ": " + text_of(edit.action);
}

Intervention parse_intervention(std::string_view text, const std::string& where) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos)
    throw Error(where, "an edit such as \"1.0: ablate zero\"", fmt::format("\"{}\"", text));
  Intervention edit{parse_head_target(text.substr(0, colon), where), parse_edit_action(text.substr(colon + 1), where)};
  check(edit, where);
  return edit;
}

void check(const Intervention& edit, const std::string& where) {
  check(edit.action, where);
  if (edit.target.head && whole_layer(edit.action))
    throw Error(where, fmt::format("a layer, all of which \"{}\" concerns", text_of(edit.action)), text_of(edit.target),
                "write " + text_of(HeadTarget{edit.target.layer, {}, edit.target.positions}));
}

void check_targets(const std::vector<Intervention>& edits, const ModelDims& dims, int positions) {
  for (const Intervention& edit : edits) {
    if (!edit.enabled) continue;
    const auto where = [&] { return "edit " + describe(edit); };
    if (edit.target.layer.value_or(0) >= dims.layers || edit.target.head.value_or(0) >= dims.heads)
      throw Error(where(), fmt::format("a layer from 0 to {} and a head from 0 to {}", dims.layers - 1, dims.heads - 1),
                  text_of(edit.target));
    const auto inside = [&](int position) {
      if (position < -positions || position >= positions)
        throw Error(where(),
                    fmt::format("positions from 0 to {}, or from -{} counted from the end", positions - 1, positions),
                    std::to_string(position));
    };
    if (const auto& at = edit.target.positions) inside(at->first), inside(at->last);
    if (const auto* set = std::get_if<SetWeight>(&edit.action)) inside(set->query), inside(set->key);
  }
}

ordered_json to_json(const Intervention& edit) {
  return {{"target", text_of(edit.target)}, {"action", text_of(edit.action)}, {"enabled", edit.enabled}};
}

Intervention intervention_from_json(const json& value, const std::string& where) {
  if (!value.is_object()) throw Error(where, "an edit as a JSON object", json_excerpt(value));
  for (const auto& item : value.items())
    if (item.key() != "target" && item.key() != "action" && item.key() != "enabled")
      throw Error(where, "only the keys target, action, enabled", "\"" + item.key() + "\"");
  const auto text = [&](const char* key, const char* expected) {
    const auto found = value.find(key);
    if (found == value.end()) throw Error(fmt::format("{}: \"{}\"", where, key), expected, "none");
    if (!found->is_string()) throw Error(fmt::format("{}: \"{}\"", where, key), expected, json_excerpt(*found));
    return found->get<std::string>();
  };
  Intervention edit{parse_head_target(text("target", "a head such as \"1.0\""), where),
                    parse_edit_action(text("action", "an action such as \"temperature 0.5\""), where)};
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

}  // namespace headscope
