// The Mechanisms workspace, used as a person uses it: found in the palette, a parameter changed, views walked, put into
// the model and taken back.

#include <algorithm>

#include "tests/gui/explore.h"

using namespace headscope;
using headscope::testing::Explore;

namespace {
struct Laboratory {
  Laboratory() { e.app.add(workspace_of(mechanisms)); }
  /// Until the page on screen is that of what is chosen, and nothing moves any more.
  bool settled() {
    int quiet = 0;
    return e.driver.until([&] { return (quiet = e.app.settled() && mechanisms.desk().current() ? quiet + 1 : 0) > 8; },
                          20'000);
  }
  Explore e;
  MechanismsWorkspace mechanisms{e.app.explorer()};
};
}  // namespace

TEST_CASE("a mechanism is found, changed, walked through, put into the model and taken out again") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab;
  Explore& e = lab.e;
  MechanismDesk& desk = lab.mechanisms.desk();
  e.driver.frames(2);
  e.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
  e.driver.frames(2);
  e.driver.type("entmax");
  e.driver.frames(2);
  e.driver.key(ImGuiKey_Enter);
  REQUIRE(lab.settled());
  CHECK(e.app.requests().workspace == 1);
  CHECK(desk.mechanism().id == "entmax");
  CHECK(e.driver.shown("mechanism compare"));
  CHECK(desk.page()->comparison.output_error > 1e-3);

  // α to its left end: softmax.
  const Item alpha = e.driver.item("α");
  e.driver.drag(alpha.center(), {alpha.min.x + 2, alpha.center().y});
  REQUIRE(lab.settled());
  CHECK(desk.values().number("alpha") == 1);
  CHECK(desk.page()->comparison.output_error < 1e-5);

  e.driver.click("Steps");
  REQUIRE(lab.settled());
  CHECK(e.driver.shown("mechanism steps"));
  e.driver.click("Recurrent view");
  REQUIRE(lab.settled());
  e.driver.click("Linear, 1+elu");
  REQUIRE(lab.settled());
  CHECK(e.driver.shown("mechanism states"));
  // It opens on the whole text, and playing begins at its start.
  CHECK(desk.token == MechanismDesk::last_token);
  e.driver.click("Play");
  CHECK(desk.playing);
  CHECK(desk.token < 5);
  e.driver.click("Pause");
  REQUIRE(lab.settled());
  e.driver.click("In the model");
  REQUIRE(lab.settled());
  CHECK(e.state().document.edits.empty());
  e.driver.click("swap 1.0");
  REQUIRE(lab.settled());
  REQUIRE(e.state().document.edits.size() == 1);
  CHECK(describe(e.state().document.edits[0]) == "1.0: mechanism linear map=elu normalise=sum");
  REQUIRE(e.results().effect);
  CHECK(e.results().effect->change.kl > 0);
  e.driver.click("All heads");
  REQUIRE(lab.settled());
  CHECK(describe(e.state().document.edits[0]) == "*: mechanism linear map=elu normalise=sum");
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  REQUIRE(lab.settled());
  CHECK(e.state().document.edits.empty());

  e.driver.click("By hand");
  REQUIRE(lab.settled());
  CHECK(desk.page()->input.m() == 3);
  e.driver.click("Random");
  REQUIRE(lab.settled());
  CHECK(desk.page()->input.n() == 24);
}

TEST_CASE("a cell of a matrix by hand is dragged, and typed into; what follows is computed anew") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab;
  Explore& e = lab.e;
  MechanismDesk& desk = lab.mechanisms.desk();
  e.app.settings().pages["Mechanisms"] = "softmax";
  e.driver.frames(2);
  e.driver.click("Mechanisms");
  e.driver.click("By hand");
  REQUIRE(lab.settled());
  // q = [1, 0] on K = [1, 0], [0, 1], [1, 1] with V = 10, 20, 30: weights 0.40, 0.20, 0.40, output 20.
  CHECK(desk.page()->result.weights.at(0, 0) == doctest::Approx(0.4011).epsilon(1e-3));
  CHECK(desk.page()->result.output.at(0, 0) == doctest::Approx(20).epsilon(1e-3));
  const ImVec2 key = e.driver.item("K 1 0").center();
  e.driver.drag(key, {key.x, key.y - 60}, 6);  // 60 pixels are one: the second key is (1, 1) too
  REQUIRE(lab.settled());
  CHECK(desk.source().k.at(1, 0) == 1.0f);
  CHECK(desk.source().example.empty());
  for (Index j = 0; j < 3; ++j) CHECK(desk.page()->result.weights.at(0, j) == doctest::Approx(1.0 / 3));
  e.driver.double_click("V 2 0");
  e.driver.type("60");
  e.driver.key(ImGuiKey_Enter);
  REQUIRE(lab.settled());
  CHECK(desk.source().v.at(2, 0) == 60.0f);
  CHECK(desk.page()->result.output.at(0, 0) == doctest::Approx(30));
  // Taken back one by one, the drag as a whole, then done again.
  const auto after = [&](ImGuiKey pressed) {
    e.driver.key(pressed, ImGuiMod_Ctrl);
    REQUIRE(lab.settled());
  };
  after(ImGuiKey_Z);
  CHECK(desk.source().v.at(2, 0) == 30.0f);
  CHECK(desk.source().k.at(1, 0) == 1.0f);
  after(ImGuiKey_Z);
  CHECK(desk.source().k.at(1, 0) == 0.0f);
  CHECK(desk.source().example == "one-query");
  CHECK(desk.page()->result.output.at(0, 0) == doctest::Approx(20).epsilon(1e-3));
  after(ImGuiKey_Y);
  CHECK(desk.source().k.at(1, 0) == 1.0f);
  CHECK(desk.source().example.empty());
  after(ImGuiKey_Y);
  CHECK(desk.page()->result.output.at(0, 0) == doctest::Approx(30));
  // As text: the same numbers, and another size can be written.
  e.driver.click("Text");
  e.driver.frames(4);
  CHECK(e.driver.shown("##matrix K"));
}

