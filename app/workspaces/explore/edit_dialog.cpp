#include "app/workspaces/explore/edit_dialog.h"

#include <fmt/format.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <utility>

#include "app/actions/fuzzy.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/picture_item.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/ablate_edit.h"
#include "core/edits/edit.h"
#include "core/edits/weight_edit.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
constexpr const char* title = "edit form";

std::string label_of(const EditForm& form) {
  return "edit: " + std::string(form.lead);
}

/// The text whose rows an edit of that stack reaches. REQUIRES a run.
const std::vector<Token>& reached_tokens(const PageContext& c, Stack stack) {
  const Trace* part = c.whole()->part(stack);
  return (part ? *part : *c.whole()).queries();
}
}  // namespace

void EditDialog::take(const Intervention& edit) {
  form_ = &form_of(edit.action);
  EditAnswers& answers = answers_[form_];
  if (answers.empty()) answers = usual_answers(*form_);
  answers = answers_of(edit.action, std::move(answers));
  target_ = edit.target;
  line_ = describe(edit);
  error_.clear();
}

void EditDialog::ask_new(const PageContext& c) {
  ask_ = true;
  index_.reset();
  more_.clear();
  search_.clear();
  answers_.clear();
  const Document& document = c.state().document;
  for (const EditForm& form : edit_forms())
    if (const auto* set = form.usual.as<SetWeight>()) {  // of the pinned cell
      SetWeight action = *set;
      action.query = static_cast<int>(document.query.value_or(action.query));
      action.key = static_cast<int>(document.key.value_or(action.key));
      answers_[&form] = answers_of(action, usual_answers(form));
    }
  const EditForm& ablate = form_of(Ablate{});  // the first question about a head: is it needed?
  start_ = {target_of(c.state().view.edit_scope, document.selected, document.stack), ablate.usual};
  take(start_);
  fields_.forget();
}

void EditDialog::ask_change(const PageContext& c, std::size_t index) {
  ask_ = true;
  index_ = index;
  more_.clear();
  search_.clear();
  answers_.clear();
  start_ = c.state().document.edits[index];
  take(start_);
  fields_.forget();
}

void EditDialog::choose(const PageContext& c, const EditForm& form) {
  form_ = &form;
  EditAnswers& answers = answers_[form_];
  if (answers.empty()) answers = usual_answers(form);
  compose(c);
}

/// The line from the form.
void EditDialog::compose(const PageContext& c) {
  const std::string words = words_of(grammar_of(*form_), answers_[form_]);
  try {  // what concerns layers as a whole reaches all of their heads
    if (target_.head && parse_edit_action(words, "edit")->whole_layer()) target_.head.reset(), more_.clear();
  } catch (const Error&) {
    if (!form_->per_head) target_.head.reset(), more_.clear();
  }
  line_ = text_of(target_) + ": " + words;
  if (const auto edit = checked(c)) line_ = describe(*edit);
}

/// The form from the line.
void EditDialog::read_line(const PageContext& c) {
  const auto edit = checked(c);
  if (!edit) return;
  const std::string written = std::exchange(line_, "");
  take(*edit);
  line_ = written;  // as it is being typed
}

/// The edit that the line says; nothing, and why not in error_, when it is no good here.
std::optional<Intervention> EditDialog::checked(const PageContext& c) {
  error_.clear();
  try {
    Intervention edit = parse_intervention(line_, "edit");
    edit.enabled = true;
    if (edit.target.stack == Stack::only) edit.target.stack = c.state().document.stack;
    if (c.results().model.model && c.whole()) {
      check_stacks({edit}, c.whole()->model);
      check_targets({edit}, c.whole()->model.part(edit.target.stack).dims,
                    static_cast<int>(reached_tokens(c, edit.target.stack).size()));
    }
    edit.enabled = !index_ || start_.enabled;
    return edit;
  } catch (const Error& wrong) {
    error_ = say("Expected {}, found {}.", wrong.expected, wrong.found);
    if (!wrong.hint.empty()) error_ += " " + wrong.hint;
    return std::nullopt;
  }
}

void EditDialog::confirm(const PageContext& c) {
  auto edit = checked(c);
  if (!edit) return;
  std::vector<Intervention> edits = c.state().document.edits, made{*edit};
  for (const HeadId& head : more_) {
    edit->target.layer = head.layer, edit->target.head = head.head;
    made.push_back(*edit);
  }
  auto at = edits.end();
  if (index_ && *index_ < edits.size()) at = edits.erase(edits.begin() + static_cast<std::ptrdiff_t>(*index_));
  edits.insert(at, made.begin(), made.end());
  c.editor.history().close_step();
  c.editor.set_edits(std::move(edits));
  ImGui::CloseCurrentPopup();
}

