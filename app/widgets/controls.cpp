#include "app/widgets/controls.h"

#include <fmt/format.h>
#include <imgui_internal.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/base/nth.h"
#include "core/base/utf8.h"
#include "core/base/words.h"

#include "app/widgets/keyboard.h"
#include "app/widgets/line_breaks.h"
#include "app/widgets/paragraph.h"
#include "viz/export/glyphs.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

Font small_caps(const Ui& ui) {
  Font font = ui.small();
  font.weight = 500;
  return font;
}

float text_width(const Ui& ui, const std::string& text, const Font& font) {
  return static_cast<float>(ui.fonts.width(text, font)) * ui.scale;
}

/// Inside ImGui::BeginDisabled() controls are pale.
Color pale_if_disabled(Color color) {
  color.a = static_cast<std::uint8_t>(static_cast<float>(color.a) * ImGui::GetStyle().Alpha);
  return color;
}
ImU32 paint(Color color) {
  return col(pale_if_disabled(color));
}

/// Text whose capitals are centred on `y`.
void middle_text(const Ui& ui, float x, float y, const std::string& text, const Font& font, Color color,
                 Anchor anchor = Anchor::start) {
  const float baseline = y + static_cast<float>(half_capital(font)) * ui.scale;
  draw_text(ui, *ImGui::GetWindowDrawList(), {{0, 0}, text, font, pale_if_disabled(color), anchor, 0}, {x, baseline});
}

/// The frame of a control in its state; returns what is written on it.
Color control_frame(const Ui& ui, ImVec2 min, ImVec2 max, bool hovered, bool active) {
  const Color fill = active ? ui.chrome.selected : hovered ? ui.chrome.hovered : ui.chrome.raised;
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled(min, max, paint(fill), ui.px(6));
  draw->AddRect(min, max, paint(ui.chrome.border), ui.px(6));
  return ui.theme.text;
}

/// Below something else in the same column, and below more than a spacer.
bool follows_content() {
  const ImGuiWindow& window = *ImGui::GetCurrentWindow();
  const ImGuiWindowTempData& dc = window.DC;
  if (dc.CursorPos.y < dc.CursorStartPos.y + 1 || GImGui->LastItemData.Rect.GetWidth() < 1) return false;
  const float next = dc.CursorPosPrevLine.y + dc.PrevLineSize.y + ImGui::GetStyle().ItemSpacing.y;
  return !dc.IsSameLine && std::abs(next - dc.CursorPos.y) < 2;
}

}  // namespace

void section(const Ui& ui, const std::string& title, const std::string& remark, float taken) {
  if (follows_content()) ImGui::Dummy({0, 0});  // its spacing is the gap
  const Font font = small_caps(ui);
  const float height = ui.px(18);
  ImVec2 at = ImGui::GetCursorScreenPos();
  const float y = at.y + height / 2, end = at.x + ImGui::GetContentRegionAvail().x - taken;
  if (!title.empty()) ui.wrote(title);
  // Spaced a little, as small capitals want to be.
  const bool spaced = letters_stand_alone(title);
  if (!spaced) {
    middle_text(ui, at.x, y, title, font, ui.theme.muted);
    at.x += text_width(ui, title, font);
  }
  for (std::size_t i = 0; spaced && i < title.size();) {
    const CodePoint character = valid_code_point_at(title, i).value_or(CodePoint{0xfffd, 1});  // a file's
    const std::string letter = to_utf8(latin_capital(character.value));
    i += static_cast<std::size_t>(character.length);
    middle_text(ui, at.x, y, letter, font, ui.theme.muted);
    at.x += text_width(ui, letter, font) + 0.6f * ui.scale;
  }
  if (!remark.empty()) {
    const double room = static_cast<double>((end - at.x) / ui.scale) - 5;
    if (room > 20)
      middle_text(ui, at.x + ui.px(5), y, elided("· " + remark, ui.small(), room, ui.fonts), ui.small(),
                  ui.theme.faint);
  }
  ImGui::Dummy({0, height});
}

float button_width(const Ui& ui, const char* label) {
  return text_width(ui, said(label), ui.body()) + ui.px(24);
}