TEST_CASE("matrices as text follow the example, and what was typed is one's own, scaled by 1 ÷ √d") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab;
  Explore& e = lab.e;
  MechanismDesk& desk = lab.mechanisms.desk();
  e.app.settings().pages["Mechanisms"] = "softmax";
  e.driver.frames(2);
  e.driver.click("Mechanisms");
  e.driver.click("By hand");
  REQUIRE(lab.settled());
  e.driver.click("Text");
  e.driver.frames(3);
  const auto choose = [&](std::string_view id) {
    desk.use_example(*std::ranges::find(worked_examples(), id, &WorkedExample::id));
    REQUIRE(lab.settled());
  };
  // Words of one's own in K alone: Q and V are what they were, to the last digit, whatever example came before.
  choose("two-by-two");
  choose("welcome");
  CHECK(desk.page()->input.scale == 1);
  const Tensor q = desk.source().q;
  Tensor v = desk.source().v.copy();
  v.ref(0, 0) = 0.1234567f;
  desk.set_numbers(q, desk.source().k, v);
  REQUIRE(lab.settled());
  e.driver.click("##matrix K");
  e.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
  e.driver.type("1 0 0 0.123456\n0 1 0 1\n1 0 0 1");
  REQUIRE(lab.settled());
  CHECK(desk.source().example.empty());
  CHECK(desk.page()->input.scale == 0.5f);
  CHECK(desk.source().k.at(0, 3) == 0.123456f);
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 4; ++j) {
      CHECK(desk.source().q.at(i, j) == q.at(i, j));
      CHECK(desk.source().v.at(i, j) == v.at(i, j));
    }
  // Typed on: the other numbers are read from what stands there, and that is exact.
  e.driver.key(ImGuiKey_End, ImGuiMod_Ctrl);
  e.driver.type("5");
  REQUIRE(lab.settled());
  CHECK(desk.source().k.at(2, 3) == 15);
  CHECK(desk.source().k.at(0, 3) == 0.123456f);
}

TEST_CASE("what stands in other workspaces is found in the catalogue, and a click leads there") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  MechanismsWorkspace mechanisms(e.app.explorer());
  AnalyseWorkspace analyse(e.app.explorer());
  GenerationDesk generation(e.app.explorer());
  PositionsDesk positions_desk(e.app.explorer());
  GenerateWorkspace generate(generation);
  PositionsWorkspace positions(positions_desk);
  for (auto&& each : {workspace_of(mechanisms), workspace_of(analyse), workspace_of(generate), workspace_of(positions)})
    e.app.add(each);
  e.driver.frames(2);
  e.driver.click("Mechanisms");
  e.driver.frames(2);
  const auto search = [&](const char* word) {
    e.driver.click("##search");
    e.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
    e.driver.type(word);
    e.driver.frames(2);
  };
  const std::pair<const char*, const char*> expected[] = {{"Longformer", "Masks"},
                                                          {"BigBird", "Masks"},
                                                          {"Reformer", "Masks"},
                                                          {"MQA", "Shared keys and values"},
                                                          {"GQA", "Shared keys and values"},
                                                          {"MLA", "Shared keys and values"},
                                                          {"RoPE", ""},
                                                          {"YaRN", ""},
                                                          {"ALiBi", ""},
                                                          {"T5", ""},
                                                          {"StreamingLLM", ""},
                                                          {"rollout", "Attention rollout and flow"},
                                                          {"Transformer2", "Singular values"},
                                                          {"teacher", "Teacher forcing against free running"}};
  for (const auto& [word, title] : expected) {
    CAPTURE(word);
    search(word);
    if (*title)
      CHECK(e.driver.shown(title));
    else
      CHECK_FALSE(e.driver.shown("Softmax"));
  }
  search("longformer");
  e.driver.click("Masks");
  e.driver.frames(3);
  CHECK(e.app.requests().workspace == 2);
  CHECK(e.app.settings().pages["Analyse"] == "masks");
}