/// What can be done, by groups, each with a sentence; letters find it. True where Enter was meant for the search.
bool EditDialog::kinds(const PageContext& c) {
  ImGui::SetNextItemWidth(-1);
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  input_line(c.ui, "##search edits", said("Search edits"), search_);
  const bool chosen_by_key = ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Enter);
  ImGui::BeginChild("kinds", {0, 0}, ImGuiChildFlags_NavFlattened);
  std::string group;
  const EditForm* first = nullptr;
  for (const EditForm& form : edit_forms()) {
    const std::string text = fmt::format("{} {} {} {} {} {}", form.lead, form.group, form.meaning, said_view(form.lead),
                                         said_view(form.group), said_view(form.meaning));
    if (!search_.empty() && !fuzzy_match(search_, form.lead) && text.find(search_) == std::string::npos) continue;
    if (!first || (!first->lead.starts_with(search_) && form.lead.starts_with(search_))) first = &form;
    if (group != form.group) section(c.ui, said(group = form.group));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float room = ImGui::GetContentRegionAvail().x;
    const auto width = [&](std::string_view line) { return c.ui.fonts.width(std::string(line), c.ui.small()); };
    const std::string words =
        broken_at_spaces(said_view(form.meaning), static_cast<double>(room / c.ui.scale) - 16, width);
    const auto lines = static_cast<double>(1 + std::ranges::count(words, '\n'));
    const float height = c.ui.px((24 + 15 * lines) * c.ui.theme.text_scale);
    if (ImGui::Selectable(("##" + label_of(form)).c_str(), form_ == &form, 0, {room, height})) choose(c, form);
    c.ui.name(label_of(form), at, {at.x + room, at.y + height});
    const ImVec2 next = ImGui::GetCursorScreenPos();
    ImGui::SetCursorScreenPos({at.x + c.ui.px(8), at.y + c.ui.px(2)});
    {
      const UseFont font(c.ui, c.ui.strong());
      text_line(c.ui, said_view(form.lead));
    }
    ImGui::SetCursorScreenPos({at.x + c.ui.px(8), at.y + c.ui.px(20 * c.ui.theme.text_scale)});
    {
      const UseFont font(c.ui, c.ui.small());
      text_line(c.ui, words, c.ui.theme.muted);
    }
    ImGui::SetCursorScreenPos(next);
  }
  ImGui::Dummy({0, 0});
  if (!first) text_line(c.ui, said("No edit is called that."), c.ui.theme.muted);
  ImGui::EndChild();
  if (chosen_by_key && first) choose(c, *first);
  return chosen_by_key;
}

std::string EditDialog::also() const {
  std::string text;
  for (const HeadId& head : more_) text += fmt::format("{}{}.{}", text.empty() ? "" : ", ", head.layer, head.head);
  return text;
}

