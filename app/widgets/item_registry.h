#pragma once
// What is on screen, by name: every Dear ImGui item of the last frame that has a label, and what custom widgets add
// themselves. Window tests click "Layer 5 Head 1" through it; screen readers could be served from the same list. Fed by
// Dear ImGui's test-engine hooks, whose functions are defined here; costs nothing while no registry is attached.
// Thread rule: the UI thread.

#include <imgui.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headscope {

struct Item {
  std::string label;  ///< without what follows "##"; an item that has only an id keeps it, "##prompt";
                      ///< one that a table says has both names, its text and its English
  ImVec2 min, max;    ///< window coordinates
  ImGuiID id = 0;     ///< 0 = added by hand
  ImVec2 center() const { return {(min.x + max.x) / 2, (min.y + max.y) / 2}; }
};

class ItemRegistry {
 public:
  /// Turns the hooks of the current ImGui context on, for as long as this lives.
  ItemRegistry();
  ~ItemRegistry();
  ItemRegistry(const ItemRegistry&) = delete;
  ItemRegistry& operator=(const ItemRegistry&) = delete;

  void begin_frame();  ///< what was added since the last call becomes items()
  void add(std::string_view label, ImVec2 min, ImVec2 max);

  const std::vector<Item>& items() const { return shown_; }
  /// The first item with exactly this label; nullopt when the last frame had none.
  std::optional<Item> find(std::string_view label) const;

  // Called by the hooks.
  void placed(ImGuiID id, ImVec2 min, ImVec2 max);
  void named(ImGuiID id, const char* label);

 private:
  struct Placed {
    ImGuiID id;
    ImVec2 min, max;
  };
  std::vector<Placed> placed_;
  std::vector<Item> adding_, shown_;
};

}  // namespace headscope
