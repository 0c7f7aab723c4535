#include <algorithm>
#include <cmath>

#include "app/widgets/controls.h"
#include "app/workspaces/explore/panels.h"
#include "core/base/words.h"
#include "core/trace/layer_kinds.h"
#include "viz/scene/line_chart.h"

namespace headscope {

void DepthPanel::draw(const PageContext& c) {
  const HeadFacts* facts = c.facts();
  if (!facts || facts->trace->maps.empty()) return;
  const ModelDims& dims = facts->trace->model.dims;
  if (dims.layers < 2 || (dims.hybrid() && attending_layers(dims) < 2)) return;  // there is no line through one layer
  section(c.ui, said("ACROSS DEPTH"), said("mean over the heads of each layer"));
  const double width = std::floor(c.room());
  slot_.want(c.jobs, c.ui, c.results().facts, std::to_string(width),
             [facts = c.results().facts, width](const Style& style) {
               struct Wanted {
                 std::string_view id;
                 const char* title;
                 Color color;
               };
               const Wanted wanted[] = {{"entropy_normalized", said("entropy"), style.theme.accent},
                                        {"sink", said("sink"), style.theme.muted},
                                        {"prefix_matching", said("induction"), legible(style.theme, rgb(0xFFB13B))}};
               LineChart chart;
               chart.width = width;
               chart.height = 128;
               chart.y_title = said("share, 0 … 1");
               chart.x_low = 0;
               chart.x_high = facts->trace->model.dims.layers - 1;
               chart.y_low = 0;
               chart.y_high = 1;
               for (const Wanted& w : wanted) {
                 const auto column = static_cast<std::size_t>(&metric(w.id) - metrics().data());
                 ChartSeries line{w.title, w.color, {}, {}};
                 for (std::size_t i = 0; i < facts->trace->maps.size();) {
                   const int layer = facts->trace->maps[i].layer();
                   double sum = 0;
                   int count = 0;
                   for (; i < facts->trace->maps.size() && facts->trace->maps[i].layer() == layer; ++i)
                     if (const double v = facts->table.value[i][column]; !std::isnan(v)) sum += v, ++count;
                   if (count == 0) continue;  // it does not attend, say: the line goes on to the next that has a value
                   line.x.push_back(layer);
                   line.y.push_back(sum / count);
                 }
                 if (!line.y.empty()) chart.series.push_back(std::move(line));
               }
               for (int layer = 0; layer < facts->trace->model.dims.layers; ++layer) chart.x_ticks.push_back(layer);
               return line_chart_scene(chart, style);
             });
  slot_.draw(c.ui, "depth", {}, width, 128);
}

}  // namespace headscope
