// The diagram of where a memory enters: boxes, arrows, the numbers on them.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "app/render/mechanism_steps_picture.h"
#include "app/render/memory_picture.h"
#include "tests/attention/mechanisms/input.h"
#include "tests/viz/sample.h"

namespace headscope::memory_picture_test {

namespace {

Style drawn() {
  static const PangoText measure;
  return {theme("dark"), measure};
}
const Rect& box_of(const Scene& scene, const std::string& id) {
  const Mark* mark = find(scene, "box." + id);
  REQUIRE_MESSAGE(mark, id);
  return std::get<Box>(mark->shape).rect;
}
const Line& way_of(const Scene& scene, const std::string& id) {
  const Mark* mark = find(scene, "arrow." + id);
  REQUIRE_MESSAGE(mark, id);
  return std::get<Line>(mark->shape);
}
std::string said(const Scene& scene, const std::string& id) {
  const Mark* mark = find(scene, id);
  return mark ? std::get<Text>(mark->shape).text : "";
}
MemoryPaths some(std::optional<TitansForm> form) {
  MemoryPaths paths;
  paths.form = form;
  paths.tokens = 21, paths.persistent = 2, paths.seen = 7, paths.recalled = form == TitansForm::context ? 7 : 0;
  paths.to_persistent = 0.125, paths.to_recalled = 0.25, paths.to_tokens = 0.625;
  paths.y = 1.5, paths.says = 0.75, paths.gate = 0.5625, paths.output = 0.875, paths.surprise = 3.25,
  paths.forgetting = 0.02;
  return paths;
}
Scene picture(std::optional<TitansForm> form, double width = 900) {
  BoxDiagram diagram = memory_diagram(some(form));
  diagram.width = width;
  return box_diagram_scene(diagram, drawn());
}

}  // namespace

TEST_CASE("four diagrams, each with its own arrows and the numbers of the run on them") {
  const Scene alone = picture(std::nullopt), mac = picture(TitansForm::context), mag = picture(TitansForm::gate),
              mal = picture(TitansForm::layer);
  CHECK(said(alone, "title") == "Where memory enters: alone");
  CHECK(said(mac, "title") == "Where memory enters: as context (MAC)");
  CHECK(said(mag, "title") == "Where memory enters: as gate (MAG)");
  CHECK(said(mal, "title") == "Where memory enters: as layer (MAL)");
  CHECK_FALSE(find(alone, "box.attention"));
  CHECK_FALSE(find(alone, "box.gate"));
  CHECK_FALSE(find(mal, "box.gate"));
  CHECK(said(alone, "arrow.output.number") == "‖M(q)‖ 0.75");
  CHECK(said(alone, "arrow.taught.number") == "surprise 3.25");
  CHECK(said(alone, "box.tokens.number") == "21");
  CHECK(said(mac, "box.tokens.number") == "2 + 21");
  CHECK(said(mac, "arrow.recalled.number") == "7 · 0.25");
  CHECK(said(mac, "arrow.seen.words") == "persistent 2 · 0.12");  // halves go to the even digit
  CHECK(said(mac, "arrow.seen.number") == "segment 7 · 0.62");
  CHECK(said(mal, "arrow.seen.number") == "window 7 · 0.62");
  CHECK(said(mac, "arrow.asked.number") == "‖M(q)‖ 0.75");
  CHECK(said(mac, "arrow.taught.words") == "y → y is taught");
  CHECK(said(mac, "arrow.gate.words") == "σ(N(M(y)))");
  CHECK(said(mag, "arrow.gate.words") == "σ(N(M(q)))");
  CHECK(said(mag, "arrow.gate.number") == "mean 0.56");
  CHECK(said(mag, "arrow.y.number") == "‖y‖ 1.5");
  CHECK(said(mag, "box.output.number") == "‖o‖ 0.875");
  CHECK(said(mag, "box.memory.number") == "α 0.02");
  CHECK(said(mal, "arrow.said.number") == "‖M(q)‖ 0.75");
  CHECK(said(mal, "box.output.number") == "‖o‖ 0.875");
  MemoryPaths keyed = some(TitansForm::context);
  keyed.taught_output = false, keyed.persistent = 0;
  const Scene other = box_diagram_scene(memory_diagram(keyed), drawn());
  CHECK(said(other, "arrow.taught.words") == "k → y is taught");
  CHECK(said(other, "arrow.gate.words") == "σ(N(M(q)))");
  CHECK(said(other, "arrow.seen.words") == "segment");
  CHECK(said(other, "arrow.seen.number") == "7 · 0.62");
  CHECK(said(other, "box.tokens.number") == "21");
  // The numbers of the picture as data.
  using Numbers = std::vector<std::pair<std::string, double>>;
  const auto numbers = [](const Scene& scene) {
    REQUIRE(scene.series.size() == 1);
    const SceneSeries& series = scene.series[0];
    REQUIRE(series.labels.size() == series.y.size());
    Numbers out;
    for (std::size_t i = 0; i < series.y.size(); ++i) out.emplace_back(series.labels[i], series.y[i]);
    return out;
  };
  CHECK(numbers(alone) == Numbers{{"surprise", 3.25}, {"‖M(q)‖", 0.75}});
  CHECK(numbers(mac) == Numbers{{"‖M(q)‖", 0.75},
                                {"persistent tokens", 2},
                                {"share of persistent tokens", 0.125},
                                {"segment tokens", 7},
                                {"share of segment tokens", 0.625},
                                {"recalled tokens", 7},
                                {"share of recalled tokens", 0.25},
                                {"surprise", 3.25},
                                {"‖y‖", 1.5},
                                {"gate", 0.5625},
                                {"‖o‖", 0.875}});
  CHECK(numbers(mag) == Numbers{{"surprise", 3.25},
                                {"persistent tokens", 2},
                                {"share of persistent tokens", 0.125},
                                {"window tokens", 7},
                                {"share of window tokens", 0.625},
                                {"‖y‖", 1.5},
                                {"gate", 0.5625},
                                {"‖o‖", 0.875}});
  CHECK(numbers(mal) == Numbers{{"surprise", 3.25},
                                {"persistent tokens", 2},
                                {"share of persistent tokens", 0.125},
                                {"window tokens", 7},
                                {"share of window tokens", 0.625},
                                {"‖M(q)‖", 0.75},
                                {"‖o‖", 0.875}});
  // Without persistent tokens, none of their numbers.
  CHECK(numbers(other).at(1) == Numbers::value_type{"segment tokens", 7});
}

TEST_CASE("arrows leave one box and end at another, and nothing leaves the picture") {
  for (const auto& form : {std::optional<TitansForm>(), {TitansForm::context}, {TitansForm::gate}, {TitansForm::layer}})
    for (const double width : {520.0, 900.0, 1400.0}) {
      const MemoryPaths paths = some(form);
      BoxDiagram diagram = memory_diagram(paths);
      diagram.width = width;
      const Scene scene = box_diagram_scene(diagram, drawn());
      for (const DiagramArrow& each : diagram.arrows) {
        CAPTURE(each.id);
        const Line& way = way_of(scene, each.id);
        const Rect from = box_of(scene, each.from), to = box_of(scene, each.to);
        const auto touches = [](const Rect& r, Point p) {
          return p.x >= r.x - 2.5 && p.x <= r.right() + 2.5 && p.y >= r.y - 2.5 && p.y <= r.bottom() + 2.5;
        };
        CHECK(touches(from, way.points.front()));
        CHECK(touches(to, way.points.back()));
        for (std::size_t i = 1; i < way.points.size(); ++i)  // level or upright
          CHECK((way.points[i].x == way.points[i - 1].x || way.points[i].y == way.points[i - 1].y));
        CHECK(!said(scene, "arrow." + each.id + ".words").empty());
        CHECK(said(scene, "arrow." + each.id + ".number").empty() == (each.id == "output" && form));
      }
      for (const Mark& mark : scene.marks) {
        if (const auto* box = std::get_if<Box>(&mark.shape)) {
          CHECK(box->rect.x >= 0);
          CHECK(box->rect.right() <= width);
          CHECK(box->rect.bottom() <= scene.height);
        }
      }
      for (std::size_t a = 0; a < diagram.boxes.size(); ++a)
        for (std::size_t b = a + 1; b < diagram.boxes.size(); ++b) {
          const Rect one = box_of(scene, diagram.boxes[a].id), two = box_of(scene, diagram.boxes[b].id);
          CHECK((one.right() <= two.x || two.right() <= one.x || one.bottom() <= two.y || two.bottom() <= one.y));
        }
    }
}

TEST_CASE("in the width that the smallest window leaves, nothing of a diagram is cut off") {
  for (const auto& form : {std::optional<TitansForm>(), {TitansForm::context}, {TitansForm::gate}, {TitansForm::layer}})
    for (const Mark& mark : picture(form, 556).marks)
      if (const auto* text = std::get_if<Text>(&mark.shape)) CHECK(text->text.find("…") == std::string::npos);
}

TEST_CASE("words and numbers of a diagram cover no other words and no box") {
  for (const auto& form : {std::optional<TitansForm>(), {TitansForm::context}, {TitansForm::gate}, {TitansForm::layer}})
    for (const double width : {556.0, 640.0, 900.0, 1300.0}) {
      const Scene scene = picture(form, width);
      const Style style = drawn();
      std::vector<std::pair<std::string, Rect>> texts;
      for (const Mark& mark : scene.marks) {
        const auto* text = std::get_if<Text>(&mark.shape);
        if (!text || !mark.id.starts_with("arrow.")) continue;
        const double wide = style.measure.width(text->text, text->font);
        const double left = text->anchor == Anchor::middle ? text->at.x - wide / 2
                            : text->anchor == Anchor::end  ? text->at.x - wide
                                                           : text->at.x;
        texts.push_back({mark.id, {left, text->at.y - 0.72 * text->font.size, wide, 0.72 * text->font.size}});
      }
      const auto meet = [](const Rect& a, const Rect& b) {
        return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
      };
      for (std::size_t a = 0; a < texts.size(); ++a) {
        CAPTURE(texts[a].first);
        CAPTURE(width);
        CHECK(texts[a].second.x >= 0);
        CHECK(texts[a].second.right() <= width);
        for (std::size_t b = a + 1; b < texts.size(); ++b) {
          CAPTURE(texts[b].first);
          CHECK_FALSE(meet(texts[a].second, texts[b].second));
        }
        for (const Mark& mark : scene.marks)
          if (const auto* box = std::get_if<Box>(&mark.shape)) CHECK_FALSE(meet(texts[a].second, box->rect));
      }
    }
}

TEST_CASE("the picture of all steps begins with the diagram of what the head gives") {
  const MechanismInput in = testing::random_head(8, 8, 4, 4, "causal");
  const auto title = [&](const std::string& spec) {
    const MechanismResult r = testing::run(spec, in, Detail::steps);
    const Scene scene = mechanism_scene(r, *find_mechanism("titans"), {}, 1000, drawn());
    CHECK(find(scene, "0.box.memory"));
    return said(scene, "0.title");
  };
  CHECK(title("titans form=gate") == "Where memory enters: alone");
  CHECK(title("titans form=gate output=joined") == "Where memory enters: as gate (MAG)");
}

}  // namespace headscope::memory_picture_test
