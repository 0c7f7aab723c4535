// The list of what is changed about the model: every edit can be switched off, moved, taken away, opened in the form
// that new ones are made in, or written in words.

#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/explore/panels.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/edits/edit.h"
#include "core/edits/edit_notes.h"
#include "core/edits/text_pairing.h"
#include "core/run/edit_pairs.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
/// Of the text whose rows the edit reaches.
std::size_t tokens_reached(const TracedRun& run, const Intervention& edit) {
  const Trace* part = run.whole->part(edit.target.stack);
  return (part ? *part : *run.whole).queries().size();
}
}  // namespace

void EditsPanel::add(const PageContext& c, const Intervention& edit) {
  std::vector<Intervention> edits = c.state().document.edits;
  edits.push_back(edit);
  error_.clear();
  c.editor.history().close_step();
  c.editor.set_edits(std::move(edits));
}

void EditsPanel::list(const PageContext& c) {
  const std::vector<Intervention>& edits = c.state().document.edits;
  std::vector<Intervention> changed = edits;
  bool dragged = false;
  for (std::size_t i = 0; i < edits.size(); ++i) {
    ImGui::PushID(static_cast<int>(i));
    bool on = edits[i].enabled;
    if (ImGui::Checkbox("##on", &on)) changed[i].enabled = on;
    c.ui.name(fmt::format("edit {} on", i), ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    ImGui::SameLine();
    const std::string words = describe(edits[i]);
    const float close = c.ui.px(20), room = ImGui::GetContentRegionAvail().x - close;
    ImGui::PushStyleColor(ImGuiCol_Text, vec(on ? c.ui.theme.text : c.ui.theme.faint));
    const double text_room = static_cast<double>(room / c.ui.scale) - 6;
    // Known by place and words: once it has changed places it is another item, and the drag has done its work.
    const std::string shown(c.ui.fonts.laid_out(elided(words, c.ui.body(), text_room, c.ui.fonts)));
    const bool released = ImGui::Selectable((shown + "###" + words).c_str(), false, 0, {room, 0});
    ImGui::PopStyleColor();
    c.ui.name(fmt::format("edit {}", i), ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    if (ImGui::IsItemActivated()) reordered_ = false;
    if (released && !reordered_) dialog_.ask_change(c, i);
    if (ImGui::IsItemHovered()) {
      std::vector<std::string> lines{words, std::string(said_view(form_of(edits[i].action).meaning))};
      if (const auto& run = c.results().run)
        std::ranges::copy(edit_notes({edits[i]}, run->whole->model.part(edits[i].target.stack),
                                     static_cast<int>(tokens_reached(*run, edits[i]))),
                          std::back_inserter(lines));
      lines.emplace_back(said("click to change it, drag to reorder"));
      tooltip(c.ui, lines);
    }
    // Dragged past its neighbour, an edit changes places with it: later ones win.
    if (ImGui::IsItemActive() && !ImGui::IsItemHovered()) {
      const std::size_t other = i + (ImGui::GetMouseDragDelta(0).y < 0 ? std::size_t(-1) : 1);
      if (other < edits.size()) {
        std::swap(changed[i], changed[other]);
        dragged = reordered_ = true;
        ImGui::ResetMouseDragDelta();
      }
    }
    ImGui::SameLine(0, 0);
    if (ImGui::Button("×", {close, 0})) changed.erase(changed.begin() + static_cast<std::ptrdiff_t>(i));
    c.ui.name(fmt::format("remove edit {}", i), ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    pairs_line(c, i);
    ImGui::PopID();
    if (changed != edits) break;  // the list below belongs to what it was
  }
  if (changed == edits) return;
  if (!dragged) c.editor.history().close_step();  // past several neighbours is one step, two presses are two
  c.editor.set_edits(std::move(changed));
}

// ---- texts that edits take from

/// Reading a text and aligning it takes a moment: on the worker, once for each list of edits.
void EditsPanel::want_pairs(const PageContext& c) {
  EditsOfRun now{c.results().run, c.state().document.edits};
  if (!now.run) return;
  if (now != of_) {
    // Until the new ones come, an edit keeps its own pairs wherever it stands now; those of another are none of its.
    Pairs kept;
    const bool same_text =
        of_.run && of_.run->request.model == now.run->request.model && of_.run->trace->ids() == now.run->trace->ids();
    for (const Intervention& edit : now.edits) {
      const auto old = same_text ? same_source(of_.edits, edit) : std::nullopt;
      kept.texts.push_back(old ? pairs_.texts[*old] : nullptr);
      kept.errors.push_back(old ? pairs_.errors[*old] : "");
    }
    pairs_ = std::move(kept);
    of_ = now;
    carried_ = true;
  }
  if (std::ranges::none_of(now.edits, [](const Intervention& edit) { return edit.action->paired_text(); })) return;
  answer_.want(c.jobs, now, [now, model = c.results().model](const Ctx&) {
    Pairs found;
    for (const Intervention& edit : now.edits) {
      found.texts.emplace_back();
      found.errors.emplace_back();
      try {
        if (auto pairs = edit_pairs(model, now.run->request, now.run->trace->ids(), edit)) {
          auto other = std::make_shared<Trace>();
          other->model = now.run->trace->model;
          other->text = pairs->text;
          other->tokens = std::move(pairs->tokens);
          found.texts.back() = std::make_shared<const PairedTexts>(PairedTexts{
              now.run->trace, std::move(other), std::move(pairs->partner), to_say("this text"), to_say("the other")});
        }
      } catch (const Error& error) {
        found.errors.back() = error.what();
      }
    }
    return found;
  });
  if (const auto found = answer_.current(); found && std::exchange(carried_, false)) pairs_ = *found;
}

/// Under an edit that takes from another text: how many of its tokens have a partner; a click shows which.
void EditsPanel::pairs_line(const PageContext& c, std::size_t index) {
  if (!c.state().document.edits[index].action->paired_text() || index >= pairs_.texts.size()) return;
  const auto& texts = pairs_.texts[index];
  const std::string words = texts ? say("{} paired", count_of_pairs(texts->partner)) : pairs_.errors[index];
  if (words.empty()) return;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + c.ui.px(28));
  const UseFont font(c.ui, c.ui.small());
  ImGui::PushStyleColor(ImGuiCol_Text, vec(texts ? c.ui.theme.accent : c.ui.theme.key));
  if (ImGui::Selectable(words.c_str(), false, ImGuiSelectableFlags_NoAutoClosePopups,
                        {ImGui::GetContentRegionAvail().x, 0}) &&
      texts) {
    opened_ = index;
    ask_ = true;
  }
  ImGui::PopStyleColor();
  c.ui.name(fmt::format("pairs of edit {}", index), ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  if (ImGui::IsItemHovered())
    tooltip(c.ui, texts ? std::vector<std::string>{said("Which token of the other text stands for which of this one"),
                                                   said("click to see, and to change by hand")}
                        : std::vector<std::string>{words});
}

/// The tokens of both texts; pairs are changed by clicking.
void EditsPanel::pairs_window(const PageContext& c) {
  if (std::exchange(ask_, false)) ImGui::OpenPopup("edit pairs");
  const ImVec2 size = ImGui::GetIO().DisplaySize;
  ImGui::SetNextWindowPos({size.x / 2, size.y / 3}, ImGuiCond_Appearing, {0.5f, 0.5f});
  ImGui::SetNextWindowSize({std::min(c.ui.px(900), size.x - c.ui.px(64)), 0});
  if (!ImGui::BeginPopup("edit pairs", ImGuiWindowFlags_NoSavedSettings)) return;
  std::vector<Intervention> edits = c.state().document.edits;
  if (opened_ >= edits.size() || opened_ >= pairs_.texts.size() || !pairs_.texts[opened_] ||
      !edits[opened_].action->pairing()) {
    ImGui::CloseCurrentPopup();
    return ImGui::EndPopup();
  }
  const std::shared_ptr<const PairedTexts> texts = pairs_.texts[opened_];
  TextPairing pairing = *edits[opened_].action->pairing();
  section(c.ui, said("TOKENS AS THEY ARE PAIRED"), picker_.remark(*texts));
  static constexpr const char* names[] = {to_say("by tokens"), to_say("from start"), to_say("from end"),
                                          to_say("by hand")};
  static constexpr TextPairing::By ways[] = {TextPairing::By::tokens, TextPairing::By::start, TextPairing::By::end,
                                             TextPairing::By::hand};
  int way = static_cast<int>(std::ranges::find(ways, pairing.by) - std::begin(ways));
  bool changed = segmented(c.ui, "pairing", std::span(names, pairing.by == TextPairing::By::hand ? 4u : 3u), way);
  if (changed) pairing = ways[way];
  ImGui::Dummy({0, c.ui.px(4)});
  if (const auto by_hand = picker_.draw(c.ui, c.jobs, "edit pairs", texts, size.y * 0.5f)) {
    pairing = TextPairing(TextPairing::By::hand, pairs_of(*by_hand));
    auto shown = std::make_shared<PairedTexts>(*texts);  // the next click goes on from this one
    shown->partner = *by_hand;
    pairs_.texts[opened_] = std::move(shown);
    changed = true;
  }
  if (changed) {
    edits[opened_].action = edits[opened_].action->paired(pairing);
    c.editor.history().close_step();
    c.editor.set_edits(std::move(edits));
  }
  if (ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

void EditsPanel::draw(const PageContext& c) {
  section(c.ui, said("EDITS"), said("in order; later ones win"));
  want_pairs(c);
  list(c);
  pairs_window(c);
  if (button(c.ui, to_say("Add an edit"), c.ui.px(26)) || std::exchange(add_, false)) dialog_.ask_new(c);
  dialog_.draw(c);
  {
    const UseFont font(c.ui, c.ui.token());
    ImGui::SetNextItemWidth(-1);
    if (input_line(c.ui, "##edit words", "1.0: ablate zero ⏎", line_, ImGuiInputTextFlags_EnterReturnsTrue)) {
      try {
        add(c, parse_intervention(line_, "edit"));
        line_.clear();
      } catch (const Error& wrong) {
        error_ = wrong.what();
      }
    }
  }
  if (error_.empty()) return;
  paragraph(c.ui, error_, c.ui.theme.key);
}

}  // namespace headscope