bool button(const Ui& ui, const char* label, float height) {
  if (height <= 0) height = ui.px(30);
  const ImVec2 at = ImGui::GetCursorScreenPos(), end{at.x + button_width(ui, label), at.y + height};
  const bool pressed = pressable(label, {end.x - at.x, height});
  const Color text = control_frame(ui, at, end, ImGui::IsItemHovered(), ImGui::IsItemActive());
  middle_text(ui, (at.x + end.x) / 2, (at.y + end.y) / 2, said(label), ui.body(), text, Anchor::middle);
  return pressed;
}

bool menu_button(const Ui& ui, const char* id, const std::string& value, const std::string& remark, float height) {
  if (height <= 0) height = ui.px(30);
  const Font font = ui.body();
  std::string quiet = remark.empty() ? "▾" : remark + " ▾";
  const bool has_edge = !(ImGui::GetCurrentWindow()->Flags & ImGuiWindowFlags_AlwaysAutoResize);
  const float room = ImGui::GetContentRegionAvail().x - ui.px(30);
  // The remark gives way first.
  if (has_edge && room > 0 && text_width(ui, value, font) + text_width(ui, quiet, font) > room) quiet = "▾";
  const float first = text_width(ui, value, font), second = text_width(ui, quiet, font);
  const ImVec2 at = ImGui::GetCursorScreenPos(), end{at.x + first + second + ui.px(30), at.y + height};
  const bool pressed = pressable(id, {end.x - at.x, height});
  const Color text = control_frame(ui, at, end, ImGui::IsItemHovered(), ImGui::IsItemActive());
  const float y = (at.y + end.y) / 2;
  middle_text(ui, at.x + ui.px(11), y, value, font, text);
  middle_text(ui, at.x + ui.px(19) + first, y, quiet, font, ui.theme.faint);
  return pressed;
}

std::string control_label(const Ui& ui, const char* english) {
  const std::string_view text = said(english);
  return text == english ? std::string(text) : fmt::format("{}###{}", ui.fonts.laid_out(text), english);
}

bool check_box(const Ui& ui, const char* label, bool& on) {
  return ImGui::Checkbox(control_label(ui, label).c_str(), &on);
}

bool menu_item(const Ui& ui, const char* label, const char* shortcut, bool chosen, bool enabled) {
  return ImGui::MenuItem(control_label(ui, label).c_str(), shortcut, chosen, enabled);
}

bool input_line(const Ui& ui, const char* id, const char* hint, std::string& text, ImGuiInputTextFlags flags) {
  // Dear ImGui sets letter by letter. While nobody types, text that wants more is laid out as everywhere else.
  const bool waits = ImGui::GetActiveID() != ImGui::GetID(id);
  const bool set_here = waits && !stands_alone(text.empty() ? std::string_view(hint) : text);
  const ImU32 color = ImGui::GetColorU32(text.empty() ? ImGuiCol_TextDisabled : ImGuiCol_Text);
  if (set_here)
    for (const ImGuiCol hidden : {ImGuiCol_Text, ImGuiCol_TextDisabled}) ImGui::PushStyleColor(hidden, 0);
  const bool changed = ImGui::InputTextWithHint(id, hint, &text, flags);
  if (!set_here) return changed;
  ImGui::PopStyleColor(2);
  const ImVec2 from = ImGui::GetItemRectMin(), to = ImGui::GetItemRectMax(), padding = ImGui::GetStyle().FramePadding;
  const std::string_view line = ui.fonts.laid_out(text.empty() ? std::string_view(hint) : text);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->PushClipRect({from.x + padding.x, from.y}, {to.x - padding.x, to.y}, true);
  draw->AddText({from.x + padding.x, from.y + padding.y}, color, line.data(), line.data() + line.size());
  draw->PopClipRect();
  return changed;
}

float segmented_width(const Ui& ui, std::span<const char* const> labels) {
  float width = 0;
  for (const char* label : labels) width += text_width(ui, said(label), ui.body()) + ui.px(20);
  return width;
}

