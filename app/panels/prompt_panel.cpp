#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>

#include "app/panels/panels.h"
#include "app/widgets/controls.h"

namespace headscope {

namespace {

/// How much attention each key of the selected head receives, 0 … 1 of the largest.
std::vector<double> attention_received(const PanelContext& c) {
  const Trace* trace = c.trace();
  std::vector<double> shades(trace->tokens.size(), -1);
  const HeadRef head = c.state().document.selected;
  for (const AttentionMap& map : trace->maps) {
    if (map.layer() != head.layer || map.head() != head.head) continue;
    const std::vector<double>& mass = map.stats().column_mass;
    const double largest = mass.empty() ? 0 : *std::ranges::max_element(mass);
    for (std::size_t i = 0; i < std::min(mass.size(), shades.size()); ++i)
      shades[i] = largest > 0 ? mass[i] / largest : 0;
  }
  return shades;
}

void token_strip(const PanelContext& c) {
  const Trace& trace = *c.trace();
  const std::vector<double> shades = attention_received(c);
  const float gap = c.ui.px(3), right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  const Document& document = c.state().document;
  const auto visible_rows = ImGui::BeginChild(
      "tokens", {0, std::min(c.ui.px(118), c.ui.px(26) * std::ceil(static_cast<float>(trace.tokens.size()) / 5 + 1))},
      ImGuiChildFlags_AutoResizeY);
  if (visible_rows) {
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {gap, gap});
    for (std::size_t i = 0; i < trace.tokens.size(); ++i) {
      const auto position = static_cast<Index>(i);
      if (i > 0) {
        ImGui::SameLine(0, gap);
        const float width = c.ui.px(token_chip_width(c.ui, trace.tokens[i].label));
        if (ImGui::GetCursorScreenPos().x + width > right) ImGui::NewLine();
      }
      ChipOptions chip;
      chip.shade = shades[i];
      chip.selected = document.query == position;
      chip.hovered = c.state().hover.key == position || c.state().hover.query == position;
      const Touch touch = token_chip(c.ui, trace.tokens[i].label, "token " + std::to_string(i), chip);
      if (touch.hovered) c.hovered.key = position;
      if (touch.clicked) c.explorer.pin(document.query == position ? std::nullopt : std::optional(position));
    }
    ImGui::PopStyleVar();
  }
  ImGui::EndChild();
}

}  // namespace

void PromptPanel::draw(const PanelContext& c) {
  section(c.ui, "PROMPT");
  const Document& document = c.state().document;
  if (!editing_) text_ = document.text;
  {
    const UseFont font(c.ui, c.ui.body());
    if (focus_) ImGui::SetKeyboardFocusHere(), focus_ = false;
    if (ImGui::InputTextMultiline("##prompt", &text_, {-1, c.ui.px(64)})) c.explorer.set_text(text_);
  }
  const bool was_editing = editing_;
  editing_ = ImGui::IsItemActive();
  if (was_editing && !editing_) c.explorer.close_step();
  ImGui::Dummy({0, c.ui.px(2)});
  const Trace* trace = c.trace();
  if (!trace) {
    if (text_.empty()) section(c.ui, "TOKENS", "write a text above");
    return;
  }
  section(c.ui, "TOKENS", "" + std::to_string(trace->tokens.size()) + " · shaded by attention received · click to pin");
  token_strip(c);
}

}  // namespace headscope
