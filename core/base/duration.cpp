#include "core/base/duration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace headscope {

std::string duration_text(double seconds) {
  const auto whole = static_cast<long>(std::lround(std::max(seconds, 0.0)));
  return whole >= 3600 ? fmt::format("{} h {:02d} min", whole / 3600, whole / 60 % 60)
         : whole >= 60 ? fmt::format("{} min {:02d} s", whole / 60, whole % 60)
                       : fmt::format("{} s", whole);
}

}  // namespace headscope