namespace {
/// Words smaller than so much of their size are no longer read at ease: then they stand in rows.
constexpr float least_squeeze = 0.75f;

bool segmented_row(const Ui& ui, std::span<const char* const> labels, int first, int& chosen, float width) {
  Font font = ui.body();
  const float natural = segmented_width(ui, labels), height = ui.px(27);
  const float squeeze = width / natural;
  if (squeeze < 1) font.size *= std::max(0.7, static_cast<double>(squeeze));  // words stay inside their fields
  const ImVec2 at = ImGui::GetCursorScreenPos(), end{at.x + width, at.y + height};
  ImDrawList* draw = ImGui::GetWindowDrawList();
  const float radius = ui.px(6);
  draw->AddRectFilled(at, end, paint(ui.chrome.raised), radius);
  bool changed = false;
  float x = at.x;
  const int count = static_cast<int>(labels.size());
  for (int i = 0; i < count; ++i) {
    const char* label = nth(labels, i);
    const char* text = said(label);
    const float wanted = (text_width(ui, text, ui.body()) + ui.px(20)) * squeeze;
    const float next = i + 1 == count ? end.x : std::round(x + wanted);
    ImGui::SetCursorScreenPos({x, at.y});
    if (pressable(label, {std::max(next - x, 1.f), height}) && chosen != first + i) chosen = first + i, changed = true;
    const bool hovered = ImGui::IsItemHovered(), on = chosen == first + i;
    const ImDrawFlags corners =
        (i == 0 ? ImDrawFlags_RoundCornersLeft : 0) | (i + 1 == count ? ImDrawFlags_RoundCornersRight : 0);
    if (on || hovered)
      draw->AddRectFilled({x, at.y}, {next, end.y}, paint(on ? ui.chrome.selected : ui.chrome.hovered), radius,
                          corners ? corners : ImDrawFlags_RoundCornersNone);
    middle_text(ui, (x + next) / 2, at.y + height / 2, text, font, on || hovered ? ui.theme.text : ui.theme.muted,
                Anchor::middle);
    x = next;
    if (i + 1 < count) draw->AddRectFilled({x - 1, at.y}, {x, end.y}, paint(ui.chrome.border));
  }
  draw->AddRect(at, end, paint(ui.chrome.border), radius);
  return changed;
}
}  // namespace

bool segmented(const Ui& ui, const char* id, std::span<const char* const> labels, int& chosen, float width) {
  const float natural = segmented_width(ui, labels);
  if (width <= 0) width = natural;
  // What grows with its contents has no edge of its own.
  const bool has_edge = !(ImGui::GetCurrentWindow()->Flags & ImGuiWindowFlags_AlwaysAutoResize);
  if (const float room = ImGui::GetContentRegionAvail().x; has_edge && room > ui.px(60)) width = std::min(width, room);
  ImGui::PushID(id);
  ImGui::BeginGroup();
  bool changed = false;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const auto count = labels.size();
  std::size_t first = 0;
  for (int row = 0; first < count; ++row) {
    std::size_t end = count;
    if (width < least_squeeze * natural) {
      float taken = 0;
      for (end = first; end < count; ++end) {
        const float wide = text_width(ui, said(labels[end]), ui.body()) + ui.px(20);
        if (end > first && taken + wide > width) break;
        taken += wide;
      }
    }
    ImGui::SetCursorScreenPos({at.x, at.y + static_cast<float>(row) * ui.px(29)});
    changed |= segmented_row(ui, labels.subspan(first, end - first), static_cast<int>(first), chosen, width);
    first = end;
  }
  ImGui::EndGroup();
  ImGui::PopID();
  return changed;
}

void beside(const Ui& ui, float width, float gap) {
  const float edge = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  if (gap <= 0) gap = ui.px(8);
  if (ImGui::GetCurrentWindow()->DC.CursorPosPrevLine.x + gap + width <= edge) ImGui::SameLine(0, gap);
}

bool number_field(const Ui& ui, const char* label, const char* id, int& value, int step, double column) {
  ImGui::AlignTextToFramePadding();
  text_line(ui, said(label));
  // Where the buttons would leave no room for the number, it stands below its name.
  const float left = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - ui.px(column);
  if (left > ui.px(104)) ImGui::SameLine(ui.px(column));
  ImGui::SetNextItemWidth(ImGui::GetContentRegionAvail().x);
  return ImGui::InputInt(id, &value, step, step * 4);
}

