// The pages that read a run, used as a person uses them.

#include <algorithm>
#include <cmath>

#include "tests/gui/analyse_page.h"

namespace headscope::reading_test {

using testing::AnalysePage;

TEST_CASE("the logit lens is found by its name; a click follows a token and draws its way") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage a("tiny-gpt2");
  a.open("logit lens");
  const auto last = static_cast<int>(a.results().run->trace->tokens.size()) - 1;
  // Scrolled to the end of the text, where the answer is.
  const std::string answer = "Stage 8 Position " + std::to_string(last);
  REQUIRE(a.driver.shown(answer));
  CHECK(a.driver.item(answer).center().x < 1300);
  CHECK(a.driver.shown("way/line.probability"));
  const std::string earlier = "Stage 2 Position " + std::to_string(last - 3);
  a.driver.click(earlier);
  REQUIRE(a.settle());
  CHECK(a.state().document.query == last - 3);
  REQUIRE(a.driver.shown("way/line.probability"));
  // At the stage that was clicked the token is the most probable one: rank 1 is the top of the chart.
  CHECK(a.driver.shown("way/line.1 ÷ rank"));
  a.driver.click("Entropy");
  REQUIRE(a.settle());
  CHECK_FALSE(a.app.explorer().jobs.message());
}

TEST_CASE("a click in the attribution selects the head it belongs to") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage a("tiny-llama");
  a.open("direct logit attribution");
  a.driver.click("Layer 2 Head 5");
  REQUIRE(a.settle());
  CHECK(a.state().document.selected == HeadId{2, 5});
  CHECK(a.driver.shown("Sum of all parts"));
  a.driver.click("Layer 1 part 8");  // the MLP is no head
  REQUIRE(a.settle());
  CHECK(a.state().document.selected == HeadId{2, 5});
  CHECK_FALSE(a.app.explorer().jobs.message());
}

TEST_CASE("the slider of other weights takes weight from a key and gives it back") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage a("tiny-gpt2");
  a.app.explorer().editor.select({0, 1});  // a head with room: half of this row's weight can lie elsewhere
  a.open("same output, other weights");
  const auto last = static_cast<Index>(a.results().run->trace->tokens.size()) - 1;
  const AttentionMap& map = a.results().run->trace->map(a.state().document.selected);
  Index key = 0;
  for (Index j = 1; j <= last; ++j)
    if (map.weight(last, j) > map.weight(last, key)) key = j;
  const std::string model = "Weights 0 Key " + std::to_string(key), other = "Weights 1 Key " + std::to_string(key);
  REQUIRE(a.driver.shown(other));
  CHECK(a.light(model) > a.light(other));  // at the end of the way
  const Item slider = a.driver.item("Share of the way");
  a.driver.drag({slider.max.x - 8, slider.center().y}, {slider.min.x - 40, slider.center().y});
  REQUIRE(a.settle());
  CHECK(std::abs(a.light(model) - a.light(other)) < 12);  // the model's own weights again
  CHECK_FALSE(a.app.explorer().jobs.message());
}

TEST_CASE("every reading instrument answers on both kinds of model") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const std::string example : {"tiny-gpt2", "induction-2l"}) {
    AnalysePage a(example.c_str());
    struct Page {
      const char *words, *id, *item;
    };
    for (const Page page : {Page{"logit lens", "lens", "Stage 0 Position 1"},
                            {"direct logit attribution", "attribution", "attribution/matrix"},
                            {"weighted attention", "weighted", "ATTENTION/map"},
                            {"ov and qk circuits", "circuits", "circuit/colorbar"},
                            {"attention rollout", "rollout", "flow/colorbar"},
                            {"gradients", "gradients", "cells/matrix"},
                            {"composition of heads", "composition", "composition/matrix"},
                            {"attention sinks", "sinks", "received/colorbar"},
                            {"massive activations", "massive", "massive/colorbar"},
                            {"few bits and outliers", "few-bits", "few bits/colorbar"},
                            {"same output, other", "alternatives", "Weights 0 Key 0"}}) {
      CAPTURE(example);
      CAPTURE(page.words);
      a.open(page.words, page.id, page.item);
      CHECK(a.state().document.model == a.results().model_folder);
    }
  }
}

TEST_CASE("what a token raises is listed in whole columns, as many as there is room for") {
  HEADSCOPE_NEEDS_DISPLAY();
  int narrow = 0;
  for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1600, 1000}}) {
    CAPTURE(width);
    AnalysePage a("tiny-gpt2", width, height);
    a.open("ov and qk circuits", "circuits", "circuit/colorbar");
    const Item list = a.driver.item("raised");
    int columns = 0;
    for (float left = list.min.x; a.driver.shown(fmt::format("raised 0 {}", columns)); ++columns) {
      const Item cell = a.driver.item(fmt::format("raised 0 {}", columns));
      CHECK(cell.min.x > left);
      CHECK(cell.max.x <= list.max.x);
      left = cell.max.x;
    }
    CHECK(columns >= 3);
    CHECK(columns > narrow);
    narrow = columns;
  }
}

TEST_CASE("weighted maps of a long text have labels that can be read, and the wheel shows a part of both") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage a("tiny-gpt2", 1280, 720);
  std::string text = "It was";
  for (int i = 0; i < 60; ++i) text += i % 2 ? " day" : " night";
  a.app.explorer().editor.set_text(text);
  REQUIRE(a.settle());
  a.open("weighted attention", "weighted", "ATTENTION/map");
  const auto labels = [&] {
    a.driver.frames(3);
    std::vector<Item> out;
    for (const Item& item : a.app.window().items().items())
      if (item.label.starts_with("ATTENTION/label.query.")) out.push_back(item);
    return out;
  };
  for (const Item& label : labels()) CHECK(label.max.y - label.min.y >= 13.5f);  // the line of a face of 11 pixels
  CHECK(labels().size() >= 3);
  CHECK_FALSE(a.driver.shown("Whole map"));
  a.driver.move_to(a.driver.item("ATTENTION/map").center());
  a.driver.wheel(9);
  REQUIRE(a.settle());
  CHECK(a.driver.shown("ATTENTION/minimap"));
  CHECK(a.driver.shown("WEIGHTED BY OUTPUT/minimap"));
  for (const Item& label : labels()) CHECK(label.max.y - label.min.y >= 13.5f);
  const Item map = a.driver.item("ATTENTION/map");
  a.driver.click_at({map.min.x + 3, map.min.y + 3});  // the first cell that is shown, not the first of the map
  CHECK(a.state().document.query.value_or(0) > 5);
  a.driver.click("Whole map");
  REQUIRE(a.settle());
  CHECK_FALSE(a.driver.shown("ATTENTION/minimap"));
}

}  // namespace headscope::reading_test
