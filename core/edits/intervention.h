#pragma once
// A change to a forward pass as a plain value: where, and what to do there. Interventions save, compare, undo and run
// from the command line; an InterventionTap (intervention_tap.h) carries them out.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/edits/edit_action.h"
#include "core/edits/head_target.h"
#include "core/trace/capture.h"

namespace headscope {

class JsonView;

struct Intervention {
  HeadTarget target;
  EditAction action;
  bool enabled = true;
  bool operator==(const Intervention&) const = default;
};

/// "1.0: temperature 0.5", "*: mask window 8"; parse_intervention reads it back (enabled).
std::string describe(const Intervention& edit);
Intervention parse_intervention(std::string_view text, const std::string& where);

/// Throws Error at `where` when the action is out of range (see check(EditAction)), or names a head where it concerns a
/// whole layer.
void check(const Intervention& edit, const std::string& where);
/// Whether what an edit does at one position may depend on what comes later: masks that look ahead, positions counted
/// from the end, means over the text, other texts aligned to it. With such an edit a text that goes on is read anew.
/// `context`: the longest text.
bool looks_ahead(const Intervention& edit, int context);
/// Of the edits those that name this stack: `decoder` also those that name none, `only` all.
std::vector<Intervention> edits_of(const std::vector<Intervention>& edits, Stack stack);
/// Throws Error when an enabled edit names a stack that a model of this kind does not have.
void check_stacks(const std::vector<Intervention>& edits, const ModelInfo& model);
/// Whether a model has such a layer and head; of all layers: whether one has that head.
bool inside(const HeadTarget& target, const ModelDims& dims);
/// Throws Error when an edit names a layer or head that such a model does not have, or a position outside the text.
/// `keys`: how many there are, where they are of another text.
void check_targets(const std::vector<Intervention>& edits, const ModelDims& dims, int positions, int keys = 0);

/// {"target": "1.0", "action": "temperature 0.5", "enabled": true}. Reading throws Error on anything else.
nlohmann::ordered_json to_json(const Intervention& edit);
Intervention intervention_from_json(const JsonView& value);

/// What the command line's `--temperature [L.H=]τ` and `--mask [L.H=]spec` mean. Throw Error at `where`.
Intervention parse_temperature_edit(std::string_view text, const std::string& where);
Intervention parse_mask_edit(std::string_view text, const std::string& where);

}  // namespace headscope