bool slider(const Ui& ui, const char* label, double& value, const SliderOptions& options) {
  const Font font = ui.body();
  const float height = ui.px(24), room = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const std::string text = fmt::format("{:.{}f}{}", value, options.decimals, options.unit);
  const std::string widest = fmt::format("{:.{}f}{}", options.high, options.decimals, options.unit);
  const char* name = said(label);
  // Names of one width, so that the ways stand below one another; in a narrow column no wider than they are.
  const float first = std::min(std::max(text_width(ui, name, font), std::min(ui.px(84), room * 0.33f)), room * 0.55f);
  const float last = std::max(text_width(ui, widest, ui.number()), text_width(ui, text, ui.number()));
  const float grab = ui.px(7), y = at.y + height / 2;
  const float x0 = at.x + first + ui.px(12), x1 = std::max(x0 + ui.px(30), at.x + room - last - ui.px(14));
  middle_text(ui, at.x, y, elided(name, font, static_cast<double>(first / ui.scale) + 1, ui.fonts), font,
              ui.theme.text);
  middle_text(ui, at.x + room, y, text, ui.number(), ui.theme.text, Anchor::end);

  const auto unit_of = [&](double v) {
    const double t = options.logarithmic ? std::log(v / options.low) / std::log(options.high / options.low)
                                         : (v - options.low) / (options.high - options.low);
    return std::isfinite(t) ? std::clamp(t, 0.0, 1.0) : 0.0;
  };
  const auto value_of = [&](double t) {
    return options.logarithmic ? options.low * std::pow(options.high / options.low, t)
                               : options.low + t * (options.high - options.low);
  };
  ImGui::SetCursorScreenPos({x0 - grab, at.y});
  pressable(label, {x1 - x0 + 2 * grab, height});
  const bool active = ImGui::IsItemActive(), hovered = ImGui::IsItemHovered();
  bool changed = false;
  const auto put = [&](double v) {
    if (v == value) return;
    value = v;
    changed = true;
  };
  const double finest = std::pow(10.0, -options.decimals);
  const auto rounded = [&](double v) { return std::clamp(std::round(v / finest) * finest, options.low, options.high); };
  if (const int steps = sideways_steps(); steps != 0) {  // hundredths of the way, but never less than shows
    const double moved = value_of(std::clamp(unit_of(value) + steps / 100.0, 0.0, 1.0));
    put(rounded(std::abs(moved - value) < finest ? value + std::copysign(finest, steps) : moved));
  }
  if (hovered && ImGui::IsMouseDoubleClicked(ImGuiMouseButton_Left))
    put(options.usual);
  else if (active && (ImGui::IsMouseDragging(ImGuiMouseButton_Left, 0) || ImGui::IsItemActivated()) &&
           ImGui::GetMouseClickedCount(ImGuiMouseButton_Left) < 2) {
    const double t = std::clamp(static_cast<double>((ImGui::GetMousePos().x - x0) / (x1 - x0)), 0.0, 1.0);
    put(rounded(value_of(t)));
  }
  const float x = x0 + static_cast<float>(unit_of(value)) * (x1 - x0);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  draw->AddRectFilled({x0, y - ui.px(2)}, {x1, y + ui.px(2)}, paint(ui.theme.line), ui.px(2));
  draw->AddRectFilled({x0, y - ui.px(2)}, {x, y + ui.px(2)}, paint(ui.chrome.selected), ui.px(2));
  draw->AddCircleFilled({x, y}, active || hovered ? grab + 1 : grab, paint(ui.theme.accent), 24);
  ImGui::SetCursorScreenPos(at);
  ImGui::Dummy({room, height});
  return changed;
}

double token_chip_width(const Ui& ui, const std::string& text) {
  return ui.fonts.width(text, ui.token()) + 8;
}

Touch token_chip(const Ui& ui, const std::string& text, const std::string& id, const ChipOptions& options) {
  const Font font = ui.token();
  const float width = static_cast<float>(token_chip_width(ui, text)) * ui.scale, height = ui.px(22);
  const ImVec2 at = ImGui::GetCursorScreenPos(), end{at.x + width, at.y + height};
  Touch touch;
  touch.clicked = pressable(id.c_str(), {std::max(width, 1.f), height}, false);
  touch.hovered = ImGui::IsItemHovered();
  touch.right_clicked = ImGui::IsItemClicked(ImGuiMouseButton_Right);
  ImDrawList* draw = ImGui::GetWindowDrawList();
  Color ground = ui.theme.background;
  if (options.shade >= 0) {
    ground = mix(ui.theme.background, ui.theme.sequential->at(options.shade), 0.75);
    draw->AddRectFilled(at, end, paint(ground), ui.px(4));
  }
  if (touch.hovered || options.hovered) draw->AddRect(at, end, paint(ui.theme.muted), ui.px(4));
  if (options.selected) draw->AddRect(at, end, paint(ui.theme.accent), ui.px(4), 0, std::max(2.f, ui.px(2)));
  if (options.asked)
    for (float x = at.x + ui.px(3); x < end.x - ui.px(3); x += ui.px(6))
      draw->AddLine({x, end.y - ui.px(1)}, {std::min(x + ui.px(3), end.x), end.y - ui.px(1)}, paint(ui.theme.accent),
                    std::max(1.5f, ui.px(1.5)));
  const Color ink = options.shade >= 0 ? readable_on(ground, ui.theme.dark_ink, ui.theme.light_ink) : ui.theme.text;
  middle_text(ui, (at.x + end.x) / 2, (at.y + end.y) / 2, text, font, options.faint ? ui.theme.faint : ink,
              Anchor::middle);
  return touch;
}

