#pragma once
// A bare picture with what every picture for a file has around it: margins, title block, caption.

#include "viz/scene/annotations.h"
#include "viz/scene/scene.h"

namespace headscope {

/// `bare` below a title block and above its own description and `source`. Ids, tooltips and numbers stay.
Scene framed(const Scene& bare, const Header& header, const Style& style, const std::string& source = "");

}  // namespace headscope
