#include <doctest/doctest.h>

#include <limits>

#include "tests/viz/sample.h"
#include "tests/viz/scene_boxes.h"
#include "viz/scene/arcs.h"
#include "viz/scene/head_grid.h"
#include "viz/scene/head_map.h"
#include "viz/scene/row_bars.h"
#include "viz/scene/several_heads.h"

namespace headscope::layout_test {

using namespace testing;

// Every line of text of every picture: inside the picture, on no other line, on no map but its own numbers. The longest
// texts, smallest and largest maps, labels of any script.

namespace {

const Badge badge{"previous token 0.99", rgb(0x6FD0B0)};
const std::vector<std::pair<std::string, std::string>> facts{{"Entropy (mean over queries)", "0.94 nats"},
                                                             {"Sink mass on token 0", "0.31"},
                                                             {"Mean distance", "6.2 tokens"},
                                                             {"Prefix matching (induction)", "0.87"}};

}  // namespace

TEST_CASE("layout of a head's map: 1 to 1000 tokens, every theme") {
  const PangoText measure;
  for (const Theme& theme : themes())
    for (const Index n : {1, 2, 3, 6, 14, 26, 40, 54, 66, 75, 80, 180, 512, 1000}) {
      if (n > 80 && theme.id != "dark") continue;
      for (const bool rich : {false, true}) {
        CAPTURE(theme.id);
        CAPTURE(n);
        CAPTURE(rich);
        HeadMapOptions options;
        if (rich) {
          options.badge = badge;
          options.facts = facts;
          options.query = n - 1;
          options.key = n / 2;
        }
        CHECK(layout_fault(head_map_scene(sample_trace(n, 1, 1, !rich), options, {theme, measure}), measure) == "");
      }
    }
}

TEST_CASE("layout of maps that are no square") {
  const PangoText measure;
  const Style style{theme("light"), measure};
  for (const auto& [n_query, n_key] :
       {std::pair<Index, Index>{1, 200}, {200, 1}, {5, 40}, {40, 5}, {1, 12}, {3, 1000}, {12, 30}}) {
    CAPTURE(n_query);
    CAPTURE(n_key);
    const Trace trace = rectangular_trace(n_query, n_key, 0, false);
    CHECK(layout_fault(head_map_scene(trace, {}, style), measure) == "");
    CHECK(layout_fault(several_heads_scene(trace, {{{0, 0, badge}}, {}, 0, 220}, style), measure) == "");
    CHECK(layout_fault(head_grid_scene(trace, {}, style), measure) == "");
    CHECK(layout_fault(arcs_scene(trace, {}, style), measure) == "");
    CHECK(layout_fault(row_bars_scene(trace, {}, style), measure) == "");
  }
  // The newest token of a cached run.
  HeadMapOptions options;
  options.query = 39;
  const Scene scene = head_map_scene(rectangular_trace(1, 40, 39, true), options, style);
  CHECK(layout_fault(scene, measure) == "");
  CHECK(find(scene, "label.query.39"));
}

TEST_CASE("layout of all heads") {
  const PangoText measure;
  for (const char* id : {"dark", "projector"})
    for (const auto& [layers, heads] : {std::pair{1, 1}, {2, 3}, {12, 12}, {3, 40}, {33, 2}})
      for (const Index n : {1, 6, 14, 70}) {
        if (n > 14 && layers * heads > 40) continue;
        CAPTURE(layers);
        CAPTURE(heads);
        CAPTURE(n);
        HeadGridOptions options;
        options.scaling.scale = Scale::log;
        for (int i = 0; i < std::min(layers, heads); ++i)
          options.classes.push_back(
              {i, (i * 5) % heads, i % 2 ? "previous token" : "duplicate_token_with_a_name", rgb(0xC08CF0)});
        options.selected = HeadId{0, 0};
        CHECK(layout_fault(head_grid_scene(sample_trace(n, layers, heads), options, {theme(id), measure}), measure) ==
              "");
      }
}

TEST_CASE("layout of several heads") {
  const PangoText measure;
  for (const char* id : {"print", "projector"})
    for (const int count : {1, 2, 3, 5, 8})
      for (const Index n : {1, 3, 6, 14, 30, 66, 180}) {
        CAPTURE(id);
        CAPTURE(count);
        CAPTURE(n);
        SeveralHeadsOptions options;
        for (int i = 0; i < count; ++i) options.heads.push_back({i / 4, i % 4, i % 2 ? badge : Badge{}});
        CHECK(layout_fault(several_heads_scene(sample_trace(n, 2, 4), options, {theme(id), measure}), measure) == "");
      }
}

TEST_CASE("bars in a room fill it and never ask for more, whatever the labels") {
  const PangoText measure;
  for (const char* id : {"dark", "projector"})
    for (const Index n : {1, 2, 6, 14, 30, 66, 99, 180, 512, 1000, 3000})
      for (const RowBarsOptions::Room room : {RowBarsOptions::Room{588, 140}, {908, 178}, {300, 150}, {588, 560}}) {
        CAPTURE(id);
        CAPTURE(n);
        CAPTURE(room.width);
        CAPTURE(room.height);
        RowBarsOptions row;
        row.query = n - 1;
        row.room = room;
        const Style style{theme(id), measure};
        const Scene scene = row_bars_scene(sample_trace(n, 1, 1), row, style);
        CHECK(layout_fault(scene, measure) == "");
        CHECK(scene.height == doctest::Approx(room.height).epsilon(0.01));
        CHECK(scene.width <= room.width + 1);
        if (n >= 30) CHECK(scene.width >= 0.97 * room.width);
        CHECK(find(scene, "axis.high"));
      }
}

TEST_CASE("layout of threads and of bars") {
  const PangoText measure;
  for (const char* id : {"dark", "projector"})
    for (const Index n : {1, 2, 6, 14, 30, 66, 80, 180, 512, 1000}) {
      CAPTURE(id);
      CAPTURE(n);
      const Trace trace = sample_trace(n, 1, 1);
      ArcsOptions arcs;
      arcs.badge = badge;
      arcs.facts = facts;
      arcs.query = n - 1;
      CHECK(layout_fault(arcs_scene(trace, arcs, {theme(id), measure}), measure) == "");
      for (const Index query : {Index{0}, n / 2, n - 1}) {
        RowBarsOptions row;
        row.query = query;
        row.badge = badge;
        CHECK(layout_fault(row_bars_scene(trace, row, {theme(id), measure}), measure) == "");
      }
    }
}

TEST_CASE("the measure of faults itself finds them") {
  const PangoText measure;
  Scene scene;
  scene.width = scene.height = 100;
  CHECK(layout_fault(scene, measure) == "nothing is drawn");
  const Font font{FontRole::ui, 12, 400};
  scene.add({Text{{10, 50}, "one", font, rgb(0), Anchor::start, 0}, "a", ""});
  CHECK(layout_fault(scene, measure) == "");
  scene.add({Text{{20, 54}, "two", font, rgb(0), Anchor::start, -52}, "b", ""});
  CHECK(layout_fault(scene, measure) == "'one' (a) stands on 'two' (b)");
  constexpr double nowhere = std::numeric_limits<double>::quiet_NaN();
  for (const Point at : {Point{95, 20}, Point{nowhere, 20}, Point{20, nowhere}}) {
    std::get<Text>(scene.marks[1].shape).at = at;
    CHECK(layout_fault(scene, measure).starts_with("'two' (b) leaves the picture"));
  }
  std::get<Text>(scene.marks[1].shape).at = {20, 90};
  CHECK(layout_fault(scene, measure) == "");
  scene.height = nowhere;
  CHECK(layout_fault(scene, measure).starts_with("the picture is "));
}

}  // namespace headscope::layout_test