void fact(const Ui& ui, const std::string& name, const std::string& value, const Color* value_color,
          const std::vector<std::string>& provenance, const std::string* remark) {
  const float height = ui.px(21), full = ImGui::GetContentRegionAvail().x;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float y = at.y + height / 2, width = text_width(ui, value, ui.number());
  // As wide for every row, so that the values stand below one another.
  // What chance gives takes its usual room, or what it needs: a large number does not run into it.
  const float chance =
      remark ? std::max(text_width(ui, "00.00", ui.number()), text_width(ui, *remark, ui.number())) : 0.f;
  const float room = remark ? full - chance - ui.px(14) : full;
  if (remark) middle_text(ui, at.x + full, y, *remark, ui.number(), ui.theme.faint, Anchor::end);
  const double left = static_cast<double>((room - width) / ui.scale) - 10;
  middle_text(ui, at.x, y, elided(name, ui.body(), std::max(left, 10.0), ui.fonts), ui.body(), ui.theme.text);
  middle_text(ui, at.x + room, y, value, ui.number(), value_color ? legible(ui.theme, *value_color) : ui.theme.text,
              Anchor::end);
  ImGui::Dummy({full, height});
  ui.name(name, at, {at.x + full, at.y + height});
  if (!provenance.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort)) tooltip(ui, provenance);
}

BarClick bar_list(const Ui& ui, const char* id, std::span<const Bar> bars) {
  if (ui.pictures.asked)
    ui.pictures.add_table(id, id, [id = std::string(id), bars = std::vector<Bar>(bars.begin(), bars.end())] {
      Table table{id, {"name", "value", "share of the longest", "share before"}, {}};
      for (const Bar& bar : bars)
        table.rows.push_back(
            {bar.label, bar.text, number_cell(bar.now), bar.before < 0 ? std::string() : number_cell(bar.before)});
      return table;
    });
  BarClick click;
  double label_width = 40, text_width_needed = 0;
  for (const Bar& bar : bars) {
    label_width = std::max(label_width, ui.fonts.width(bar.label, ui.token()));
    text_width_needed = std::max(text_width_needed, ui.fonts.width(bar.text, ui.number()));
  }
  const float room = ImGui::GetContentRegionAvail().x, height = ui.px(22);
  const double logical_room = static_cast<double>(room / ui.scale);
  // Labels take the room that bars of a fair length leave them.
  label_width = std::min(label_width, std::max(logical_room * 0.34, logical_room - text_width_needed - 20 - 72));
  const float x0 = ui.px(label_width + 10), x1 = std::max(x0 + ui.px(10), room - ui.px(text_width_needed + 10));
  ImGui::PushID(id);
  for (const Bar& bar : bars) {
    const ImVec2 at = ImGui::GetCursorScreenPos();
    const float y = at.y + height / 2;
    const std::string name = fmt::format("##bar {}", &bar - bars.data());
    const bool pressed = pressable(name.c_str(), {std::max(room, 1.f), height}, false) && walking_controls();
    ui.name(bar.label, at, {at.x + room, at.y + height});
    if (pressed || ImGui::IsItemClicked(ImGuiMouseButton_Left)) click.left = static_cast<int>(&bar - bars.data());
    if (ImGui::IsItemClicked(ImGuiMouseButton_Right)) click.right = static_cast<int>(&bar - bars.data());
    if (!bar.tooltip.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
      tooltip(ui, {bar.label, bar.tooltip});
    middle_text(ui, at.x, y, elided(bar.label, ui.token(), label_width, ui.fonts), ui.token(), ui.theme.text);
    middle_text(ui, at.x + room, y, bar.text, ui.number(), ui.theme.text, Anchor::end);
    ImDrawList* draw = ImGui::GetWindowDrawList();
    const auto length = [&](double share) {
      return std::max(static_cast<float>(std::clamp(share, 0.0, 1.0)) * (x1 - x0), ui.px(1));
    };
    const float thick = ui.px(7);
    if (bar.before >= 0) {
      draw->AddRectFilled({at.x + x0, y - thick}, {at.x + x0 + length(bar.before), y - 1}, paint(ui.theme.faint),
                          ui.px(2));
      draw->AddRectFilled({at.x + x0, y}, {at.x + x0 + length(bar.now), y + thick - 1}, paint(ui.theme.accent),
                          ui.px(2));
    } else {
      draw->AddRectFilled({at.x + x0, y - thick / 2}, {at.x + x0 + length(bar.now), y + thick / 2},
                          paint(ui.theme.accent), ui.px(2));
    }
  }
  ImGui::PopID();
  return click;
}

void tooltip(const Ui& ui, const std::vector<std::string>& lines) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, {ui.px(10), ui.px(8)});
  ImGui::PushStyleVar(ImGuiStyleVar_ItemSpacing, {0, ui.px(3)});
  if (ImGui::BeginTooltip()) {
    bool first = true;
    for (const std::string& line : lines) {
      Font font = ui.body();
      if (first && lines.size() > 1) font.weight = 600;
      const UseFont use(ui, first ? font : ui.small());
      paragraph(ui, line, first ? ui.theme.text : ui.theme.muted, ui.px(460));
      ui.name("tooltip: " + line, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
      first = false;
    }
    ImGui::EndTooltip();
  }
  ImGui::PopStyleVar(2);
}

