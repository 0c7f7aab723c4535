#pragma once
// How often values fell where: bars over the part of the range that was met, with deciles, mean and what chance gives.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/words.h"
#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct Histogram {
  std::span<const std::uint32_t> counts;  ///< of bins of the same width from `low` to `high`
  double low = 0, high = 1;
  std::vector<double> deciles;  ///< nine values, the median in the middle; empty = not drawn
  double mean = 0, spread = 0;  ///< NaN = not drawn
  std::optional<double> chance;
  std::string title;                                                 ///< "Entropy of head 1.0, nats"
  std::string remark;                                                ///< quiet, beside it: "412 passages"
  std::string noun = to_say("passage"), nouns = to_say("passages");  ///< what was counted, for tooltips
  Color color;
  double width = 480, height = 240;
};

/// Bars are named "bar.<i>", with their range and count as tooltip. Series: counts of the bars over their lower ends,
/// deciles, mean and spread. Without a count the picture says so.
Scene histogram_scene(const Histogram& histogram, const Style& style);

}  // namespace headscope
