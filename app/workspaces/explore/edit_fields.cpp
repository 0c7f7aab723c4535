#include "app/workspaces/explore/edit_fields.h"

#include <fmt/format.h>
#include <imgui_stdlib.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "core/base/nth.h"
#include "core/base/words.h"

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"

namespace headscope {

namespace {

using Kind = EditField::Kind;

double number_in(const std::string& text, double otherwise) {
  double value = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// A name at the left, so that what belongs to it stands in one line with the others'.
void label(const PageContext& c, const std::string& text, const std::string& words) {
  ImGui::AlignTextToFramePadding();
  const float left = ImGui::GetCursorPosX();
  text_line(c.ui, said(text));
  if (!words.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort)) tooltip(c.ui, {said(text), said(words)});
  ImGui::SameLine();
  ImGui::SetCursorPosX(std::max(left + c.ui.px(120), ImGui::GetCursorPosX()));
}

/// One of several: side by side where they fit, else a list that says what each means.
bool choose(const PageContext& c, const char* id, const std::vector<const char*>& titles,
            const std::vector<const EditPart*>& parts, int& chosen) {
  if (titles.size() <= 9 && segmented_width(c.ui, titles) <= ImGui::GetContentRegionAvail().x)
    return segmented(c.ui, id, titles, chosen);
  bool changed = false;
  if (menu_button(c.ui, id, said(nth(titles, chosen)), "", c.ui.px(28))) ImGui::OpenPopup(id);
  ImGui::SetNextWindowSizeConstraints({c.ui.px(320), 0}, {c.ui.px(560), ImGui::GetIO().DisplaySize.y * 0.6f});
  if (!ImGui::BeginPopup(id)) return false;
  std::string group;
  for (int i = 0; i < static_cast<int>(titles.size()); ++i) {
    const EditPart* part = parts.empty() ? nullptr : nth(parts, i);
    if (part && part->group != group) section(c.ui, said(group = part->group));
    if (ImGui::IsWindowAppearing() && i == chosen) ImGui::SetScrollHereY();
    if (menu_item(c.ui, nth(titles, i), nullptr, i == chosen)) {
      changed = i != chosen;
      chosen = i;
    }
    if (part && !part->meaning.empty() && ImGui::IsItemHovered())
      tooltip(c.ui, {said(part->title), said(part->meaning)});
  }
  if (ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
  return changed;
}

bool number_field(const PageContext& c, const EditField& field, std::string& answer) {
  bool changed = false;
  const float box = c.ui.px(92);
  const bool slides = field.high > field.low;
  const float room = ImGui::GetContentRegionAvail().x;
  if (slides) {
    double value = number_in(answer, number_in(field.usual, field.low));
    SliderOptions options{field.low, field.high, number_in(field.usual, field.low), field.logarithmic, "", 0};
    if (field.kind == Kind::number) options.decimals = field.high <= 1 ? 3 : field.high <= 100 ? 2 : 0;
    ImGui::BeginChild("slider", {room - box - c.ui.px(8), c.ui.px(26)});
    if (slider(c.ui, field.title.c_str(), value, options)) {
      answer = field.kind == Kind::whole ? fmt::format("{}", std::llround(value)) : fmt::format("{}", value);
      changed = true;
    }
    ImGui::EndChild();
    ImGui::SameLine(0, c.ui.px(8));
  } else {
    label(c, field.title, field.words);
  }
  const UseFont font(c.ui, c.ui.number());
  ImGui::SetNextItemWidth(box);
  changed |= input_line(c.ui, ("##edit " + field.name).c_str(), "", answer);
  return changed;
}

void add(FieldTouch& to, FieldTouch more) {
  to.changed |= more.changed;
  to.in_text |= more.in_text;
}

}  // namespace

bool position_choice(const PageContext& c, const char* id, int& position) {
  const Trace* trace = c.trace();
  const int count = trace ? static_cast<int>(trace->tokens.size()) : 0;
  const auto name = [&](int at) {
    const int place = at < 0 ? at + count : at;
    const bool there = place >= 0 && place < count;
    return fmt::format("{}  {}", at, there ? nth(trace->tokens, place).label : said("not in this text"));
  };
  bool changed = false;
  const std::string shown = name(position);
  if (menu_button(c.ui, id, shown, "", c.ui.px(28))) ImGui::OpenPopup(id);
  ImGui::SetNextWindowSizeConstraints({c.ui.px(200), 0}, {c.ui.px(420), ImGui::GetIO().DisplaySize.y * 0.5f});
  if (!ImGui::BeginPopup(id)) return false;
  const auto offer = [&](int at) {
    const std::string words = name(at);
    if (ImGui::MenuItem(std::string(c.ui.fonts.laid_out(words)).c_str(), at == -1 ? said("the last") : nullptr,
                        at == position)) {
      changed = at != position;
      position = at;
    }
  };
  offer(-1);
  ImGuiListClipper clipper;
  clipper.Begin(count);
  if (ImGui::IsWindowAppearing() && position >= 0 && position < count) clipper.IncludeItemByIndex(position);
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      offer(i);
      if (ImGui::IsWindowAppearing() && i == position) ImGui::SetScrollHereY();
    }
  if (ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
  return changed;
}

FieldTouch EditFields::field(const PageContext& c, const EditPart& part, std::string& answer) {
  const EditField& field = part.field;
  FieldTouch touch;
  bool told = false;
  switch (field.kind) {
    case Kind::number:
    case Kind::whole:
      touch.changed = number_field(c, field, answer);
      break;
    case Kind::position: {
      label(c, field.title, field.words);
      int position = static_cast<int>(number_in(answer, 0));
      touch.changed = position_choice(c, field.title.c_str(), position);
      if (touch.changed) answer = std::to_string(position);
      break;
    }
    case Kind::choice: {
      label(c, field.title, field.words);
      std::vector<const char*> titles;
      for (const std::string& each : field.choices) titles.push_back(each.c_str());
      int chosen = static_cast<int>(std::ranges::find(field.choices, answer) - field.choices.begin());
      if (chosen == static_cast<int>(titles.size())) chosen = 0;
      touch.changed = choose(c, field.title.c_str(), titles, {}, chosen);
      if (touch.changed) answer = nth(field.choices, chosen);
      break;
    }
    case Kind::toggle: {
      bool on = answer == field.choices.back();
      touch.changed = check_box(c.ui, field.title.c_str(), on);
      if (touch.changed) answer = field.choices[on ? 1 : 0];
      break;
    }
    case Kind::word:
    case Kind::line: {
      label(c, field.title, field.words);
      const UseFont font(c.ui, c.ui.token());
      ImGui::SetNextItemWidth(-1);
      touch.changed = input_line(c.ui, ("##edit " + field.name).c_str(), field.usual.c_str(), answer);
      break;
    }
    case Kind::text: {
      told = true;
      label(c, field.title, "");
      {
        const UseFont small(c.ui, c.ui.small());
        text_line(c.ui, said(field.words), c.ui.theme.faint);
      }
      const std::string& own = c.state().document.text;
      if (!own.empty() && own != answer) {  // most patches change a word or two of it
        ImGui::SameLine();
        ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, ImGui::GetContentRegionAvail().x -
                                                                         button_width(c.ui, "Begin with this text")));
        if (button(c.ui, to_say("Begin with this text"), c.ui.px(22))) {
          answer = own;
          touch.changed = true;
        }
      }
      PromptEdit& edit = texts_[part.id];
      if (edit.draw(c.ui, ("##edit " + field.name).c_str(), answer, {}, 5, said("Write a text …")).changed) {
        answer = edit.text();
        touch.changed = true;
      }
      touch.in_text = edit.active();
      break;
    }
  }
  if (!told && !field.words.empty()) {
    const UseFont font(c.ui, c.ui.small());
    paragraph(c.ui, said(field.words), c.ui.theme.faint);
  }
  return touch;
}

