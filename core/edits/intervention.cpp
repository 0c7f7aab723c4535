#include "core/edits/intervention.h"

#include <fmt/format.h>

#include <charconv>

#include "core/attention/masks.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/edits/edit.h"
#include "core/edits/mask_edit.h"
#include "core/edits/temperature_edit.h"
#include "core/io/json_view.h"
#include "core/io/strict_json.h"

namespace headscope {

namespace {
using nlohmann::json;
using nlohmann::ordered_json;

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

std::string describe(const Intervention& edit) {
  return text_of(edit.target) + ": " + text_of(edit.action);
}

Intervention parse_intervention(std::string_view text, const std::string& where) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) {
    parse_edit_action(text, where);  // what is no edit is told which there are
    throw Error(where, "WHERE: in front of the edit, such as \"1.0: ablate zero\"", fmt::format("\"{}\"", text));
  }
  Intervention edit{parse_head_target(text.substr(0, colon), where), parse_edit_action(text.substr(colon + 1), where)};
  check(edit, where);
  return edit;
}

void check(const Intervention& edit, const std::string& where) {
  check(edit.action, where);
  if (edit.target.head && edit.action->whole_layer())
    throw Error(where, fmt::format("a layer, all of which \"{}\" concerns", text_of(edit.action)), text_of(edit.target),
                "write " + text_of(HeadTarget{edit.target.layer, {}, edit.target.positions, edit.target.stack}));
}

bool looks_ahead(const Intervention& edit, int context) {
  if (!edit.enabled) return false;
  if (const auto& at = edit.target.positions; at && (at->first < 0 || at->last < -1)) return true;
  return !edit.action->row_by_row(context);
}

std::vector<Intervention> edits_of(const std::vector<Intervention>& edits, Stack stack) {
  std::vector<Intervention> own;
  for (const Intervention& edit : edits)
    if (stack == Stack::only || edit.target.stack == stack ||
        (stack == Stack::decoder && edit.target.stack == Stack::only))
      own.push_back(edit);
  return own;
}

void check_stacks(const std::vector<Intervention>& edits, const ModelInfo& model) {
  if (model.encoder) return;
  for (const Intervention& edit : edits)
    if (edit.enabled && edit.target.stack != Stack::only && edit.target.stack != model.stack)
      throw Error("edit " + describe(edit), "a head of the one stack that " + model.name + " has", text_of(edit.target),
                  "only encoder-decoders have heads under enc, dec and cross");
}

namespace {
/// How many heads may be named: of every layer, or before the first, where one of them would be looked for.
int heads_at(const HeadTarget& target, const ModelDims& dims) {
  const int layer = target.layer.value_or(-1);
  return layer >= 0 && layer < dims.layers ? dims.heads_of(layer) : dims.most_heads();
}
}  // namespace

bool inside(const HeadTarget& target, const ModelDims& dims) {
  return target.layer.value_or(0) < dims.layers && target.head.value_or(0) < heads_at(target, dims);
}

void check_targets(const std::vector<Intervention>& edits, const ModelDims& dims, int positions, int keys) {
  for (const Intervention& edit : edits) {
    if (!edit.enabled) continue;
    const auto where = [&] { return "edit " + describe(edit); };
    if (!inside(edit.target, dims))
      throw Error(
          where(),
          fmt::format("a layer from 0 to {} and a head from 0 to {}", dims.layers - 1, heads_at(edit.target, dims) - 1),
          text_of(edit.target));
    const auto in_text = [&](int position, int count) {
      if (position < -count || position >= count)
        throw Error(where(), fmt::format("positions from 0 to {}, or from -{} counted from the end", count - 1, count),
                    std::to_string(position));
    };
    if (const auto& at = edit.target.positions) in_text(at->first, positions), in_text(at->last, positions);
    for (const int position : edit.action->positions()) in_text(position, positions);
    for (const int position : edit.action->key_positions()) in_text(position, keys > 0 ? keys : positions);
  }
}

ordered_json to_json(const Intervention& edit) {
  return {{"target", text_of(edit.target)}, {"action", text_of(edit.action)}, {"enabled", edit.enabled}};
}

Intervention intervention_from_json(const JsonView& value) {
  JsonFields fields(value);
  fields.find("target"), fields.find("action");
  Intervention edit{parse_head_target(value.at("target").text(), value.where()),
                    parse_edit_action(value.at("action").text(), value.where())};
  fields.read("enabled", edit.enabled);
  fields.done();
  check(edit, value.where());
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
