// Pictures of heads that share keys, of tiles in fast memory, of a ring of workers, of a band about a line.

#include <doctest/doctest.h>

#include <cmath>

#include "app/render/machine_pictures.h"
#include "app/render/sharing_pictures.h"
#include "tests/viz/sample.h"
#include "viz/scene/key_sharing.h"
#include "viz/scene/line_chart.h"
#include "viz/scene/tile_machine.h"
#include "viz/scene/worker_ring.h"

namespace headscope::machine_scenes_test {

namespace {
Style plain() {
  static const PangoText measure;
  return {theme("dark"), measure};
}
const Rect& box(const Scene& scene, const std::string& id) {
  const Mark* mark = find(scene, id);
  REQUIRE_MESSAGE(mark, id);
  return std::get<Box>(mark->shape).rect;
}
}  // namespace

TEST_CASE("eight query heads: bars of 1, ½, ¼ and ⅛, and each head joined to the key head of its group") {
  const Scene scene = sharing_ways_scene(nullptr, 1000, plain());
  const double whole = box(scene, "way.0.whole").w;
  const double shares[] = {1, 0.5, 0.25, 0.125, 4.5 / 16};
  const char* const words[] = {"1×", "½", "¼", "⅛", "28 %"};
  for (int way = 0; way < 5; ++way) {
    const std::string id = "way." + std::to_string(way);
    CHECK(box(scene, id + ".cache").w == doctest::Approx(whole * shares[way]));
    CHECK(std::get<Text>(find(scene, id + ".share")->shape).text == words[way]);
    for (int head = 0; head < 8; ++head) {
      const auto& join = std::get<Line>(find(scene, id + ".join." + std::to_string(head))->shape);
      CHECK(join.points.front().x == doctest::Approx(box(scene, id + ".query." + std::to_string(head)).center().x));
      const int keys[] = {8, 4, 2, 1};
      const std::string end = way < 4 ? id + ".key." + std::to_string(head * keys[way] / 8) : id + ".latent";
      CHECK(join.points.back().x == doctest::Approx(box(scene, end).center().x));
    }
  }
  REQUIRE(scene.series.size() == 1);
  CHECK(scene.series[0].y == std::vector<double>(std::begin(shares), std::end(shares)));
  CHECK(share_words(1.0 / 16) == "1⁄16");
}

TEST_CASE("a machine's bytes are as long as they are many, and rows in fast memory are lit") {
  TileMachine machine;
  machine.state = "tile 2 of 4";
  machine.slow = {{"Q", rgb(0xff0000), 8, 4, 2, 4, ""}, {"K", rgb(0x00ff00), 4, 4, 0, 0, ""}};
  machine.moved = 30;
  machine.levels = {{60, "all"}, {120, "plain"}};
  machine.row = {"row 3", "m 1", "l 2"};
  const Scene scene = tile_machine_scene(machine, plain());
  const Rect &slow = box(scene, "slow.Q"), &held = box(scene, "held.Q");
  CHECK(held.h == doctest::Approx(slow.h / 4));
  CHECK(held.y == doctest::Approx(slow.y + slow.h / 4));
  CHECK(box(scene, "slow.K").h == doctest::Approx(slow.h / 2));
  CHECK_FALSE(find(scene, "held.K"));
  const auto x = [&](const char* level) { return std::get<Line>(find(scene, level)->shape).points[0].x; };
  const Rect& moved = box(scene, "moved");
  CHECK(x("level.0") - moved.x == doctest::Approx(2 * moved.w));
  CHECK(x("level.1") - moved.x == doctest::Approx(4 * moved.w));
  CHECK(find(scene, "row.2"));
  CHECK(std::get<Text>(find(scene, "state")->shape).text == "tile 2 of 4");
}

TEST_CASE("a ring: a block has one colour wherever it lies, and arrows lead from each worker to the next") {
  WorkerRing ring;
  for (int w = 0; w < 4; ++w) ring.workers.push_back({"Q", "K, V", (w + 3) % 4, w != 2, 0.25});
  const Scene scene = worker_ring_scene(ring, plain());
  const Theme& dark = theme("dark");
  for (int w = 0; w < 4; ++w) {
    const auto& pass = std::get<Line>(find(scene, "pass." + std::to_string(w))->shape);
    const Point from = box(scene, "worker." + std::to_string(w)).center(),
                to = box(scene, "worker." + std::to_string((w + 1) % 4)).center();
    CHECK(pass.points.front().x == doctest::Approx(from.x));
    CHECK(pass.points.back().y == doctest::Approx(to.y));
    const Color block = std::get<Box>(find(scene, "block." + std::to_string(w))->shape).fill;
    CHECK(hex(block) == hex(block_color((w + 3) % 4, 4, dark)));
  }
  CHECK(hex(block_color(0, 4, dark)) != hex(block_color(1, 4, dark)));
}

TEST_CASE("a band reaches from the least to the most, and dots stand without a line") {
  LineChart chart;
  chart.width = 300, chart.height = 200;
  chart.series = {{"mean", rgb(0x808080), {0, 10}, {2, 2}}, {"points", rgb(0x404040), {0, 5}, {1, 3}}};
  chart.series[0].least = {1, 1}, chart.series[0].most = {4, 4};
  chart.series[1].dots = true;
  chart.y_low = 0;
  const Scene scene = line_chart_scene(chart, plain());
  const Rect& plot = box(scene, "plot");
  double top = 1e9, bottom = 0;
  for (const Mark& mark : scene.marks)
    if (const auto* strip = std::get_if<Box>(&mark.shape);
        strip && mark.id.empty() && strip->fill.a > 0 && strip->fill.a < 255)
      top = std::min(top, strip->rect.y), bottom = std::max(bottom, strip->rect.bottom());
  CHECK(top == doctest::Approx(plot.y));                      // 4, the largest of all
  CHECK(bottom == doctest::Approx(plot.y + plot.h * 3 / 4));  // 1 of 0 … 4
  CHECK(find(scene, "line.mean"));
  CHECK_FALSE(find(scene, "line.points"));
  CHECK(find(scene, "point.points.1"));
}

}  // namespace headscope::machine_scenes_test
