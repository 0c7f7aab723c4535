// How far a mechanism that works block by block has come: its slider and its play button, one tile or round a tick, and
// the picture of the machine; or the diagram of where a memory enters.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/render/machine_pictures.h"
#include "app/render/memory_picture.h"
#include "app/widgets/controls.h"
#include "app/workspaces/mechanisms/mechanisms_workspace.h"
#include "core/base/words.h"

namespace headscope {

namespace {

constexpr double slowest_tick = 0.35, longest_run = 20;  // seconds

/// How many ticks the values stand at.
Index done_of(const MechanismValues& values, bool share, Index ticks) {
  return share ? static_cast<Index>(std::lround(values.number("done") * static_cast<double>(ticks)))
               : std::min(values.whole("rounds"), ticks);
}

}  // namespace

void MechanismsWorkspace::progress(Ui& ui) {
  const Mechanism& m = controller_.mechanism();
  if (!m.ticks) return;
  const MechanismInput& in = controller_.page()->input;
  const Index ticks = m.ticks({in.m(), in.d(), in.d_v(), in.n()}, controller_.values());
  const bool share = m.parameter("done") != nullptr;
  const auto set = [&](Index done) {
    if (share)
      controller_.set_value("done", static_cast<double>(done) / static_cast<double>(ticks));
    else
      controller_.set_value("rounds", static_cast<double>(done));
  };
  Index done = done_of(controller_.values(), share, ticks);
  if (button(ui, controller_.playing ? to_say("Pause") : to_say("Play"), ui.px(26))) {
    controller_.playing = !controller_.playing;
    if (controller_.playing && done >= ticks) set(done = 0);
  }
  ImGui::SameLine(0, ui.px(14));
  double at = static_cast<double>(done);
  const char* const label = m.tick == "tile"    ? to_say("Tiles done")
                            : m.tick == "round" ? to_say("Rounds done")
                                                : to_say("Blocks done");
  if (slider(ui, label, at,
             {0, static_cast<double>(ticks), static_cast<double>(ticks), false, say(" of {}", ticks), 0}))
    set(done = std::lround(at));
  if (!controller_.playing) return;
  *ui.animate = true;
  clock_ += static_cast<double>(ImGui::GetIO().DeltaTime);
  if (clock_ < std::min(slowest_tick, longest_run / static_cast<double>(ticks)) || !controller_.current()) return;
  clock_ = 0;
  if (done >= ticks)
    controller_.playing = false;
  else
    set(done + 1);
}

void MechanismsWorkspace::machine(Ui& ui) {
  const auto page = controller_.page();
  if (!page->result.tiles && !page->result.ring && !page->result.memory) return;
  const double width = std::floor(static_cast<double>(ImGui::GetContentRegionAvail().x / ui.scale));
  const double height = page->result.ring     ? (page->result.ring->workers.size() > 6 ? 330 : 280)
                        : page->result.memory ? memory_diagram(*page->result.memory).height
                                              : 200;
  if (show(ui, machine_, "mechanism machine", {width, height})) {
    SceneViewOptions how;
    how.fit_height = false;
    machine_.draw(ui, "mechanism machine", how, width, page->result.memory ? machine_.scene()->height : height);
  }
  ImGui::Dummy({0, ui.px(4)});
}

}  // namespace headscope
