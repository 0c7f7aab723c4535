#include "app/state/app_state.h"

#include <algorithm>
#include <utility>

#include "core/attention/masks.h"
#include "core/edits/mask_edit.h"
#include "core/edits/temperature_edit.h"

namespace headscope {

namespace {
/// What a document and a request for a run both have, from one to the other.
template <class From, class To>
void take_over(const From& from, To& to) {
  to.model = from.model;
  to.text = from.text;
  to.ids = from.ids;
  to.masked = from.masked;
  to.image = from.image;
  to.source = from.source;
  to.source_ids = from.source_ids;
  to.sound = from.sound;
  to.add_bos = from.add_bos;
  to.parse_special = from.parse_special;
  to.too_long = from.too_long;
  to.edits = from.edits;
}
}  // namespace

RunRequest request_of(const Document& document) {
  RunRequest request;
  take_over(document, request);
  if (!request.ids.empty()) request.text.clear();  // which nobody reads then
  if (!request.source_ids.empty()) request.source.clear();
  return request;
}

Document document_of(const RunRequest& request) {
  Document document;
  take_over(request, document);
  return document;
}

namespace {
constexpr NamedValue<HeadView> head_views[] = {
    {"map", HeadView::map}, {"arcs", HeadView::arcs},   {"row", HeadView::row},        {"steps", HeadView::steps},
    {"qk", HeadView::qk},   {"heads", HeadView::heads}, {"picture", HeadView::picture}};
constexpr NamedValue<MapTool> map_tools[] = {
    {"look", MapTool::style}, {"weight", MapTool::weight}, {"mask", MapTool::mask}};
constexpr NamedValue<Shown> showns[] = {
    {"after", Shown::after}, {"before", Shown::before}, {"difference", Shown::difference}};
constexpr NamedValue<FirstToken> first_tokens[] = {
    {"show", FirstToken::show}, {"hide", FirstToken::hide}, {"renormalize", FirstToken::renormalize}};
constexpr NamedValue<TextUnit> text_units[] = {{"tokens", TextUnit::tokens}, {"words", TextUnit::words}};
constexpr NamedValue<EditScope> edit_scopes[] = {
    {"head", EditScope::head}, {"layer", EditScope::layer}, {"all", EditScope::all}};

/// No stack named is the decoder's, where there are several.
bool same_stack(const HeadTarget& a, const HeadTarget& b) {
  const auto of = [](Stack stack) { return stack == Stack::only ? Stack::decoder : stack; };
  return of(a.stack) == of(b.stack);
}

/// True when every head that `inner` reaches is reached by `outer` too.
bool covers(const HeadTarget& outer, const HeadTarget& inner) {
  return same_stack(outer, inner) && (!outer.layer || outer.layer == inner.layer) &&
         (!outer.head || outer.head == inner.head);
}

/// True when some head is reached by both.
bool meets(const HeadTarget& a, const HeadTarget& b) {
  return same_stack(a, b) && (!a.layer || !b.layer || a.layer == b.layer) && (!a.head || !b.head || a.head == b.head);
}

template <class Action>
void set(std::vector<Intervention>& edits, const HeadTarget& target, const Action& action, bool neutral) {
  // What the new edit covers no longer shows; what is switched off is left for its owner to switch on again.
  std::erase_if(edits, [&](const Intervention& edit) {
    return edit.enabled && edit.action.as<Action>() && covers(target, edit.target);
  });
  const bool overrules = std::ranges::any_of(edits, [&](const Intervention& edit) {
    return edit.enabled && edit.action.as<Action>() && meets(edit.target, target);
  });
  if (!neutral || overrules) edits.push_back({target, action, true});
}
}  // namespace

std::string_view name(HeadView view) {
  return name_in(head_views, view);
}
std::optional<HeadView> parse_head_view(std::string_view text) {
  return value_in(head_views, text);
}
std::string_view name(MapTool tool) {
  return name_in(map_tools, tool);
}
std::optional<MapTool> parse_map_tool(std::string_view text) {
  return value_in(map_tools, text);
}
std::string_view name(Shown shown) {
  return name_in(showns, shown);
}
std::optional<Shown> parse_shown(std::string_view text) {
  return value_in(showns, text);
}
std::string_view name(FirstToken mode) {
  return name_in(first_tokens, mode);
}
std::optional<FirstToken> parse_first_token(std::string_view text) {
  return value_in(first_tokens, text);
}
std::string_view name(RunRequest::TooLong what) {
  return name_in(too_long_names, what);
}
std::optional<RunRequest::TooLong> parse_too_long(std::string_view text) {
  return value_in(too_long_names, text);
}
std::string_view name(TextUnit unit) {
  return name_in(text_units, unit);
}
std::optional<TextUnit> parse_text_unit(std::string_view text) {
  return value_in(text_units, text);
}
std::string_view name(EditScope scope) {
  return name_in(edit_scopes, scope);
}
std::optional<EditScope> parse_edit_scope(std::string_view text) {
  return value_in(edit_scopes, text);
}

std::optional<std::string> parse_theme(std::string_view text) {
  if (text == "dark" || text == "light" || text == "projector") return std::string(text);
  return std::nullopt;
}

HeadTarget target_of(EditScope scope, HeadId selected, Stack stack) {
  HeadTarget target;
  target.stack = stack;
  if (scope != EditScope::all) target.layer = selected.layer;
  if (scope == EditScope::head) target.head = selected.head;
  return target;
}

double temperature_of(const std::vector<Intervention>& edits, HeadId head) {
  double tau = 1;
  for (const Intervention& edit : edits)
    if (const auto* action = edit.action.as<SetTemperature>();
        action && edit.enabled && !edit.target.positions && edit.target.reaches(head))
      tau = action->tau;
  return tau;
}

std::string mask_of(const std::vector<Intervention>& edits, HeadId head) {
  std::string spec;
  for (const Intervention& edit : edits)
    if (const auto* action = edit.action.as<SetMask>();
        action && edit.enabled && !edit.target.positions && edit.target.reaches(head))
      spec = action->spec;
  return spec;
}

void set_temperature(std::vector<Intervention>& edits, const HeadTarget& target, double tau) {
  set(edits, target, SetTemperature{std::clamp(tau, SetTemperature::lowest, SetTemperature::highest)}, tau == 1);
}

void set_mask(std::vector<Intervention>& edits, const HeadTarget& target, const std::string& spec,
              const std::string& own) {
  const std::string wanted = spec.empty() ? own : parse_mask(spec)->describe();
  set(edits, target, SetMask{wanted}, wanted == own);
}

}  // namespace headscope
