#include "viz/scene/framed.h"

#include <algorithm>
#include <cmath>

#include "viz/scene/compose.h"

namespace headscope {

Scene framed(const Scene& bare, const Header& header, const Style& style, const std::string& source) {
  Scene scene;
  scene.background = bare.background;
  scene.title = bare.title.empty() ? header.title : bare.title;
  scene.description = bare.description + (bare.description.empty() || source.empty() ? "" : " · ") + source;
  const double width = std::max(bare.width, narrowest * style.theme.text_scale);
  scene.width = std::ceil(width + 2 * margin);
  const double y = std::round(add_header(scene, header, margin, margin, width, style) + 16);
  scene.table = bare.table;
  place(scene, bare, margin, y);
  scene.height = std::ceil(add_caption(scene, scene.description, margin, y + bare.height + 8, width, style) + margin);
  return scene;
}

}  // namespace headscope
