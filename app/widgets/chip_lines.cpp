#include "app/widgets/chip_lines.h"

#include <imgui.h>

#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"

namespace headscope {

namespace {
constexpr double gap = 3, line_height = 22;
/// So many lines are drawn whether they are in sight or not: the keyboard reaches them, too.
constexpr std::size_t short_text = 64;
}  // namespace

void ChipLines::wrap(const Ui& ui, std::span<const Token> tokens, float room) {
  first_.assign(1, 0);
  float x = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const float width = std::max(static_cast<float>(token_chip_width(ui, tokens[i].label)) * ui.scale, 1.f);
    if (i > first_.back() && x + width > room) {
      first_.push_back(i);
      x = 0;
    }
    x += width + ui.px(gap);
  }
  first_.push_back(tokens.size());
}

void ChipLines::draw(const Ui& ui, const char* id, const std::shared_ptr<const void>& source,
                     std::span<const Token> tokens, const std::function<void(std::size_t)>& chip) {
  const float most = ui.px(26) * std::ceil(static_cast<float>(tokens.size()) / 5 + 1);
  if (ImGui::BeginChild(id, {0, std::min(ui.px(118), most)},
                        ImGuiChildFlags_AutoResizeY | ImGuiChildFlags_NavFlattened)) {
    const float room = ImGui::GetContentRegionAvail().x;  // left of a scroll bar
    Key now{source, tokens.size(), room, ui.scale, ui.fonts.height(ui.token())};
    if (now != wrapped_) {
      wrap(ui, tokens, room);
      wrapped_ = std::move(now);
    }
    ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {ui.px(gap), ui.px(gap)});
    const auto line = [&](std::size_t number) {
      for (std::size_t i = first_[number]; i < first_[number + 1]; ++i) {
        if (i > first_[number]) ImGui::SameLine(0, ui.px(gap));
        chip(i);
      }
    };
    const std::size_t lines = tokens.empty() ? 0 : first_.size() - 1;
    if (lines <= short_text) {
      for (std::size_t i = 0; i < lines; ++i) line(i);
    } else {
      ImGuiListClipper clip;
      clip.Begin(static_cast<int>(lines), std::floor(ui.px(line_height) + ui.px(gap)));
      while (clip.Step())
        for (int i = clip.DisplayStart; i < clip.DisplayEnd; ++i) line(static_cast<std::size_t>(i));
    }
    ImGui::PopStyleVar();
  }
  ImGui::EndChild();
}

}  // namespace headscope
