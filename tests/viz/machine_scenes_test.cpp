// Pictures of heads that share keys, of tiles in fast memory, of a ring of workers, of a band about a line.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/render/machine_pictures.h"
#include "app/render/mechanism_steps_picture.h"
#include "app/render/sharing_pictures.h"
#include "tests/attention/mechanisms/input.h"
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

TEST_CASE("a machine in words: bytes, m and l before and after, each number as it was counted") {
  TileWork work;
  work.done = 3, work.tiles = 9;
  work.blocks = {{"Q", ShapeChip::Role::query, 6, 4, {2, 4}, 64}, {"O", ShapeChip::Role::output, 6, 3, {2, 4}, 2400}};
  work.kept = {{"scores", 2, 5}};
  work.moved = 2464, work.moved_in_all = 5000, work.plain = 9000, work.one_tile = 4000;
  work.row = TileWork::Row{3, 0.5f, 1.25f, 1.5f, 1.9586f, 1.25f};
  const auto words = [&] {
    return tile_machine(
        work, *find_mechanism("flash"), [](Index row) { return "token " + std::to_string(row); }, theme("dark"));
  };
  const TileMachine machine = words();
  CHECK(machine.state == "tile 3 of 9");
  CHECK(machine.slow[0].crossed == "64 B read");
  CHECK(machine.slow[1].crossed == "2.4 kB written");
  CHECK(machine.kept == std::vector<std::string>{"scores 2×5"});
  CHECK(machine.moved == 2464);
  REQUIRE(machine.levels.size() == 3);
  CHECK(machine.levels[2].bytes == 4000);
  REQUIRE(machine.row.size() == 3);
  CHECK(machine.row[0] == "row token 3 before → after this tile");
  CHECK(machine.row[1] == "m  0.500 → 1.250");
  CHECK(machine.row[2] == "l  1.500 · e^(−0.750) + 1.250 = 1.959");
  // What is added is told as it was counted, not as what makes the sum come out.
  work.row->added = 9;
  CHECK(words().row[2] == "l  1.500 · e^(−0.750) + 9.000 = 1.959");
  work.row->max_before = -std::numeric_limits<float>::infinity();
  CHECK(words().row[1] == "m  −∞ → 1.250");
  CHECK(words().row[2] == "l  0 → 1.959");
  work.row->max = std::numeric_limits<float>::quiet_NaN();
  CHECK(words().row[1] == "m  −∞ → NaN");
  work.skipped = true;
  CHECK(words().row == std::vector<std::string>{"The mask hides all of this tile: it is skipped."});
}

TEST_CASE("a ring in words: who holds whose keys, what was sent, who has nothing to do") {
  RingRound round;
  round.done = 2, round.rounds = 3;
  round.workers = {{{0, 2}, {2, 3}, 1, false, 1}, {{2, 4}, {0, 2}, 0, true, 2}, {{4, 5}, {3, 3}, 2, true, 2}};
  round.sent = 1536;
  const auto words = [&] { return worker_ring(round, *find_mechanism("ring")); };
  const WorkerRing ring = words();
  CHECK(ring.state == "round 2 of 3");
  CHECK(ring.workers[0].queries == "Q 0–1");
  CHECK(ring.workers[0].keys == "K, V 2");
  CHECK(ring.workers[2].keys == "K, V none");
  CHECK(ring.workers[1].met == doctest::Approx(2.0 / 3));
  CHECK(
      ring.workers[0].tooltip ==
      "keeps queries 0–1, holds keys and values 2 of worker 1, of which the mask leaves it none; 1 of 3 blocks folded "
      "in");
  CHECK(ring.remark == "1.54 kB sent by each worker; 1 of 3 have nothing to do: the mask");
  round.done = 0;
  CHECK(words().remark.starts_with("Each holds its own keys"));
}

TEST_CASE("every mechanism has a picture: its steps, its curves under their titles, its way through a tree") {
  const Style style = plain();
  MechanismInput in = testing::random_head(12, 12, 8, 8, "causal");
  auto use = std::make_shared<VocabularyUse>();
  for (int id = 0; id < 12; ++id) use->frequency.push_back(1.0 / 12);
  use->hidden = Tensor::full({1, 8}, 0.5f);
  in.vocabulary = use;
  for (const Mechanism& m : mechanisms()) {
    CAPTURE(m.id);
    const MechanismResult r = m.run(in, m.usual(), Detail::steps);
    const Scene scene = mechanism_scene(r, m, {}, 1200, style);
    CHECK(scene.height >= 100);
    const auto written = [&](const std::string& text) {
      return std::ranges::any_of(scene.marks, [&](const Mark& mark) {
        const auto* t = std::get_if<Text>(&mark.shape);
        return t && t->text == text;
      });
    };
    for (const MechanismCurve& curve : r.curves) CHECK(written(curve.title));
    for (const Mark& mark : scene.marks)
      if (const auto* box = std::get_if<Box>(&mark.shape)) CHECK(box->rect.bottom() <= scene.height + 1);
  }
}

}  // namespace headscope::machine_scenes_test
