#pragma once
// A picture as something that Tab reaches: the arrow keys lead from mark to mark (scene_walk.h), Enter and Space press.
// For Dear ImGui the mark is the item: there it scrolls, and there it puts tooltips. Thread rule: the UI thread.

#include <optional>

#include "app/widgets/scene_walk.h"
#include "app/widgets/ui.h"

namespace headscope {

struct PictureItem {
  bool at_keys = false;  ///< the keyboard is at `stop`: what the pointer is on does not count
  bool pressed = false;  ///< by Enter or Space; or, while not at_keys, by the pointer
};

/// Takes `size` window pixels for `scene`, whose (0, 0) lies at `origin` and is enlarged by `pixels`. Arrows move
/// `stop`, ten steps with Shift; a picture without one is not reached. Dear ImGui's last item afterwards.
PictureItem picture_item(const Ui& ui, const char* id, ImVec2 size, const Scene& scene, std::optional<SceneStop>& stop,
                         ImVec2 origin, float pixels);
/// Over the picture: the frame of what the keyboard is at.
void frame_stop(const Ui& ui, const char* id, const SceneStop& stop, ImVec2 origin, float pixels);

}  // namespace headscope
