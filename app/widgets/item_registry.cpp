#include "app/widgets/item_registry.h"

#include <imgui_internal.h>

#include <algorithm>

#include "core/base/words.h"

namespace headscope {

namespace {
ItemRegistry* registry_of(ImGuiContext* context) {
  return static_cast<ItemRegistry*>(context->TestEngine);
}
}  // namespace

ItemRegistry::ItemRegistry() {
  ImGuiContext* context = ImGui::GetCurrentContext();
  context->TestEngine = this;
  context->TestEngineHookItems = true;
}

ItemRegistry::~ItemRegistry() {
  if (ImGuiContext* context = ImGui::GetCurrentContext(); context && context->TestEngine == this) {
    context->TestEngine = nullptr;
    context->TestEngineHookItems = false;
  }
}

void ItemRegistry::begin_frame() {
  shown_ = std::move(adding_);
  adding_.clear();
  placed_.clear();
}

void ItemRegistry::add(std::string_view label, ImVec2 min, ImVec2 max) {
  adding_.push_back({std::string(label), min, max, 0});
}

std::optional<Item> ItemRegistry::find(std::string_view label) const {
  const auto found = std::find_if(shown_.begin(), shown_.end(), [&](const Item& item) { return item.label == label; });
  if (found == shown_.end()) return std::nullopt;
  return *found;
}

void ItemRegistry::placed(ImGuiID id, ImVec2 min, ImVec2 max) {
  if (id != 0) placed_.push_back({id, min, max});
}

void ItemRegistry::named(ImGuiID id, const char* label) {
  // An item is placed just before it is named.
  const auto place = std::find_if(placed_.rbegin(), placed_.rend(), [&](const Placed& p) { return p.id == id; });
  if (id == 0 || label == nullptr || place == placed_.rend()) return;
  std::string_view text = label;
  std::string_view english;  // "Töne###Tones": said in another language
  if (const auto own = text.find("###"); own != text.npos && own > 0) english = text.substr(own + 3);
  if (const auto hidden = text.find("##"); hidden != std::string_view::npos && hidden > 0)
    text = text.substr(0, hidden);
  while (!adding_.empty() && adding_.back().id == id) adding_.pop_back();  // named twice: the last word counts
  adding_.push_back({std::string(text), place->min, place->max, id});
  if (said_view(english) != english) adding_.push_back({std::string(english), place->min, place->max, id});
}

}  // namespace headscope

// Declared by imgui_internal.h; Dear ImGui calls them while TestEngineHookItems is set.
void ImGuiTestEngineHook_ItemAdd(ImGuiContext* context, ImGuiID id, const ImRect& box, const ImGuiLastItemData*) {
  if (auto* registry = headscope::registry_of(context)) registry->placed(id, box.Min, box.Max);
}

void ImGuiTestEngineHook_ItemInfo(ImGuiContext* context, ImGuiID id, const char* label, ImGuiItemStatusFlags) {
  if (auto* registry = headscope::registry_of(context)) registry->named(id, label);
}

void ImGuiTestEngineHook_Log(ImGuiContext*, const char*, ...) {}

const char* ImGuiTestEngine_FindItemDebugLabel(ImGuiContext*, ImGuiID) {
  return nullptr;
}
