#pragma once
// What a head's classes rest on: a list that opens from the badge in its title, and frames in its map.

#include "app/widgets/scene_view.h"
#include "app/workspaces/page_context.h"
#include "viz/scene/scene.h"

namespace headscope {

/// The classes of the selected head, strongest first; empty where it has none or nothing ran.
const std::vector<HeadVerdict>& verdicts_of(const PageContext& c);

/// Call right after the badge was drawn: a click on it opens the list. A click on a cell of the list pins it.
void evidence_popup(const PageContext& c);

/// Frames around the listed cells in the map, in the colour of their class, while the list is open.
void paint_evidence(const PageContext& c, const SceneTouch& touch, const Heatmap& map);

}  // namespace headscope