void badge(const Ui& ui, const std::string& text, Color color) {
  const Font font = ui.small();
  const float width = text_width(ui, text, font) + ui.px(12), height = ui.px(20);
  const ImVec2 at = ImGui::GetCursorScreenPos(), end{at.x + width, at.y + height};
  const Color ground = mix(ui.theme.background, color, 0.28);
  ImGui::GetWindowDrawList()->AddRectFilled(at, end, paint(ground), ui.px(4));
  const Color ink = contrast(color, ground) >= 4.5 ? color : readable_on(ground, ui.theme.dark_ink, ui.theme.light_ink);
  middle_text(ui, (at.x + end.x) / 2, (at.y + end.y) / 2, text, font, ink, Anchor::middle);
  ImGui::Dummy({width, height});
  ui.name(text, at, end);
}

namespace {
/// Returns where its last line stands. `below`: height that is wanted under it.
float empty_words(const Ui& ui, const std::string& title, const std::string& advice, float below) {
  const ImVec2 at = ImGui::GetCursorScreenPos(), room = ImGui::GetContentRegionAvail();
  Font strong = ui.body();
  strong.weight = 600;
  const double width = std::clamp(static_cast<double>(room.x / ui.scale) - 16, 60.0, 420.0);
  std::vector<std::string> lines;
  std::istringstream written(advice);  // the hint of an error stands on a line of its own
  for (std::string part; std::getline(written, part);) {
    part.erase(0, part.find_first_not_of(' '));
    for (std::string& line : wrapped(part, ui.body(), width, ui.fonts)) lines.push_back(std::move(line));
  }
  ui.name(title, at, {at.x + room.x, at.y + room.y});
  const float line = ui.px(20), x = at.x + room.x / 2;
  float y = at.y + std::max(line, (room.y - below - line * static_cast<float>(lines.size() + 1)) / 2);
  middle_text(ui, x, y, title, strong, ui.theme.text, Anchor::middle);
  for (const std::string& text : lines) middle_text(ui, x, y += line, text, ui.body(), ui.theme.muted, Anchor::middle);
  return y;
}
}  // namespace

void empty_state(const Ui& ui, const std::string& title, const std::string& advice) {
  empty_words(ui, title, advice, 0);
}

bool empty_state(const Ui& ui, const std::string& title, const std::string& advice, const char* action) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float room = ImGui::GetContentRegionAvail().x, width = button_width(ui, action);
  const float y = empty_words(ui, title, advice, ui.px(48));
  ImGui::SetCursorScreenPos({at.x + std::max((room - width) / 2, 0.f), y + ui.px(20)});
  return button(ui, action);
}

}  // namespace headscope
