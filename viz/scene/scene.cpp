#include "viz/scene/scene.h"

#include <cmath>

namespace headscope {

double PlotArea::x_at(double share) const {
  return log ? low * std::pow(high / low, share) : low + share * (high - low);
}

double PlotArea::share_of(double x) const {
  return log ? std::log(x / low) / std::log(high / low) : (x - low) / (high - low);
}

const Mark* find(const Scene& scene, std::string_view id) {
  for (const Mark& mark : scene.marks)
    if (mark.id == id) return &mark;
  return nullptr;
}

const Mark* mark_of(const Scene& scene, const Meaning& meaning) {
  for (auto mark = scene.marks.rbegin(); mark != scene.marks.rend(); ++mark)
    if (mark->meaning == meaning) return &*mark;
  return nullptr;
}

}  // namespace headscope
