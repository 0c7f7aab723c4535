// The arithmetic of one cell of the steps, in words with the actual numbers, on the page itself: of the cell that the
// pointer is on, else of the one that a click pinned and the arrow keys move, else of one that tells most.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <vector>

#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/paragraph.h"
#include "app/widgets/text_draw.h"
#include "app/workspaces/mechanisms/mechanisms_workspace.h"
#include "core/attention/mechanism_math.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

const MechanismStep* step_of(const MechanismPage& page, const std::string& id) {
  const auto found = std::ranges::find(page.result.steps, id, &MechanismStep::id);
  return found == page.result.steps.end() ? nullptr : &*found;
}

bool is_hidden(const MechanismStep& step, Index row, Index column) {
  return !step.masked.empty() && nth(step.masked, row * step.value.dim(1) + column);
}

/// Each step's number for the same query and key: "Q Kᵀ 1.00 → Scores 0.71 → … ".
std::string chain(const MechanismPage& page, const MechanismStep& told, Index row, Index column) {
  std::string out;
  int links = 0;
  for (const MechanismStep& step : page.result.steps) {
    if (step.rows != told.rows || step.columns != told.columns || step.columns != MechanismAxis::key) continue;
    if (step.value.shape() != told.value.shape() || step.first_row != told.first_row) continue;
    if (is_hidden(step, row, column)) return {};
    const std::string number = mechanism::brief(static_cast<double>(step.value.at(row, column)));
    out += fmt::format("{}{} {}", links++ ? "  →  " : "", said(step.title), number);
  }
  return links > 1 ? out : std::string();
}

}  // namespace

void MechanismsWorkspace::walk(AppContext& app, bool list_takes_arrows) {
  auto& pinned = controller_.pinned;
  if (!pinned) return;
  const MechanismStep* step = step_of(*controller_.page(), pinned->step);
  if (!step || step->value.size() == 0) return pinned.reset();  // the page that was chosen since has no such cell
  if (ImGui::GetIO().WantTextInput || walking_controls()) return;
  if (ImGui::IsKeyPressed(ImGuiKey_Escape)) return pinned.reset();
  if (list_takes_arrows) return;
  app.ui.arrows_taken = app.ui.sideways_taken = true;
  const auto moved = [](Index at, ImGuiKey back, ImGuiKey on, Index count) {
    return std::clamp<Index>(at + ImGui::IsKeyPressed(on) - ImGui::IsKeyPressed(back), 0, count - 1);
  };
  pinned->row = moved(pinned->row, ImGuiKey_UpArrow, ImGuiKey_DownArrow, step->value.dim(0));
  pinned->column = moved(pinned->column, ImGuiKey_LeftArrow, ImGuiKey_RightArrow, step->value.dim(1));
}

void MechanismsWorkspace::arithmetic(Ui& ui) {
  const MechanismPage& page = *controller_.page();
  const auto known = [&](const std::optional<MechanismCell>& cell) { return cell && step_of(page, cell->step); };
  const std::optional<MechanismCell> cell = known(told_)                ? told_
                                            : known(controller_.pinned) ? controller_.pinned
                                                                        : telling_cell(page);
  if (!known(cell)) return;
  const MechanismStep& step = *step_of(page, cell->step);
  if (step.value.size() == 0) return;
  const Index row = std::min(cell->row, step.value.dim(0) - 1), column = std::min(cell->column, step.value.dim(1) - 1);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x;
  draw.AddLine({at.x, at.y + ui.px(3)}, {at.x + room, at.y + ui.px(3)}, col(ui.theme.line));
  const double logical = static_cast<double>(room / ui.scale);
  float y = at.y + ui.px(10);
  const auto write = [&](const std::string& text, const Font& font, Color color, double left, double width) {
    draw_text(ui, draw, {{0, 0}, elided(text, font, width, ui.fonts), font, color, Anchor::start, 0},
              {at.x + static_cast<float>(left) * ui.scale, y + static_cast<float>(font.size) * ui.scale});
    return std::min(ui.fonts.width(text, font), width);
  };
  const bool hidden = is_hidden(step, row, column);
  const auto value = static_cast<double>(step.value.at(row, column));
  Font strong = ui.body();
  strong.weight = 600;
  const std::string title = said(step.title) + "  ",
                    where = fmt::format("{}  →  {}", row_place(page, step, row), column_place(page, step, column));
  const std::string help =
      controller_.pinned ? said("arrow keys move it · Esc lets go") : said("click a cell to keep it here");
  const double help_width = ui.fonts.width(help, ui.small());
  double x = write(title, strong, ui.theme.text, 0, logical);
  x += write(where, ui.body(), ui.theme.muted, x, std::max(logical - x - help_width - 12, 20.0));
  if (x + help_width + 12 < logical) write(help, ui.small(), ui.theme.faint, logical - help_width, help_width + 1);
  y += ui.px(21);
  const std::string sum = hidden         ? say("hidden: {}", page.input.rule->describe())
                          : step.explain ? step.explain(row, column)
                                         : fmt::format("{}: {}", mechanism::brief(value), said(step.formula));
  write(sum, ui.number(), ui.theme.text, 0, logical);
  y += ui.px(20);
  write(hidden ? said(step.formula) : chain(page, step, row, column), ui.small(), ui.theme.muted, 0, logical);
  ImGui::Dummy({room, ui.px(66)});
  if (ImGui::IsItemHovered())
    tooltip(ui, {fmt::format("{} [{}]", said(step.title), where), sum, said(step.formula),
                 page.source == MechanismSource::Kind::head ? say("Q, K, V of {}, F32", head_title(page.head))
                                                            : said("of the input on the right, F32")});
}

}  // namespace headscope
