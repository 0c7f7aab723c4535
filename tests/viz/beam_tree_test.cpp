// The tree of a beam search: where its nodes stand, what tells their fates apart, and that nothing is in the way.

#include "viz/scene/beam_tree.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/viz/sample.h"
#include "tests/viz/scene_boxes.h"
#include "viz/export/svg.h"

namespace headscope::beam_tree_test {

using headscope::testing::layout_fault;
using Fate = BeamTreeNode::Fate;

namespace {

/// Two beams over three steps: the text of the first step's second word ends first.
BeamTreeOptions small_tree() {
  return {.prompt = "␣was",
          .nodes = {{{}, 1, "␣a", 0.5, std::log(0.5), Fate::kept},
                    {{}, 1, "␣visualization", 0.4, std::log(0.4), Fate::kept},
                    {{}, 1, "⏎", 0.1, std::log(0.1), Fate::dropped},
                    {1, 2, "<|endoftext|>", 0.9, std::log(0.36), Fate::finished, 0, std::log(0.36) / 2},
                    {0, 2, "你好", 0.45, std::log(0.225), Fate::kept},
                    {0, 2, "i", 0.2, std::log(0.1), Fate::dropped},
                    {4, 3, ",", 1, std::log(0.225), Fate::finished, 1, std::log(0.225) / 3}}};
}

Scene drawn(const BeamTreeOptions& options, const char* name = "dark") {
  static const PangoText measure;
  return beam_tree_scene(options, {theme(name), measure});
}

const Box& box(const Scene& scene, std::size_t i) {
  const Mark* mark = find(scene, "node." + std::to_string(i));
  REQUIRE(mark);
  return std::get<Box>(mark->shape);
}

/// The line that ends at the node.
const Curve& line_to(const Scene& scene, std::size_t i) {
  const Rect r = box(scene, i).rect;
  for (const Mark& mark : scene.marks)
    if (const auto* curve = std::get_if<Curve>(&mark.shape))
      if (curve->to.x == r.x && std::abs(curve->to.y - r.center().y) < 1e-9) return *curve;
  FAIL("no line");
  std::abort();
}

}  // namespace

TEST_CASE(
    "a beam tree: columns by step, rows by sum, lines from what is continued, as heavy as the token is probable") {
  const BeamTreeOptions options = small_tree();
  const Scene scene = drawn(options);
  for (std::size_t i = 0; i < options.nodes.size(); ++i) {
    const BeamTreeNode& node = options.nodes[i];
    CHECK(std::get<Part>(find(scene, "node." + std::to_string(i))->meaning).index == i);
    const Curve& line = line_to(scene, i);
    CHECK(line.width == doctest::Approx(std::max(0.75, 7 * node.probability)));
    const Rect from = node.parent ? box(scene, *node.parent).rect : std::get<Box>(find(scene, "prompt")->shape).rect;
    CHECK(line.from.x == from.right());
    CHECK(line.from.y == doctest::Approx(from.center().y));
    for (std::size_t j = 0; j < i; ++j) {
      const Rect a = box(scene, j).rect, b = box(scene, i).rect;
      if (options.nodes[j].step == node.step) {
        CHECK(a.x == b.x);
        CHECK(a.bottom() <= b.y);  // the better one stands above
      } else {
        CHECK(a.right() < b.x);
      }
    }
  }
  REQUIRE(scene.series.size() == 3);
  CHECK(scene.series[1].y == std::vector<double>{std::log(0.36), std::log(0.225), std::log(0.1)});
  CHECK(scene.series[1].labels[1] == "你好");
}

TEST_CASE("kept, finished and dropped are told apart without colour, and a chosen way stands out") {
  BeamTreeOptions options = small_tree();
  const auto count = [](const Scene& scene, auto&& is) {
    return std::ranges::count_if(scene.marks, [&](const Mark& mark) { return is(mark); });
  };
  const auto is_line = [](const Mark& mark) { return std::holds_alternative<Line>(mark.shape); };
  const auto says = [&](const Scene& scene, const char* words) {
    return count(scene, [&](const Mark& mark) {
      const auto* text = std::get_if<Text>(&mark.shape);
      return text && text->text == words;
    });
  };
  const Scene scene = drawn(options);
  CHECK(box(scene, 0).stroke_width > 0);          // kept: a frame
  CHECK(box(scene, 2).stroke_width == 0);         // dropped: none, and a cross of two lines
  CHECK(count(scene, is_line) == 2 * 2 + 2 + 1);  // two dropped, the legend's cross, and its line
  CHECK(box(scene, 3).stroke_width > 0);
  const auto bars = count(scene, [](const Mark& mark) {
    const auto* one = std::get_if<Box>(&mark.shape);
    return one && one->rect.w == 3;
  });
  CHECK(bars == 3);  // behind both finished ones, and in the legend
  CHECK(says(scene, "0.90") == 1);
  for (const char* word : {"kept", "finished, with its place", "dropped"}) CHECK(says(scene, word) == 1);
  CHECK(find(scene, "node.3")->tooltip.find("finished text 1: score -0.5108") != std::string::npos);

  options.selected = 3;
  const Scene chosen = drawn(options);
  const Color accent = theme("dark").accent;
  for (std::size_t i = 0; i < options.nodes.size(); ++i) {
    const bool on_way = i == 3 || i == 1;
    CHECK((box(chosen, i).stroke == accent) == on_way);
    CHECK((line_to(chosen, i).color == accent) == on_way);
  }
  options.dropped = false;
  const Scene fewer = drawn(options);
  CHECK_FALSE(find(fewer, "node.2"));
  CHECK(find(fewer, "node.4"));
  CHECK(says(fewer, "dropped") == 0);
  CHECK(fewer.height < chosen.height);
  options.selected = 2;  // a dropped one that is looked at is shown
  CHECK(find(drawn(options), "node.2"));
}

TEST_CASE("nothing of a beam tree is cut off or stands on anything, in every theme, small, large and empty") {
  const PangoText measure;
  for (const char* name : {"dark", "light", "projector", "print"}) {
    CAPTURE(name);
    BeamTreeOptions options = small_tree();
    CHECK(layout_fault(drawn(options, name), measure) == "");
    options.titled = true;
    options.caption = "tiny-translate · 2 beams, at most 3 tokens, score Σ ln p / tokens^1";
    CHECK(layout_fault(drawn(options, name), measure) == "");
    CHECK(layout_fault(drawn({.prompt = "a", .nodes = {}}, name), measure) == "");
    BeamTreeOptions large{.prompt = "␣visualization", .nodes = {}};
    const auto labels = testing::sample_labels(24);
    for (int step = 1; step <= 20; ++step)
      for (std::size_t rank = 0; rank < 24; ++rank) {
        const bool kept = rank < 12;
        std::optional<std::size_t> parent;
        if (step > 1) parent = large.nodes.size() - rank - 24 + (rank * 7 + static_cast<std::size_t>(step)) % 12;
        large.nodes.push_back({parent, step, labels[(rank + static_cast<std::size_t>(step)) % labels.size()], 0.5,
                               -step - 0.1 * static_cast<double>(rank), kept ? Fate::kept : Fate::dropped});
      }
    CHECK(layout_fault(drawn(large, name), measure) == "");
  }
  CHECK(encode_svg(drawn(small_tree())).find("finished, with its place") != std::string::npos);
}

}  // namespace headscope::beam_tree_test
