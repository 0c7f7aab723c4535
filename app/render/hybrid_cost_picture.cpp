#include "app/render/hybrid_cost_picture.h"

#include <algorithm>
#include <cmath>

#include "core/base/words.h"

namespace headscope {

LineChart hybrid_cost_chart(const HybridShape& shape, int every, const Style& style) {
  LineChart chart;
  chart.log_x = chart.log_y = true;
  chart.x_title = said("tokens n");
  chart.y_title = said("FLOPs per token");
  const double shortest = std::min(256.0, std::max(shape.tokens, 1.0)), longest = std::max(4194304.0, shape.tokens);
  const Color colors[] = {style.theme.diverging->at(0.85), style.theme.key, style.theme.accent};
  HybridShape at = shape;
  for (const HybridCost& row : hybrid_cost_table(shape, every)) {
    const std::size_t index = chart.series.size();
    chart.series.push_back({row.name, colors[index], {}, {}, index == 2 ? 2.25 : 1.75});
    for (double n = shortest; n <= longest * 1.001; n *= std::sqrt(2.0)) {
      at.tokens = n;
      chart.series.back().x.push_back(n);
      chart.series.back().y.push_back(hybrid_cost_table(at, every)[index].flops / (n * at.batch));
    }
  }
  chart.x_ticks = {1024, 16384, 262144, 4194304};
  chart.x_labels = {"1 k", "16 k", "256 k", "4 M"};
  chart.x_low = shortest, chart.x_high = longest;
  at.tokens = std::max(shape.tokens, 1.0);
  chart.marker = Point{at.tokens, hybrid_model_cost(at, every).flops / (at.tokens * at.batch)};
  return chart;
}

}  // namespace headscope
