#pragma once
// Scenes put together from scenes: side by side or below one another.

#include <span>
#include <string>

#include "viz/scene/scene.h"

namespace headscope {

/// The marks of `part` at (dx, dy) in `into`; `prefix` goes before the names of those that have one.
void place(Scene& into, const Scene& part, double dx, double dy, const std::string& prefix = "");

/// All `parts` beside one another, tops level. Names: "0.", "1.", … before each part's own.
Scene beside(std::span<const Scene> parts, double gap);
/// All below one another, left edges level; names likewise.
Scene below(std::span<const Scene> parts, double gap);

}  // namespace headscope
