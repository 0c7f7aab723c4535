#include "app/render/expert_pictures.h"

#include <fmt/format.h>

#include "core/base/nth.h"
#include "viz/scene/compose.h"

namespace headscope {

Matrix routing_matrix(const RoutingReport& report, const ExpertRouting& routing, std::shared_ptr<const Trace> trace) {
  Matrix out;
  const Index tokens = routing.weights.dim(0), experts = routing.weights.dim(1);
  out.values = Tensor::zeros({experts, tokens});
  out.pending_text = "did not take the token";
  for (Index e = 0; e < experts; ++e) {
    for (Index i = 0; i < tokens; ++i) {
      out.values.ref(e, i) = routing.weights.at(i, e);
      out.pending.push_back(routing.weights.at(i, e) == 0);
    }
    out.rows.push_back(fmt::format("{}", e));
  }
  out.tokens = std::move(trace);
  out.row_title = "expert ↓";
  out.column_title = "token →";
  out.unit = "weight of the expert's output";
  out.provenance = fmt::format("{}: {} of {} experts take each token; grey: did not take it",
                               name(Site{SiteKind::router_weights, routing.layer}), report.per_token, report.experts);
  out.low = 0;
  return out;
}

Matrix load_matrix(const RoutingReport& report) {
  Matrix out;
  out.values = Tensor::zeros({static_cast<Index>(report.layers.size()), report.experts});
  for (std::size_t row = 0; row < report.layers.size(); ++row) {
    for (Index e = 0; e < report.experts; ++e)
      out.values.ref(static_cast<Index>(row), e) = static_cast<float>(nth(report.layers[row].load, e) / report.chance);
    out.rows.push_back(fmt::format("{}", report.layers[row].layer));
  }
  for (int e = 0; e < report.experts; ++e) out.columns.push_back(fmt::format("{}", e));
  out.row_title = "layer ↓";
  out.column_title = "expert →";
  out.unit = "load ÷ even share";
  out.provenance = "tokens that the expert took ÷ what it would take if all took as many: 1 is chance";
  out.low = 0;
  return out;
}

LineChart load_chart(const RoutingReport& report, const ExpertRouting& routing, const Style& style) {
  LineChart chart;
  chart.y_title = fmt::format("share of layer {}", routing.layer);
  chart.x_title = "expert";
  chart.grid = chart.points = true;
  chart.y_low = 0;
  ChartSeries load{"tokens", style.theme.accent, {}, {}}, weight{"weight", style.theme.muted, {}, {}},
      even{"even", style.theme.muted, {0.0, static_cast<double>(report.experts - 1)}, {report.chance, report.chance}};
  even.dashed = even.quiet = true;
  const int step = (report.experts + 15) / 16;
  for (int e = 0; e < report.experts; ++e) {
    if (e % step == 0) chart.x_ticks.push_back(e);
    load.x.push_back(e), load.y.push_back(nth(routing.load, e));
    weight.x.push_back(e), weight.y.push_back(nth(routing.weight, e));
  }
  chart.series = {even, weight, load};
  return chart;
}

Scene routing_scene(const RoutingReport& report, const ExpertRouting& routing, std::shared_ptr<const Trace> trace,
                    double width, double height, const Style& style) {
  Matrix matrix = routing_matrix(report, routing, std::move(trace));
  matrix.width = width;
  matrix.height = height * 0.7;
  LineChart chart = load_chart(report, routing, style);
  chart.width = width;
  chart.height = height * 0.3;
  const Scene parts[] = {matrix_scene(matrix, style), line_chart_scene(chart, style)};
  return below(parts, 12);
}

}  // namespace headscope
