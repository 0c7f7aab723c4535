// The left column while attention of another program is open: where it is from, and the folder it lies in.

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>

#include "app/widgets/controls.h"
#include "app/widgets/keyboard.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/explore/panels.h"
#include "core/base/words.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {
using State = CaptureWatch::State;

/// One file of the folder; a click shows it.
void file_row(const PageContext& c, const CaptureWatch::File& file) {
  const std::string name = file.path.filename().string();
  const bool shown = c.state().document.model == file.path;
  const std::string what = file.state == State::ready    ? file.words.text()
                           : file.state == State::broken ? said("cannot be opened")
                                                         : said("being written …");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float width = ImGui::GetContentRegionAvail().x, height = c.ui.px(36);
  const bool pressed = pressable(("capture " + name).c_str(), {width, height});
  const bool hovered = ImGui::IsItemHovered();
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  if (shown || hovered)
    draw.AddRectFilled(at, {at.x + width, at.y + height}, col(with_opacity(c.ui.theme.accent, shown ? 0.22 : 0.08)),
                       c.ui.px(4));
  const double room = static_cast<double>(width / c.ui.scale) - 12;
  const auto line = [&](const std::string& text, const Font& font, Color color, float y) {
    const UseFont use(c.ui, font);
    draw.AddText({at.x + c.ui.px(6), at.y + c.ui.px(y)}, col(color),
                 std::string(c.ui.fonts.laid_out(elided(text, font, room, c.ui.fonts))).c_str());
  };
  line(name, c.ui.body(), c.ui.theme.text, 3);
  line(what, c.ui.small(), file.state == State::broken ? c.ui.theme.key : c.ui.theme.muted, 19);
  c.ui.name("capture " + name, at, {at.x + width, at.y + height});
  if (hovered && file.state == State::broken) tooltip(c.ui, {name, file.why});
  if (pressed && file.state == State::ready) c.app.explorer.captures.choose(file.path);
}
}  // namespace

void draw_captures(const PageContext& c, TokenStrip& tokens) {
  const Trace* trace = c.captured() ? c.trace() : nullptr;
  section(c.ui, said("CAPTURE"));
  if (trace) {
    const UseFont font(c.ui, c.ui.small());
    paragraph(c.ui, trace->model.name + " · " + trace->source, c.ui.theme.muted);
  }
  CaptureController& captures = c.app.explorer.captures;
  if (captures.watching()) {
    section(c.ui, said("FOLDER"), captures.folder().filename().string());
    static constexpr const char* ways[] = {to_say("follow the newest"), to_say("stay")};
    int way = captures.following() ? 0 : 1;
    if (segmented(c.ui, "captures shown", ways, way, ImGui::GetContentRegionAvail().x)) {
      if (way == 0)
        captures.follow();
      else
        captures.stay();
    }
    if (captures.files().empty()) {
      const UseFont font(c.ui, c.ui.body());
      paragraph(c.ui,
                said("Nothing is there yet: .npz, .npy and .safetensors of attention appear here as they are written."),
                c.ui.theme.muted);
    } else {
      constexpr float most = 5;
      const auto rows = std::min(static_cast<float>(captures.files().size()), most);
      ImGui::BeginChild("captures", {0, rows * c.ui.px(38) + c.ui.px(4)}, ImGuiChildFlags_NavFlattened);
      ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, c.ui.px(2)});
      ImGuiListClipper clip;
      clip.Begin(static_cast<int>(captures.files().size()), c.ui.px(38));
      const std::vector<CaptureWatch::File> files = captures.files();  // a click may change them
      while (clip.Step())
        for (int i = clip.DisplayStart; i < clip.DisplayEnd; ++i) file_row(c, files[static_cast<std::size_t>(i)]);
      ImGui::PopStyleVar();
      ImGui::EndChild();
    }
  }
  if (c.captured()) tokens.draw_capture(c);  // a click may have opened another
}

}  // namespace headscope
