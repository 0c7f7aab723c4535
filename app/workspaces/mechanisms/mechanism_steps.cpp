// The views of a mechanism that go through it: step by step, its curves, token by token. Every matrix is made ready on
// the worker.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/workspaces/mechanisms/mechanisms_workspace.h"
#include "core/base/words.h"

namespace headscope {

namespace {

constexpr double seconds_per_token = 0.35;

}  // namespace

void MechanismsWorkspace::steps(Ui& ui) {
  const MechanismPage& page = *controller_.page();
  if (page.result.steps.empty()) return;
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  matrices(ui, steps_, "mechanism steps", step_matrices(page), {width, 0});
}

void MechanismsWorkspace::curves(Ui& ui) {
  const MechanismPage& page = *controller_.page();
  for (std::size_t i = 0; i < std::min(page.result.curves.size(), std::size(curves_)); ++i) {
    section(ui, said(page.result.curves[i].title),
            fmt::format("{} →, {} ↑", said(page.result.curves[i].x_title), said(page.result.curves[i].y_title)));
    const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale)), height = 190;
    const std::string id = fmt::format("curve {}", i);
    show(ui, curves_[i], id.c_str(), {width, height});
    curves_[i].draw(ui, id.c_str(), {}, width, height);
  }
  if (controller_.mechanism().study)
    for (const MechanismFact& each : page.result.facts)
      fact(ui, each.name, each.value, nullptr, {each.name, each.provenance});
}

void MechanismsWorkspace::path(Ui& ui) {
  if (!controller_.page()->result.path) return;
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  if (!show(ui, path_, "mechanism path", {width, 0})) return;
  SceneViewOptions how;
  how.fit_height = false;
  path_.draw(ui, "mechanism path", how, width, path_.scene()->height);
}

void MechanismsWorkspace::play(Ui& ui, int last) {
  if (button(ui, controller_.playing ? to_say("Pause") : to_say("Play"), ui.px(26))) {
    controller_.playing = !controller_.playing;
    if (controller_.playing && controller_.token >= last) controller_.token = 0;
  }
  ImGui::SameLine(0, ui.px(14));
  double token = std::min(controller_.token, last);
  if (slider(ui, to_say("Token t"), token, {0, static_cast<double>(std::max(last, 1)), 0, false, "", 0}))
    controller_.token =
        token < last ? std::max(static_cast<int>(std::lround(token)), 0) : MechanismController::last_token;
  if (!controller_.playing) return;
  *ui.animate = true;
  clock_ += static_cast<double>(ImGui::GetIO().DeltaTime);
  if (clock_ < seconds_per_token) return;
  clock_ = 0;
  if (controller_.token >= last)
    controller_.playing = false;
  else
    ++controller_.token;
}

void MechanismsWorkspace::recurrent(Ui& ui) {
  const MechanismPage& page = *controller_.page();
  if (!page.recurrence) return empty_state(ui, said("No recurrent form here"), said(page.no_recurrence));
  const Recurrence& r = *page.recurrence;
  const int last = static_cast<int>(page.input.n()) - 1;
  play(ui, last);
  const Index t = controller_.shown_token();
  {
    const UseFont font(ui, ui.number());
    ImGui::TextUnformatted((said(r.update) + "     " + said(r.readout)).c_str());
  }
  ImGui::PushStyleColor(ImGuiCol_Text, vec(ui.theme.muted));
  const std::string beside =
      page.recurrent_gap
          ? say("largest difference from the parallel form, over all tokens: {:.2g}", *page.recurrent_gap)
          : std::string(said("there is no parallel form: each state needs the one before"));
  text_line(ui, fmt::format("t = {}   {}", place(page, MechanismAxis::query, t), beside));
  ImGui::PopStyleColor();
  if (page.recurrent_gap && ImGui::IsItemHovered())
    tooltip(ui, {said("max |o_recurrent − o_parallel| over tokens and channels"),
                 said("float32: the two add up in another order")});
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  const double room = static_cast<double>(ImGui::GetContentRegionAvail().y / ui.scale);
  const double side = std::clamp(std::min((width - 64) / 3, room - 230), 130.0, 420.0);
  matrices(ui, states_, "mechanism states", state_matrices(page), {width, side});
}

}  // namespace headscope
