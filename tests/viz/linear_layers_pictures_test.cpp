// Pictures of which layers may become linear and of what whole models cost: every point, band, level and dot is a
// number of the search or of the formulas.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "app/render/hybrid_cost_picture.h"
#include "app/render/linear_layers_pictures.h"
#include "app/render/machine_pictures.h"
#include "core/base/nth.h"
#include "tests/viz/sample.h"

namespace headscope::linear_layers_pictures_test {

using doctest::Approx;
using Numbers = std::vector<double>;
using Method = LinearLayersAsked::Method;

namespace {

Style plain() {
  static const PangoText measure;
  return {theme("dark"), measure};
}

Outcome of(double loss) {
  return {loss, loss / 10, 0};
}

/// Three layers, all known.
LinearLayers three() {
  LinearLayers out;
  out.layers = 3;
  out.before = of(1);
  out.none = of(4);
  out.alone = {of(3), of(1.5), of(2)};
  out.without = {of(3.5), of(1.25), of(2.5)};
  out.even = {of(3.75), of(1.75)};
  out.trials = {{0, 0, of(2)}, {0, 1, of(3)}, {0, 2, of(2.5)}, {1, 1, of(1.75)}, {1, 2, of(1.5)}, {2, 1, of(1)}};
  out.order = {{0, of(2)}, {2, of(1.5)}, {1, of(1)}};
  out.drawn = {{of(2), of(1.75)}, {of(3), of(1.5)}, {of(2.5), of(2)}};
  out.drawn_orders = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}};
  return out;
}

const ChartSeries& line(const LineChart& chart, const std::string& title) {
  const auto found = std::ranges::find(chart.series, title, &ChartSeries::title);
  REQUIRE_MESSAGE(found != chart.series.end(), title);
  return *found;
}

}  // namespace

TEST_CASE("loss against layers with softmax: greedy and even from none to all, random with its band, what is allowed") {
  LinearLayers found = three();
  LineChart chart = kept_softmax_chart(found, 0.5, plain());
  CHECK(chart.y_title == "loss on this text, nats");
  CHECK(line(chart, "greedy").x == Numbers{0, 1, 2, 3});
  CHECK(line(chart, "greedy").y == Numbers{4, 2, 1.5, 1});
  CHECK(line(chart, "evenly spaced").y == Numbers{4, 3.75, 1.75, 1});
  CHECK(line(chart, "random").x == Numbers{1, 2});
  CHECK(line(chart, "random").y == Numbers{2.5, 1.75});
  CHECK(line(chart, "random").least == Numbers{2, 1.5});
  CHECK(line(chart, "random").most == Numbers{3, 2});
  CHECK(line(chart, "allowed").y == Numbers{1.5, 1.5});
  REQUIRE(chart.marker);
  CHECK(chart.marker->x == 2);
  CHECK(chart.marker->y == 1.5);
  // While it goes on: what is known, and no mean of some orders only.
  found.order.resize(1);
  found.even.resize(1);
  found.drawn[2].resize(1);
  chart = kept_softmax_chart(found, 0.5, plain());
  CHECK(line(chart, "greedy").x == Numbers{0, 1, 3});
  CHECK(line(chart, "evenly spaced").x == Numbers{0, 1, 3});
  CHECK(line(chart, "random").x == Numbers{1});
  CHECK(chart.marker->x == 3);
  found.drawn.clear();
  CHECK(std::ranges::count(kept_softmax_chart(found, 0.5, plain()).series, "random", &ChartSeries::title) == 0);
  // Held to KL where there is no loss.
  found.by_kl = true;
  chart = kept_softmax_chart(found, 0.5, plain());
  CHECK(chart.y_title == "KL of the answer, nats");
  CHECK(line(chart, "greedy").y == Numbers{0.4, 0.2, 0.1});
}

TEST_CASE("one layer at a time: linear beside no attention, over the model as it is") {
  const LineChart chart = one_linear_layer_chart(three(), plain());
  CHECK(line(chart, "linear").x == Numbers{0, 1, 2});
  CHECK(line(chart, "linear").y == Numbers{3, 1.5, 2});
  CHECK(line(chart, "no attention").y == Numbers{3.5, 1.25, 2.5});
  CHECK(line(chart, "as it is").y == Numbers{1, 1});
}