/// A cell for every head, layers below one another. A click takes one head, on a number a layer or a column; with Ctrl
/// or Shift a further head.
bool EditDialog::heads(const PageContext& c) {
  if (!c.results().model.model || !c.whole()) return false;
  const ModelDims& dims = c.whole()->model.part(target_.stack).dims;
  const HeadTarget before = target_;
  const auto more_before = more_;
  const bool layers_only = !form_->per_head;
  const auto clear = [&] { more_.clear(); };
  if (c.results().translates()) {
    static constexpr const char* labels[] = {to_say("Encoder"), to_say("Decoder"), to_say("Cross")};
    static constexpr Stack stacks[] = {Stack::encoder, Stack::decoder, Stack::cross};
    int which = target_.stack == Stack::encoder ? 0 : target_.stack == Stack::cross ? 2 : 1;
    if (segmented(c.ui, "edit stack", labels, which)) {
      target_ = {};  // layers, heads and positions are of the other stack
      target_.stack = nth(stacks, which);
      clear();
    }
  }
  if (button(c.ui, to_say("All"), c.ui.px(24))) target_.layer.reset(), target_.head.reset(), clear();
  const HeadId selected = c.state().document.selected;
  const std::string layer = say("Layer {}", selected.layer), head = say("Head {}.{}", selected.layer, selected.head);
  ImGui::SameLine(0, c.ui.px(6));
  if (button(c.ui, layer.c_str(), c.ui.px(24))) target_.layer = selected.layer, target_.head.reset(), clear();
  if (!layers_only) {
    ImGui::SameLine(0, c.ui.px(6));
    if (button(c.ui, head.c_str(), c.ui.px(24))) target_.layer = selected.layer, target_.head = selected.head, clear();
  }
  const Font font = c.ui.small();
  const float gutter = c.ui.px(26), top = c.ui.px(16);
  const float room = ImGui::GetContentRegionAvail().x - c.ui.px(16);
  const float cell = std::clamp((room - gutter) / static_cast<float>(dims.most_heads()), c.ui.px(8), c.ui.px(22));
  const float height = top + cell * static_cast<float>(dims.layers);
  ImGui::BeginChild("head grid", {0, std::min(height + c.ui.px(4), c.ui.px(150))}, ImGuiChildFlags_NavFlattened,
                    ImGuiWindowFlags_HorizontalScrollbar);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  // What the arrow keys walk over, in window pixels: heads, and with −1 a whole layer, a head of every layer, or all.
  Scene grid;
  for (int l = -1; l < dims.layers; ++l)
    for (int h = -1; h < (l < 0 ? dims.most_heads() : dims.heads_of(l)); ++h) {
      const float x = h < 0 ? 0 : gutter + cell * static_cast<float>(h),
                  y = l < 0 ? 0 : top + cell * static_cast<float>(l);
      grid.add({Box{{x, y, h < 0 ? gutter : cell, l < 0 ? top : cell}}, fmt::format("{}.{}", l, h), "", HeadId{l, h}});
    }
  std::optional<SceneStop> stop =
      same_stop(grid, fmt::format("{}.{}", reached_.layer, reached_.head), std::nullopt, {}, c.ui.fonts);
  const PictureItem item =
      picture_item(c.ui, "heads", {gutter + cell * static_cast<float>(dims.most_heads()), height}, grid, stop, at, 1);
  if (const auto* at_head = stop ? meaning<HeadId>(stop->mark) : nullptr) reached_ = *at_head;
  const ImVec2 mouse = ImGui::GetMousePos();
  int column = mouse.x < at.x + gutter ? -1 : static_cast<int>((mouse.x - at.x - gutter) / cell);
  int row = mouse.y < at.y + top ? -1 : static_cast<int>((mouse.y - at.y - top) / cell);
  if (item.at_keys) row = reached_.layer, column = reached_.head;
  const bool inside =
      ImGui::IsItemHovered() && row < dims.layers && column < (row < 0 ? dims.most_heads() : dims.heads_of(row));
  if (item.at_keys ? item.pressed : inside && ImGui::IsMouseClicked(ImGuiMouseButton_Left)) {
    const ImGuiIO& io = ImGui::GetIO();
    const bool one = row >= 0 && column >= 0 && !layers_only;
    const HeadId clicked{row, column};
    if (one && (io.KeyCtrl || io.KeyShift) && target_.layer && target_.head) {
      if (std::erase(more_, clicked) == 0 && !(HeadId{*target_.layer, *target_.head} == clicked))
        more_.push_back(clicked);
    } else {
      clear();
      target_.layer = row >= 0 ? std::optional(row) : std::nullopt;
      target_.head = column >= 0 && !layers_only ? std::optional(column) : std::nullopt;
    }
  }
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto taken = [&](int l, int h) {
    return target_.reaches({l, h}) || std::ranges::find(more_, HeadId{l, h}) != more_.end();
  };
  const auto number = [&](int value, float x, float y, bool strong) {
    draw_text(c.ui, draw,
              {{0, 0}, std::to_string(value), font, strong ? c.ui.theme.text : c.ui.theme.faint, Anchor::middle, 0},
              {x, y + static_cast<float>(half_capital(font)) * c.ui.scale});
  };
  const int skip_heads = cell < c.ui.px(16) ? 5 : 1, skip_layers = cell < c.ui.px(13) ? 2 : 1;
  for (int h = 0; h < dims.most_heads(); ++h) {
    const float x = at.x + gutter + cell * static_cast<float>(h);
    if (h % skip_heads == 0) number(h, x + cell / 2, at.y + top / 2, inside && row < 0 && column == h);
    c.ui.name(fmt::format("edit column {}", h), {x, at.y}, {x + cell, at.y + top});
  }
  for (int l = 0; l < dims.layers; ++l) {
    const float y = at.y + top + cell * static_cast<float>(l);
    if (l % skip_layers == 0) number(l, at.x + gutter / 2, y + cell / 2, inside && column < 0 && row == l);
    c.ui.name(fmt::format("edit layer {}", l), {at.x, y}, {at.x + gutter, y + cell});
    for (int h = 0; h < dims.heads_of(l); ++h) {
      const float x = at.x + gutter + cell * static_cast<float>(h);
      const ImVec2 min{x + 1, y + 1}, max{x + cell - 1, y + cell - 1};
      draw.AddRectFilled(min, max, col(taken(l, h) ? c.ui.theme.accent : c.ui.chrome.raised), c.ui.px(2));
      const bool pointed = inside && (row < 0 || row == l) && (column < 0 || column == h || layers_only);
      if (pointed || HeadId{l, h} == selected)
        draw.AddRect(min, max, col(pointed ? c.ui.theme.text : c.ui.theme.muted), c.ui.px(2));
      if (c.ui.items) c.ui.name(fmt::format("edit head {}.{}", l, h), min, max);
    }
  }
  if (item.at_keys) frame_stop(c.ui, "heads", *stop, at, 1);
  ImGui::EndChild();
  if (inside)
    tooltip(c.ui, {row < 0 && column < 0       ? std::string(said("All heads"))
                   : column < 0 || layers_only ? say("Layer {}", row)
                   : row < 0                   ? say("Head {} of every layer", column)
                                               : say("Layer {} head {}", row, column),
                   layers_only ? said("this edit concerns layers as a whole")
                               : said("Ctrl or Shift and a click: a further head")});
  return !(target_ == before) || more_ != more_before;
}