FieldTouch EditFields::draw(const PageContext& c, const EditPart& part, EditAnswers& answers) {
  FieldTouch touch;
  ImGui::PushID(part.id);
  switch (part.kind) {
    case EditPart::Kind::word:
      break;
    case EditPart::Kind::field:
      touch = field(c, part, answers[part.id]);
      break;
    case EditPart::Kind::sequence:
      for (const EditPart& each : part.parts) add(touch, draw(c, each, answers));
      break;
    case EditPart::Kind::optional: {
      bool on = part.always || !answers[part.id].empty();
      if (part.always) {
        label(c, part.title, "");
      } else if (check_box(c.ui, part.title.c_str(), on)) {
        answers[part.id] = on ? "1" : "";
        touch.changed = true;
      }
      if (!on) break;
      const float inset = part.always ? 0 : c.ui.px(26);
      if (inset > 0) ImGui::Indent(inset);
      for (const EditPart& each : part.parts) add(touch, draw(c, each, answers));
      if (inset > 0) ImGui::Unindent(inset);
      break;
    }
    case EditPart::Kind::choice: {
      std::vector<const char*> titles;
      std::vector<const EditPart*> parts;
      for (const EditPart& each : part.parts) {
        titles.push_back(each.title.c_str());
        parts.push_back(&each);
      }
      int index = static_cast<int>(chosen(part, answers));
      if (choose(c, "alternatives", titles, parts, index)) {
        answers[part.id] = std::to_string(index);
        touch.changed = true;
      }
      const EditPart& now = nth(part.parts, index);
      if (!now.meaning.empty()) {
        const UseFont font(c.ui, c.ui.small());
        paragraph(c.ui, said(now.meaning), c.ui.theme.muted);
      }
      add(touch, draw(c, now, answers));
      break;
    }
  }
  ImGui::PopID();
  return touch;
}

}  // namespace headscope