TEST_CASE("the search round by round: rises of what was tried, a dot at what stayed, the rest flat") {
  LinearLayers found = three();
  Matrix matrix = linear_search_matrix(found);
  CHECK(matrix.rows == std::vector<std::string>{"1", "2", "3"});
  CHECK(matrix.columns == std::vector<std::string>{"0", "1", "2"});
  CHECK(matrix.pending == std::vector<std::uint8_t>{0, 0, 0, 1, 0, 0, 1, 0, 1});
  CHECK(matrix.values.at(0, 1) == 2);
  CHECK(matrix.values.at(1, 2) == 0.5f);
  CHECK(matrix.texts == std::vector<std::string>{"• 1", "2", "1.5", "", "0.75", "• 0.5", "", "• 0", ""});
  CHECK(matrix.pending_text == "has softmax by then");
  found.asked.method = Method::replace;
  matrix = linear_search_matrix(found);
  CHECK(matrix.rows == std::vector<std::string>{"2", "1", "0"});
  CHECK(matrix.pending_text == "linear by then");
  // Stopped in the second round: what was changed by then is known, the rest was not tried yet.
  found.asked.method = Method::restore;
  found.order.resize(1), found.trials.resize(4);
  const Matrix half = linear_search_matrix(found);
  CHECK(half.pending == std::vector<std::uint8_t>{0, 0, 0, 1, 0, 0, 1, 0, 0});
  CHECK(std::isnan(half.values.at(1, 2)));
  CHECK(std::isnan(half.values.at(2, 1)));
  CHECK(half.values.at(1, 1) == 0.75f);
  CHECK(half.missing_text == "not tried yet");
  found = three();
  const Scene scene = linear_layers_scene(found, 0.5, 1000, plain());
  CHECK(scene.width <= 1001);
  CHECK(find(scene, "1.matrix"));
  CHECK(find(scene, "0.0.line.greedy"));
  CHECK(find(scene, "0.1.line.no attention"));
}

TEST_CASE("whole models as the text grows: FLOPs per token by the formulas, the dot at the text's length") {
  const HybridShape shape{80, 6144, 64, 4, 100000};
  const LineChart chart = hybrid_cost_chart(shape, 8, plain());
  REQUIRE(chart.series.size() == 3);
  CHECK(chart.log_x);
  CHECK(chart.log_y);
  for (std::size_t row = 0; row < 3; ++row) {
    const ChartSeries& each = chart.series[row];
    CHECK(each.title == hybrid_cost_table(shape, 8)[row].name);
    CHECK(each.x.front() == 256);
    CHECK(each.x.back() == Approx(4194304));
    for (std::size_t i = 0; i < each.x.size(); i += 7) {
      HybridShape at = shape;
      at.tokens = each.x[i];
      CHECK(each.y[i] == Approx(hybrid_cost_table(at, 8)[row].flops / (4 * at.tokens)));
    }
  }
  REQUIRE(chart.marker);
  CHECK(chart.marker->x == 100000);
  CHECK(chart.marker->y == Approx(hybrid_model_cost(shape, 8).flops / 400000));
  const LineChart of_one =
      hybrid_cost_chart({80, 6144, 64, 1, 1}, 8, plain());  // as short as can be: on the chart, too
  CHECK(of_one.marker->x == 1);
  CHECK(of_one.x_low == 1);
}

TEST_CASE("a ring of packed texts tells whose tokens a worker keeps and how much it computes beside the mean") {
  RingRound round;
  round.done = 2, round.rounds = 2;
  round.texts = {0, 3, 5};
  round.workers = {{{0, 3}, {3, 5}, 1, false, 1, 6}, {{3, 5}, {0, 3}, 0, true, 2, 3}};
  const WorkerRing ring = worker_ring(round, *find_mechanism("ring"));
  CHECK(ring.workers[0].tooltip ==
        "keeps queries 0–2 of text 0, holds keys and values 3–4 of worker 1, of which the mask leaves it none; 1 of 2 "
        "blocks folded in, 6 cells, 1.33 × the mean");
  CHECK(ring.workers[1].tooltip.starts_with("keeps queries 3–4 of text 1, "));
  CHECK(ring.remark.ends_with("1 of 2 have nothing to do: the mask, or another text's keys"));
  round.texts = {0, 1, 5};
  CHECK(worker_ring(round, *find_mechanism("ring")).workers[0].tooltip.starts_with("keeps queries 0–2 of texts 0–1, "));
}

}  // namespace headscope::linear_layers_pictures_test