/// The text; a click takes one token, dragging a stretch.
bool EditDialog::tokens(const PageContext& c) {
  const std::vector<Token>& tokens = reached_tokens(c, target_.stack);
  const int count = static_cast<int>(tokens.size());
  PositionRange& range = *target_.positions;
  const PositionRange before = range;
  const auto place = [&](int at) { return at < 0 ? at + count : at; };
  const float chip = c.ui.px(22), line_height = chip + c.ui.px(3);
  ImGui::BeginChild("edit tokens", {0, 3 * line_height + c.ui.px(4)}, ImGuiChildFlags_NavFlattened);
  const float right = ImGui::GetContentRegionAvail().x;
  float x = 0, y = 0;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const ImVec2 mouse = ImGui::GetMousePos();
  for (int i = 0; i < count; ++i) {
    const std::string& label = nth(tokens, i).label;
    const float width = static_cast<float>(token_chip_width(c.ui, label)) * c.ui.scale;
    if (x > 0 && x + width > right) x = 0, y += line_height;
    const ImVec2 min{at.x + x, at.y + y}, max{min.x + width, min.y + chip};
    x += width + c.ui.px(2);
    if (!ImGui::IsRectVisible(min, max)) continue;
    ImGui::SetCursorScreenPos(min);
    token_chip(c.ui, label, fmt::format("edit token {}", i),
               {.selected = i >= place(range.first) && i <= place(range.last)});
    if (ImGui::IsItemActivated()) dragged_from_ = i;
    const bool over = mouse.x >= min.x && mouse.x < max.x && mouse.y >= min.y && mouse.y < max.y;
    if (dragged_from_ && over) range = {std::min(*dragged_from_, i), std::max(*dragged_from_, i)};
  }
  ImGui::SetCursorScreenPos({at.x, at.y + y + line_height});
  ImGui::Dummy({0, 0});
  ImGui::EndChild();
  if (!ImGui::IsMouseDown(ImGuiMouseButton_Left)) dragged_from_.reset();
  return !(range == before);
}

bool EditDialog::positions(const PageContext& c) {
  static constexpr const char* which[] = {to_say("All positions"), to_say("Some")};
  int some = target_.positions ? 1 : 0;
  bool changed = segmented(c.ui, "positions", which, some);
  if (changed) {
    const Document& document = c.state().document;
    const int pinned = static_cast<int>(document.query.value_or(-1));
    target_.positions = some ? std::optional(PositionRange{pinned, pinned}) : std::nullopt;
  }
  if (!target_.positions) return changed;
  ImGui::SameLine(0, c.ui.px(12));
  ImGui::AlignTextToFramePadding();
  text_line(c.ui, said("from"));
  ImGui::SameLine();
  changed |= position_choice(c, "from position", target_.positions->first);
  ImGui::SameLine();
  text_line(c.ui, said("to"));
  ImGui::SameLine();
  changed |= position_choice(c, "to position", target_.positions->last);
  if (c.trace()) changed |= tokens(c);
  return changed;
}

