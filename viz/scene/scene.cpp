#include "viz/scene/scene.h"

namespace headscope {

const Mark* find(const Scene& scene, std::string_view id) {
  for (const Mark& mark : scene.marks)
    if (mark.id == id) return &mark;
  return nullptr;
}

}  // namespace headscope
