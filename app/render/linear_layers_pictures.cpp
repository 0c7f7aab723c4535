#include "app/render/linear_layers_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/nth.h"
#include "core/base/special_values.h"
#include "core/base/words.h"
#include "viz/color/color_norm.h"
#include "viz/scene/compose.h"

namespace headscope {

namespace {
std::string cost_words(const LinearLayers& found) {
  return found.by_kl ? said("KL of the answer, nats") : said("loss on this text, nats");
}
}  // namespace

LineChart kept_softmax_chart(const LinearLayers& found, double allowed, const Style& style) {
  LineChart chart;
  chart.grid = chart.points = true;
  chart.x_low = 0, chart.x_high = std::max(found.layers, 1);
  chart.x_title = said("layers that keep softmax");
  chart.y_title = cost_words(found);
  const int step = std::max(1, (found.layers + 7) / 8);
  for (int kept = 0; kept <= found.layers; kept += step) chart.x_ticks.push_back(kept);
  if (!found.drawn.empty() && !found.drawn.front().empty()) {
    ChartSeries random{said("random"), style.theme.muted, {}, {}, 1.25};
    for (int kept = 1; kept < found.layers; ++kept) {
      double sum = 0, least = INFINITY, most = -INFINITY;
      int count = 0;
      for (const auto& line : found.drawn) {
        if (as_size(kept) > line.size()) continue;
        const double cost = found.cost(nth(line, kept - 1));
        sum += cost, least = std::min(least, cost), most = std::max(most, cost), ++count;
      }
      // The mean of other orders at every number would be no line.
      if (count < static_cast<int>(found.drawn.size())) continue;
      random.x.push_back(kept), random.y.push_back(sum / count);
      random.least.push_back(least), random.most.push_back(most);
    }
    if (!random.x.empty()) chart.series.push_back(std::move(random));
  }
  ChartSeries even{said("evenly spaced"), style.theme.key, {}, {}, 1.75},
      greedy{said("greedy"), style.theme.accent, {}, {}, 2.25};
  for (int kept = 0; kept <= found.layers; ++kept)
    for (auto* line : {&even, &greedy}) {
      const double cost = line == &even ? found.evenly(kept) : found.greedy(kept);
      if (std::isfinite(cost)) line->x.push_back(kept), line->y.push_back(cost);
    }
  chart.series.push_back(std::move(even));
  chart.series.push_back(std::move(greedy));
  const double level = found.cost(found.before) + allowed;
  chart.series.push_back(
      {said("allowed"), with_opacity(style.theme.text, 0.5), {0, *chart.x_high}, {level, level}, 1, true, true});
  if (const int fewest = found.fewest(allowed); fewest >= 0)
    chart.marker = Point{static_cast<double>(fewest), found.greedy(fewest)};
  return chart;
}

LineChart one_linear_layer_chart(const LinearLayers& found, const Style& style) {
  LineChart chart;
  chart.grid = chart.points = true;
  chart.x_low = -0.5, chart.x_high = found.layers - 0.5;
  chart.x_title = said("layer");
  chart.y_title = cost_words(found);
  const int step = std::max(1, (found.layers + 11) / 12);
  for (int layer = 0; layer < found.layers; layer += step) chart.x_ticks.push_back(layer);
  ChartSeries alone{said("linear"), style.theme.accent, {}, {}, 2},
      without{said("no attention"), style.theme.muted, {}, {}, 1.25};
  const auto add = [&](ChartSeries& line, const std::vector<LinearOutcome>& known) {
    for (std::size_t layer = 0; layer < known.size(); ++layer)
      line.x.push_back(static_cast<double>(layer)), line.y.push_back(found.cost(known[layer]));
  };
  add(without, found.without);
  add(alone, found.alone);
  chart.series = {std::move(without), std::move(alone)};
  const double own = found.cost(found.before);
  chart.series.push_back({said("as it is"),
                          with_opacity(style.theme.text, 0.5),
                          {*chart.x_low, *chart.x_high},
                          {own, own},
                          1,
                          true,
                          true});
  return chart;
}

Matrix linear_search_matrix(const LinearLayers& found) {
  const bool restoring = found.asked.method == LinearLayersAsked::Method::restore;
  const int layers = found.layers;
  Matrix out;
  out.values = Tensor::full({layers, layers}, static_cast<float>(nan));
  out.pending.assign(as_size(layers) * as_size(layers), 0);
  out.texts.assign(out.pending.size(), "");
  out.pending_text = restoring ? said("has softmax by then") : said("linear by then");
  out.missing_text = said("not tried yet");
  for (std::size_t round = 0; round < found.order.size(); ++round)
    for (int later = static_cast<int>(round) + 1; later < layers; ++later)
      nth(out.pending, later * layers + found.order[round].layer) = 1;
  for (const LinearLayers::Trial& trial : found.trials) {
    const double rise = found.rise(trial.outcome);
    const int cell = trial.round * layers + trial.layer;
    const bool stayed =
        trial.round < static_cast<int>(found.order.size()) && nth(found.order, trial.round).layer == trial.layer;
    out.values.ref(trial.round, trial.layer) = static_cast<float>(rise);
    nth(out.texts, cell) = fmt::format("{}{}", stayed ? "• " : "", short_number(rise, 2));
  }
  for (int round = 0; round < layers; ++round)
    out.rows.push_back(std::to_string(restoring ? round + 1 : layers - round - 1));
  for (int layer = 0; layer < layers; ++layer) out.columns.push_back(std::to_string(layer));
  out.row_title = said("layers with softmax ↓");
  out.column_title = said("layer →");
  out.largest_cell = 130, out.highest_row = 60;  // models of few layers have the room
  out.unit = say("{} above the model's own, nats", found.by_kl ? "KL" : said("loss"));
  out.provenance = restoring ? said("every layer linear but those that got softmax back, and this one")
                             : said("every layer softmax but those made linear, and this one");
  return out;
}

Scene linear_layers_scene(const LinearLayers& found, double allowed, double width, const Style& style) {
  const double half = std::floor((width - 30) / 2);
  LineChart charts[] = {kept_softmax_chart(found, allowed, style), one_linear_layer_chart(found, style)};
  for (LineChart& chart : charts) chart.width = half, chart.height = 300;
  Matrix matrix = linear_search_matrix(found);
  matrix.width = width;
  matrix.height = std::clamp(26.0 * found.layers + 70, 160.0, 620.0);
  const Scene top[] = {line_chart_scene(charts[0], style), line_chart_scene(charts[1], style)};
  const Scene parts[] = {beside(top, 30), matrix_scene(matrix, style)};
  return below(parts, 24);
}

}  // namespace headscope