bool EditDialog::where(const PageContext& c) {
  section(c.ui, said("WHERE"),
          more_.empty() ? text_of(target_) : say("{} and {} more: {}", text_of(target_), more_.size(), also()));
  bool changed = heads(c);
  ImGui::Dummy({0, c.ui.px(2)});
  changed |= positions(c);
  return changed;
}

void EditDialog::draw(const PageContext& c) {
  if (std::exchange(ask_, false)) ImGui::OpenPopup(title);
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  const float width = std::min(c.ui.px(940 * c.ui.theme.text_scale), size.x - c.ui.px(32)),
              height = std::min(c.ui.px(660 * c.ui.theme.text_scale), size.y - c.ui.px(32));
  ImGui::SetNextWindowPos({size.x / 2, size.y / 2}, ImGuiCond_Always, {0.5f, 0.5f});
  ImGui::SetNextWindowSize({width, height});
  if (!ImGui::BeginPopupModal(title, nullptr,
                              ImGuiWindowFlags_NoTitleBar | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoResize |
                                  ImGuiWindowFlags_NoSavedSettings))
    return;
  if (index_ && *index_ >= c.state().document.edits.size()) {  // gone meanwhile
    ImGui::CloseCurrentPopup();
    return ImGui::EndPopup();
  }
  {
    const UseFont use(c.ui, c.ui.heading());
    text_line(c.ui, index_ ? said("Change an edit") : said("Add an edit"));
  }
  const float foot = c.ui.px(164 * c.ui.theme.text_scale), left = std::min(c.ui.px(290), width * 0.34f);
  ImGui::BeginChild("left", {left, -foot}, ImGuiChildFlags_NavFlattened);
  const bool searched = kinds(c);
  ImGui::EndChild();
  ImGui::SameLine(0, c.ui.px(16));
  ImGui::BeginChild("right", {0, -foot}, ImGuiChildFlags_NavFlattened);
  bool changed = where(c);
  section(c.ui, std::string(said_view(form_->lead)));
  paragraph(c.ui, said_view(form_->meaning), c.ui.theme.muted);
  ImGui::Dummy({0, c.ui.px(2)});
  const FieldTouch touch = fields_.draw(c, grammar_of(*form_), answers_[form_]);
  ImGui::EndChild();
  if (changed || touch.changed) compose(c);

  section(c.ui, said("IN WORDS"), said("as on the command line: --edit"));
  bool entered = false;
  {
    const UseFont font(c.ui, c.ui.token());
    ImGui::SetNextItemWidth(-1);
    if (input_line(c.ui, "##edit line", std::string(form_->form).c_str(), line_)) read_line(c);
    entered = ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Enter);
  }
  ImGui::BeginChild("said", {0, c.ui.px(40 * c.ui.theme.text_scale)});
  if (!error_.empty()) {
    const UseFont font(c.ui, c.ui.small());
    paragraph(c.ui, error_, c.ui.theme.key);
    c.ui.name("edit error", ImGui::GetWindowPos(), ImGui::GetItemRectMax());
  }
  ImGui::EndChild();
  const char* done = index_ ? to_say("Change") : to_say("Add");
  ImGui::BeginDisabled(!error_.empty());
  entered |= button(c.ui, done);
  ImGui::EndDisabled();
  ImGui::SameLine(0, c.ui.px(8));
  const bool own_keys = ImGui::IsWindowFocused(ImGuiFocusedFlags_ChildWindows | ImGuiFocusedFlags_NoPopupHierarchy);
  if (button(c.ui, to_say("Cancel")) || (own_keys && ImGui::IsKeyPressed(ImGuiKey_Escape))) ImGui::CloseCurrentPopup();
  const bool enter = own_keys && ImGui::IsKeyPressed(ImGuiKey_Enter);
  entered |= enter && (ImGui::GetIO().KeyCtrl || (!touch.in_text && !searched));
  if (entered && error_.empty()) confirm(c);
  ImGui::EndPopup();
}

}  // namespace headscope
