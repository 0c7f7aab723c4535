#pragma once
// A number for each token as bars over the text: loss per token, with the levels that it is compared with and a line
// over it (a running mean).

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/trace/trace.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct TokenBars {
  std::shared_ptr<const Trace> tokens;
  Index first = 0;                    ///< position of values[0]
  std::vector<double> values;         ///< 0 or more; NaN leaves a place free
  std::vector<std::string> tooltips;  ///< of the bars; may be empty
  struct Level {
    double value = 0;
    std::string text;     ///< written at the right end, "ln V"
    std::string tooltip;  ///< what it is
  };
  std::vector<Level> levels;
  std::vector<double> line;  ///< as many as values, or none
  std::string line_title;
  std::string unit;             ///< in the corner, "loss, nats"
  std::optional<Index> marked;  ///< position whose bar stands out
  double width = 900, height = 320;
};

/// Bars are named "bar.<position>", the whole height of their place "place.<position>" (a bar may be too low to hit),
/// levels "level.<text>", the line "line". `width` grows where the bars would become
/// narrower than 4 pixels. Series: the values and the line over the position, the levels.
Scene token_bars_scene(const TokenBars& bars, const Style& style);

}  // namespace headscope
