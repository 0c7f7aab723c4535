#include "app/widgets/ui.h"

#include <cmath>

namespace headscope {

Chrome chrome_of(const Theme& theme) {
  const bool dark = lightness(theme.background) < 50;
  Chrome chrome;
  chrome.bar = mix(theme.background, theme.line, dark ? 0.22 : 0.18);
  chrome.raised = mix(theme.background, theme.line, dark ? 0.5 : 0.3);
  chrome.hovered = mix(theme.background, theme.line, dark ? 1.0 : 0.65);
  chrome.selected = mix(theme.background, theme.accent, dark ? 0.42 : 0.24);
  chrome.border = theme.line;
  return chrome;
}

Color legible(const Theme& theme, Color color) {
  for (double share = 0; share < 1; share += 0.1)
    if (const Color mixed = mix(color, theme.text, share); contrast(mixed, theme.background) >= 4.5) return mixed;
  return theme.text;
}

float Ui::px(double logical) const {
  return static_cast<float>(std::round(logical * static_cast<double>(scale)));
}

UseFont::UseFont(const Ui& ui, const Font& font) {
  // PushFont multiplies by the global scales; ours is inside height() already, so they stay at 1.
  ImGui::PushFont(ui.fonts.face(font), ui.fonts.height(font));
}

void apply_style(const Theme& theme, const Fonts& fonts, float scale) {
  const Chrome chrome = chrome_of(theme);
  ImGuiStyle style;
  style.WindowPadding = {12, 12};
  style.FramePadding = {10, 6};
  style.ItemSpacing = {8, 8};
  style.ItemInnerSpacing = {8, 6};
  style.WindowRounding = 8;
  style.ChildRounding = 0;
  style.FrameRounding = 6;
  style.PopupRounding = 8;
  style.GrabRounding = 8;
  style.ScrollbarRounding = 6;
  style.ScrollbarSize = 10;
  style.GrabMinSize = 14;
  style.WindowBorderSize = 0;
  style.ChildBorderSize = 0;
  style.FrameBorderSize = 1;
  style.PopupBorderSize = 1;
  style.SeparatorTextBorderSize = 1;
  style.HoverStationaryDelay = 0.08f;
  style.ScaleAllSizes(scale);
  style.FontSizeBase = fonts.height({FontRole::ui, 13 * theme.text_scale, 400});
  style.FontScaleMain = style.FontScaleDpi = 1;
  style.AntiAliasedLinesUseTex = false;  // lines of any width, also after rotation

  const auto set = [&](ImGuiCol which, Color color) { style.Colors[which] = vec(color); };
  const Color none{0, 0, 0, 0};
  set(ImGuiCol_Text, theme.text);
  set(ImGuiCol_TextDisabled, theme.faint);
  set(ImGuiCol_WindowBg, theme.background);
  set(ImGuiCol_ChildBg, none);
  set(ImGuiCol_PopupBg, mix(theme.background, theme.line, 0.3));
  set(ImGuiCol_Border, chrome.border);
  set(ImGuiCol_BorderShadow, none);
  set(ImGuiCol_FrameBg, chrome.raised);
  set(ImGuiCol_FrameBgHovered, chrome.hovered);
  set(ImGuiCol_FrameBgActive, chrome.hovered);
  set(ImGuiCol_TitleBg, chrome.bar);
  set(ImGuiCol_TitleBgActive, chrome.bar);
  set(ImGuiCol_TitleBgCollapsed, chrome.bar);
  set(ImGuiCol_MenuBarBg, chrome.bar);
  set(ImGuiCol_ScrollbarBg, none);
  set(ImGuiCol_ScrollbarGrab, theme.line);
  set(ImGuiCol_ScrollbarGrabHovered, theme.faint);
  set(ImGuiCol_ScrollbarGrabActive, theme.muted);
  set(ImGuiCol_CheckMark, theme.accent);
  set(ImGuiCol_SliderGrab, theme.accent);
  set(ImGuiCol_SliderGrabActive, theme.accent);
  set(ImGuiCol_Button, chrome.raised);
  set(ImGuiCol_ButtonHovered, chrome.hovered);
  set(ImGuiCol_ButtonActive, chrome.selected);
  set(ImGuiCol_Header, chrome.selected);
  set(ImGuiCol_HeaderHovered, chrome.hovered);
  set(ImGuiCol_HeaderActive, chrome.selected);
  set(ImGuiCol_Separator, theme.line);
  set(ImGuiCol_SeparatorHovered, theme.accent);
  set(ImGuiCol_SeparatorActive, theme.accent);
  set(ImGuiCol_ResizeGrip, none);
  set(ImGuiCol_ResizeGripHovered, theme.accent);
  set(ImGuiCol_ResizeGripActive, theme.accent);
  set(ImGuiCol_TextSelectedBg, with_opacity(theme.accent, 0.35));
  set(ImGuiCol_InputTextCursor, theme.accent);
  set(ImGuiCol_NavCursor, theme.accent);
  set(ImGuiCol_DragDropTarget, theme.accent);
  set(ImGuiCol_ModalWindowDimBg, with_opacity(rgb(0x000000), 0.55));
  set(ImGuiCol_TableBorderLight, theme.line);
  set(ImGuiCol_TableBorderStrong, theme.line);
  set(ImGuiCol_TableHeaderBg, chrome.raised);
  set(ImGuiCol_TableRowBg, none);
  set(ImGuiCol_TableRowBgAlt, none);
  ImGui::GetStyle() = style;
}

}  // namespace headscope
