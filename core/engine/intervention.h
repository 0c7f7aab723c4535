#pragma once
// A change to a forward pass as a plain value: where, and what to do there. Interventions save, compare, undo and run
// from the command line; an InterventionTap (intervention_tap.h) carries them out.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/engine/edit_action.h"
#include "core/trace/capture.h"
#include "core/trace/head_id.h"

namespace headscope {

/// Positions first … last, both included; below 0 they count from the end of the text.
struct PositionRange {
  int first = 0, last = -1;
  bool operator==(const PositionRange&) const = default;
};

/// What an intervention reaches. An absent number means every one: {} all heads, {3, {}} layer 3, {{}, 1} head 1 of
/// every layer. Positions are queries (rows of a pattern, rows of z or of the residual stream).
struct HeadTarget {
  std::optional<int> layer = {}, head = {};
  std::optional<PositionRange> positions = {};
  bool reaches(HeadId of) const { return (!layer || *layer == of.layer) && (!head || *head == of.head); }
  bool operator==(const HeadTarget&) const = default;
};

struct Intervention {
  HeadTarget target;
  EditAction action;
  bool enabled = true;
  bool operator==(const Intervention&) const = default;
};

/// "1.0", "1.*" (a layer), "*.0", "*" (all heads), with positions "1.0@3..7", "*@-1". parse also takes "1" for a layer
/// and "@3.." for all from 3 on; throws Error at `where`.
std::string text_of(const HeadTarget& target);
HeadTarget parse_head_target(std::string_view text, const std::string& where);
/// "1.0: temperature 0.5", "*: mask window 8"; parse_intervention reads it back (enabled).
std::string describe(const Intervention& edit);
Intervention parse_intervention(std::string_view text, const std::string& where);

/// Whether the action concerns a layer as a whole: switches, shared keys, patches of the residual stream.
bool whole_layer(const EditAction& action);
/// Throws Error at `where` when the action is out of range (see check(EditAction)), or names a head where it concerns a
/// whole layer.
void check(const Intervention& edit, const std::string& where);
/// Throws Error when an edit names a layer or head that such a model does not have, or a position outside the text.
void check_targets(const std::vector<Intervention>& edits, const ModelDims& dims, int positions);

/// {"target": "1.0", "action": "temperature 0.5", "enabled": true}. Reading throws Error at `where` on anything else.
nlohmann::ordered_json to_json(const Intervention& edit);
Intervention intervention_from_json(const nlohmann::json& value, const std::string& where);

/// What the command line's `--temperature [L.H=]τ` and `--mask [L.H=]spec` mean. Throw Error at `where`.
Intervention parse_temperature_edit(std::string_view text, const std::string& where);
Intervention parse_mask_edit(std::string_view text, const std::string& where);

}  // namespace headscope
