#include <algorithm>
#include <cctype>
#include <utility>

#include "app/state/workspace_list.h"
#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/window/floating.h"
#include "app/window/pages.h"
#include "core/base/words.h"

namespace headscope {

namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Whether the word, or what else it is called, holds this.
bool is_called(const GlossaryEntry& entry, const std::string& part) {
  const auto holds = [&](const std::string& word) { return lower(word).find(part) != std::string::npos; };
  return holds(entry.title) || holds(entry.term) || std::ranges::any_of(entry.words, holds);
}

}  // namespace

void GlossaryPage::draw(Ui& ui, AppContext& app) {
  if (const auto asked = std::exchange(app.ui.glossary, std::nullopt)) {
    term_ = *asked;
    filter_.clear();
    ImGui::OpenPopup("glossary");
  }
  if (!begin_floating(ui, "glossary", 620 * ui.theme.text_scale, 64)) return;
  const std::vector<GlossaryEntry>& all = app.explorer.lessons.glossary();
  const auto chosen = std::ranges::find(all, term_, &GlossaryEntry::term);
  if (chosen != all.end())
    entry(ui, app, *chosen);
  else
    list(ui, all);
  if (button(ui, to_say("Close")) || ImGui::IsKeyPressed(ImGuiKey_Escape)) ImGui::CloseCurrentPopup();
  ImGui::EndPopup();
}

void GlossaryPage::entry(Ui& ui, AppContext& app, const GlossaryEntry& entry) {
  section(ui, said("GLOSSARY"));
  {
    const UseFont font(ui, ui.heading());
    paragraph(ui, entry.title, ui.theme.text);
  }
  ImGui::Dummy({0, ui.px(2)});
  paragraph(ui, entry.text, ui.theme.text);
  if (!entry.formula.empty()) {
    const UseFont font(ui, ui.number());
    paragraph(ui, entry.formula, ui.theme.text);
  }
  if (!entry.words.empty()) {
    std::string words;
    for (const std::string& each : entry.words) words += (words.empty() ? "" : ", ") + each;
    note(ui, say("Also: {}", words));
  }
  ImGui::Dummy({0, ui.px(6)});
  if (!entry.lesson.empty()) {
    if (button(ui, to_say("Lesson"))) {
      app.explorer.lessons.open(entry.lesson);
      ImGui::CloseCurrentPopup();
    }
    ImGui::SameLine(0, ui.px(8));
  }
  const auto page = std::ranges::find_if(app.ui.pages, [&](const UiRequests::Page& each) {
    return workspace_option(each.of) + "/" + each.id == entry.page;
  });
  if (page != app.ui.pages.end()) {
    if (button(ui, to_say("Show it"))) {
      app.ui.workspace = page->workspace;
      app.settings.pages[page->of] = page->id;
      ImGui::CloseCurrentPopup();
    }
    ImGui::SameLine(0, ui.px(8));
  }
  if (button(ui, to_say("All words"))) term_.clear();
  ImGui::SameLine(0, ui.px(8));
}

void GlossaryPage::list(Ui& ui, const std::vector<GlossaryEntry>& all) {
  section(ui, said("GLOSSARY"), said("what the words mean"));
  ImGui::SetNextItemWidth(-1);
  if (ImGui::IsWindowAppearing()) ImGui::SetKeyboardFocusHere();
  input_line(ui, "##glossary filter", said("a word, or an abbreviation"), filter_);
  const std::string part = lower(filter_);
  ImGui::BeginChild("list", {0, ImGui::GetIO().DisplaySize.y * 0.6f});
  bool none = true;
  for (const GlossaryEntry& each : all) {
    if (!is_called(each, part)) continue;
    none = false;
    if (result_row(ui, each.title, each.text, false)) term_ = each.term;
  }
  if (none) note(ui, said("No word of the glossary is called so."));
  ImGui::EndChild();
}

}  // namespace headscope
