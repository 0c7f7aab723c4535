// The right column: temperature, mask, numbers of the head.

#include <fmt/format.h>
#include <imgui.h>
#include <misc/cpp/imgui_stdlib.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/explore/panels.h"
#include "core/attention/masks.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/map_cells.h"

namespace headscope {

namespace {

std::string number(double value, std::string_view unit) {
  if (std::isnan(value)) return "–";
  return fmt::format("{:.2f}{}{}", value, unit.empty() ? "" : " ", said_view(unit));
}

/// Those with a picture here, so that the column keeps room for what follows from them; the others are written below,
/// or chosen under Analyse.
bool usual_mask(const MaskForm& form) {
  static constexpr std::string_view usual[] = {"causal", "full",   "window", "dilated", "strided",
                                               "global", "random", "prefix", "sink",    "padding"};
  return std::ranges::find(usual, form.id) != std::end(usual);
}

}  // namespace

void SoftmaxPanel::draw(const PageContext& c) {
  section(c.ui, said("SOFTMAX"));
  static constexpr const char* scopes[] = {to_say("This head"), to_say("Layer"), to_say("All heads")};
  int scope = static_cast<int>(c.state().view.edit_scope);
  if (segmented(c.ui, "edit scope", scopes, scope)) c.editor.view().edit_scope = static_cast<EditScope>(scope);
  const bool all = c.state().view.edit_scope == EditScope::all && !holds_state(c.results());
  if (!all && holds_state(c.results(), c.state().document.selected.layer))
    return note(c.ui,
                said("This layer has no softmax, and so no temperature: its weights may have any sign and size."));
  double tau = temperature_of(c.edits(), c.state().document.selected);
  if (slider(c.ui, to_say("Temperature"), tau, {0.05, 20, 1, true, "", 2})) c.editor.set_temperature(tau);
  const auto detail = c.results().detail;
  if (!detail) return;
  const double width = std::floor(c.room());
  slot_.want(c.jobs, c.ui, detail, std::to_string(width), [detail, width](const Style& style) {
    LineChart chart;
    chart.width = width;
    chart.height = 112;
    chart.y_title = said("entropy against temperature, nats");
    chart.y_low = 0;
    chart.log_x = true;
    chart.x_ticks = {0.05, 0.2, 1, 5, 20};
    chart.series = {{"", style.theme.accent, detail->curve.tau, detail->curve.entropy}};
    if (std::isfinite(detail->entropy)) chart.marker = Point{detail->temperature, detail->entropy};
    return line_chart_scene(chart, style);
  });
  slot_.draw(c.ui, "curve", {}, width, 112);
}

void MaskPanel::draw(const PageContext& c) {
  section(c.ui, said("MASK"), said("of the same heads · more in Analyse"));
  if (c.trace() && c.trace()->between_texts()) {
    const UseFont font(c.ui, c.ui.body());
    return paragraph(
        c.ui,
        said("The keys are of another text than the queries: no distance counts here. Hide cells with the tool "
             "“mask” on the map."),
        c.ui.theme.muted);
  }
  const std::string own = c.results().own_mask(c.state().document.stack);  // needs no edit
  const std::string current = mask_of(c.edits(), c.state().document.selected);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  float widest = 0;  // the longest name below a picture
  for (const MaskForm& form : mask_forms())
    if (usual_mask(form))
      widest = std::max(widest, static_cast<float>(c.ui.fonts.width(form.id, c.ui.small())) * c.ui.scale);
  const float side = c.ui.px(36), pitch = std::max(side + c.ui.px(6), widest + c.ui.px(7)),
              left = ImGui::GetCursorScreenPos().x,
              right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  constexpr Index n = 8;
  int at_column = 0;
  for (const MaskForm& form : mask_forms()) {
    if (!usual_mask(form)) continue;
    if (at_column > 0 && left + static_cast<float>(at_column + 1) * pitch - c.ui.px(6) > right) at_column = 0;
    if (at_column > 0) {
      ImGui::SameLine();
      ImGui::SetCursorScreenPos({left + static_cast<float>(at_column) * pitch, ImGui::GetCursorScreenPos().y});
    }
    ++at_column;
    const std::string spec(form.example), id = "mask " + std::string(form.id);
    const bool chosen = spec == current || (current.empty() && form.id == own);
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const UseFont font(c.ui, c.ui.small());
    const float height = side + c.ui.px(15 * c.ui.theme.text_scale);
    if (pressable(id.c_str(), {side, height})) {
      error_.clear();
      c.editor.set_mask(spec, own);
    }
    const bool hovered = ImGui::IsItemHovered();
    const auto rule = parse_mask(spec);
    const float cell = std::floor(side / static_cast<float>(n));
    for (Index q = 0; q < n; ++q)
      for (Index k = 0; k < n; ++k) {
        const ImVec2 from{at.x + cell * static_cast<float>(k), at.y + cell * static_cast<float>(q)};
        const Color color = masked(*rule, q, k, n) ? c.ui.theme.masked : chosen ? c.ui.theme.accent : c.ui.theme.muted;
        draw.AddRectFilled(from, {from.x + cell - 1, from.y + cell - 1}, col(color));
      }
    draw.AddText({at.x, at.y + side + c.ui.px(1)},
                 col(chosen    ? c.ui.theme.text
                     : hovered ? c.ui.theme.muted
                               : c.ui.theme.faint),
                 std::string(form.id).c_str());
    if (hovered)
      tooltip(c.ui, {fmt::format("{}: {}", said_view(form.title), spec), std::string(said_view(form.meaning)),
                     say("query i sees key j where {}", said_view(form.predicate)), std::string(form.source)});
  }
  if (!ImGui::IsAnyItemActive() && error_.empty()) spec_ = current.empty() ? own : current;
  {
    const UseFont font(c.ui, c.ui.token());
    ImGui::SetNextItemWidth(-1);
    if (ImGui::InputText("##mask spec", &spec_, ImGuiInputTextFlags_EnterReturnsTrue)) {
      try {
        (void)parse_mask(spec_);
        error_.clear();
        c.editor.set_mask(spec_, own);
      } catch (const Error& e) {
        error_ = e.what();
      }
    }
  }
  if (!error_.empty()) paragraph(c.ui, error_, c.ui.theme.key);
}

void draw_facts(const PageContext& c) {
  section(c.ui, said("THIS HEAD"), said("what chance gives in grey"));
  const HeadFacts* facts = c.facts();
  const int row = facts ? facts->row(c.state().document.selected) : -1;
  if (row < 0) return;
  std::vector<std::string_view> shown{"entropy",         "effective_tokens", "sink",
                                      "mean_distance",   "max_weight",       "prefix_matching",
                                      "duplicate_token", "previous_token",   "self_attention"};
  if (!has_probabilities(facts->trace->map(c.state().document.selected))) {
    note(c.ui, said("Its weights are no probabilities: what is said of those alone has no number here."));
    shown.insert(shown.begin(), "row_mass");
  }
  for (const std::string_view id : shown) {
    const Metric& m = metric(id);
    const auto column = static_cast<std::size_t>(&m - metrics().data());
    const double value = nth(facts->table.value, row)[column], chance = nth(facts->table.chance, row)[column];
    const HeadId head = c.state().document.selected;
    const Color strong = rgb(0xFFB13B);
    const std::string expected = number(chance, "");
    const bool high = m.high <= 1 && !std::isnan(chance) && value > 0.4 && value > 3 * chance;
    std::vector<std::string> tip{std::string(said_view(m.title))};
    if (const std::string why = why_silent(m, facts->trace->map(head)); !why.empty())
      tip.push_back(say("no number: {}", why));
    else if (std::isnan(value))
      tip.emplace_back(said("no number: this text has nothing to measure it on"));
    tip.emplace_back(said_view(m.formula));
    tip.push_back(say("from {}, F32, {} tokens", map_name(*facts->trace, head), facts->trace->tokens.size()));
    tip.push_back(say("chance: {}", std::isnan(chance) ? said("none") : number(chance, m.unit)));
    tip.emplace_back(m.source);
    fact(c.ui, std::string(said_view(m.title)), number(value, m.unit), high ? &strong : nullptr, tip, &expected);
  }
}

}  // namespace headscope
