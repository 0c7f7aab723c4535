#include "app/workspaces/explore/chat_popup.h"

#include <imgui.h>

#include <vector>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/text/chat_template.h"

namespace headscope {

namespace {
constexpr const char* chat_form = "chat";
constexpr double form_width = 420;
}  // namespace

void ChatPopup::draw(const PageContext& c) {
  const Ui& ui = c.ui;
  const LoadedModel& loaded = c.results().model;
  const bool chats = loaded.chat || !loaded.chat_trouble.empty();
  if (chats && button(ui, to_say("Chat…"), ui.px(24))) {
    error_ = loaded.chat_trouble;
    edit_.focus();
    ImGui::OpenPopup(chat_form);
  }
  if (chats) {
    if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
      tooltip(ui, {said("What a user says, between the marks that this model was trained to read"),
                   loaded.chat ? loaded.chat->where() : loaded.chat_trouble});
    ImGui::SetNextWindowPos({ImGui::GetItemRectMin().x, ImGui::GetItemRectMax().y + ui.px(4)}, ImGuiCond_Appearing);
    form(c);
  }
  if (!c.state().document.parse_special) return;
  if (chats) ImGui::SameLine(0, ui.px(8));
  if (button(ui, to_say("Read as plain text"), ui.px(24))) c.editor.set_parse_special(false);
  if (ImGui::IsItemHovered(ImGuiHoveredFlags_DelayShort))
    tooltip(ui,
            {said("Names of special tokens in the prompt are read as those tokens; this reads them letter by letter")});
}

void ChatPopup::form(const PageContext& c) {
  const Ui& ui = c.ui;
  ImGui::SetNextWindowSize({ui.px(form_width), 0});
  if (!ImGui::BeginPopup(chat_form)) return;
  section(ui, said("SYSTEM"), said("optional: what the model is told before"));
  ImGui::SetNextItemWidth(-1);
  input_line(ui, "##chat system", said("You are a helpful assistant."), system_);
  section(ui, said("YOU"));
  if (edit_.draw(ui, "##chat user", user_, {}, 8, said("What is attention?")).changed) user_ = edit_.text();
  if (!error_.empty()) paragraph(ui, error_, ui.theme.text);
  const bool ready = c.results().model.chat && !user_.empty();
  ImGui::BeginDisabled(!ready);
  if (button(ui, to_say("Put into the prompt")) && ready) {
    std::vector<ChatMessage> messages;
    if (!system_.empty()) messages.push_back({"system", system_});
    messages.push_back({"user", user_});
    try {
      c.editor.set_chat(c.results().model.chat->render(messages));
      error_.clear();
      ImGui::CloseCurrentPopup();
    } catch (const Error& refused) {  // many templates take no system, or no empty turn
      error_ = refused.what();
    }
  }
  ImGui::EndDisabled();
  paragraph(ui, said("The answer that the model gives is generated in the Generate workspace."), ui.theme.faint);
  ImGui::EndPopup();
}

}  // namespace headscope
