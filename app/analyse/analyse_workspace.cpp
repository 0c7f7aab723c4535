#include "app/analyse/analyse_workspace.h"

#include <algorithm>
#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "viz/scene/text.h"

namespace headscope {

AnalyseWorkspace::AnalyseWorkspace(JobRunner& jobs, const RunController& run) : jobs_(jobs), run_(run) {
  for (const InstrumentEntry& entry : instrument_registry()) {
    instruments_.push_back({&entry.info, entry.make(jobs)});
    if (groups_.empty() || groups_.back().title != entry.info.group) groups_.push_back({entry.info.group, {}});
    groups_.back().entries.push_back({entry.info.id, entry.info.title, entry.info.words + " " + entry.info.source});
  }
}

AnalyseWorkspace::Open& AnalyseWorkspace::chosen(const Workbench& bench) {
  const auto wanted = bench.settings.pages.find(title);
  const auto found =
      wanted == bench.settings.pages.end()
          ? instruments_.end()
          : std::ranges::find_if(instruments_, [&](const Open& o) { return o.info->id == wanted->second; });
  return found == instruments_.end() ? instruments_.front() : *found;
}

void AnalyseWorkspace::left(Ui& ui, Workbench& bench) {
  std::string id = chosen(bench).info->id;
  if (catalogue_.draw(ui, "instruments", groups_, id)) bench.settings.pages[title] = id;
  bench.ui.arrows_taken = catalogue_.takes_arrows();
}

void AnalyseWorkspace::middle(Ui& ui, Workbench& bench) {
  Open& open = chosen(bench);
  drawn_ = &open;
  const float top = ImGui::GetCursorPosY();
  {
    const UseFont font(ui, ui.heading());
    ImGui::TextUnformatted(open.info->title.c_str());
  }
  if (!open.info->source.empty()) {
    ImGui::SameLine(0, ui.px(8));
    ImGui::SetCursorPosY(top + ui.px(4));
    const UseFont font(ui, ui.body());
    ImGui::TextColored(vec(ui.theme.faint), "%s", open.info->source.c_str());
  }
  paragraph(ui, open.info->sentence, ui.theme.muted);
  ImGui::Dummy({0, ui.px(6)});
  ImGui::PushID(open.info->id.c_str());
  open.instrument->middle({ui, bench});
  ImGui::PopID();
}

void AnalyseWorkspace::right(Ui& ui, Workbench& bench) {
  Open& open = chosen(bench);
  ImGui::PushID(open.info->id.c_str());
  open.instrument->right({ui, bench});
  ImGui::PopID();
}

void AnalyseWorkspace::controls(ControlsRecord& record) {
  for (Open& open : instruments_)
    record.inside(open.info->id.c_str(), [&](ControlsRecord& inner) { open.instrument->controls(inner); });
}

void AnalyseWorkspace::each_frame() {
  const Open* drawn = std::exchange(drawn_, nullptr);
  for (Open& open : instruments_) open.instrument->each_frame(jobs_, run_.results(), &open == drawn);
}

}  // namespace headscope
