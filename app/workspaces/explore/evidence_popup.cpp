#include "app/workspaces/explore/evidence_popup.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "core/base/nth.h"
#include "core/base/words.h"

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/explore/panels.h"
#include "app/workspaces/head_cells.h"

namespace headscope {

namespace {
constexpr const char* popup = "evidence of the head's classes";

std::string at(const std::string& label, Index position) {
  return fmt::format("{} {}", label, position);
}

std::string summary(const HeadVerdict& verdict) {
  return fmt::format("{:.3f}, {}", verdict.score, beside_chance(verdict));
}
}  // namespace

const std::vector<HeadVerdict>& verdicts_of(const PageContext& c) {
  static const std::vector<HeadVerdict> none;
  const HeadFacts* facts = c.facts();
  const int row = facts ? facts->row(c.state().document.selected) : -1;
  return row < 0 ? none : facts->told(row);
}

void evidence_popup(const PageContext& c) {
  const std::vector<HeadVerdict>& verdicts = verdicts_of(c);
  const Ui& ui = c.ui;
  if (ImGui::IsItemHovered()) {
    ImGui::SetMouseCursor(ImGuiMouseCursor_Hand);
    const HeadVerdict& first = verdicts.front();
    tooltip(ui, {fmt::format("{}: {}", said(first.rule->title), summary(first)),
                 std::string(said_view(metric(first.rule->metric).formula)), said("click: the cells that show it")});
  }
  if (ImGui::IsItemClicked()) ImGui::OpenPopup(popup);
  // At the right end of the column: what is left of a causal map's cells lies at its left.
  const ImVec2 below{ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x,
                     ImGui::GetItemRectMax().y + ui.px(6)};
  ImGui::SetNextWindowPos(below, ImGuiCond_Always, {1, 0});
  ImGui::SetNextWindowSize({ui.px(300), 0});
  if (!ImGui::BeginPopup(popup)) return;
  for (const HeadVerdict& verdict : verdicts) {
    section(ui, said(verdict.rule->title));
    paragraph(ui, summary(verdict), ui.theme.text);
    paragraph(ui, said_view(metric(verdict.rule->metric).formula), ui.theme.muted);
    if (verdict.weak)
      paragraph(ui, said("No class meets all its thresholds in this head: this is what it comes nearest to."),
                ui.theme.faint);
    if (verdict.rule->times_distance > 0)
      paragraph(ui, said("Links between words are told by a list of English words and short rules, not by a parser."),
                ui.theme.faint);
    for (const Evidence& cell : verdict.evidence) {
      const std::string words = say("{} looks at {}: {:.3f}", at(query_label(*c.trace(), cell.query), cell.query),
                                    at(token_label(*c.trace(), cell.key), cell.key), cell.weight);
      if (ImGui::Selectable(
              fmt::format("{}###{} {} {}", ui.fonts.laid_out(words), verdict.rule->id, cell.query, cell.key).c_str(),
              c.state().document.query == cell.query && c.state().document.key == cell.key,
              ImGuiSelectableFlags_NoAutoClosePopups))
        c.editor.pin(cell.query, cell.key);
      ui.name(words, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
      if (ImGui::IsItemHovered()) c.hovered.query = cell.query, c.hovered.key = cell.key;
    }
  }
  paragraph(
      ui,
      said("The strongest cells of each class; a click pins one. p bounds how often a head with its weights in random "
           "order would score as much on as many rows."),
      ui.theme.faint);
  if (const HeadFacts* facts = c.facts(); facts && !facts->not_measurable.empty())
    paragraph(ui,
              say("Not measurable on this text, which holds none of their cells that a head may see: {}.",
                  facts->not_measurable),
              ui.theme.faint);
  ImGui::EndPopup();
}

void paint_evidence(const PageContext& c, const SceneTouch& touch, const Heatmap& map) {
  if (!ImGui::IsPopupOpen(popup)) return;
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  for (const HeadVerdict& verdict : verdicts_of(c))
    for (const Evidence& cell : verdict.evidence) {
      const auto row = map.row_of(c.shown(cell.query)), column = map.column_of(c.shown(cell.key));
      if (!row || !column) continue;
      const Rect r = map.cell(*row, *column);
      draw.AddRect(touch.window({r.x, r.y}), touch.window({r.right(), r.bottom()}), col(class_color(*verdict.rule)), 0,
                   0, c.ui.px(2));
    }
}

}  // namespace headscope
