// A model of which some layers attend and others mix tokens by a state, in the window: what it says of a layer, and not
// of the model.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "app/state/mechanism_swaps.h"
#include "tests/gui/analyse_page.h"
#include "tests/gui/with_letters.h"

namespace headscope::hybrid_window_test {

using testing::AnalysePage;
using testing::Driver;
using testing::Explore;
using testing::with_letters;

namespace {
AppOptions opened(const std::string& family) {
  AppOptions out = AnalysePage::options("induction", 1280, 720);
  out.model = with_letters(family);
  out.text = "who took what";
  return out;
}

/// A number that is none, among what is written on the screen; "" = there is none.
std::string nan_on_screen(Driver& driver) {
  driver.frames(2);
  for (const std::string& text : driver.window().items().texts())
    for (std::size_t at = text.find("nan"); at != std::string::npos; at = text.find("nan", at + 1)) {
      const auto letter = [&](std::size_t i) {
        return i < text.size() && std::isalpha(static_cast<unsigned char>(text[i]));
      };
      if (!(at > 0 && letter(at - 1)) && !letter(at + 3)) return text;
    }
  return "";
}
bool says(Driver& driver, std::string_view words) {
  driver.frames(2);
  return std::ranges::any_of(driver.window().items().texts(),
                             [&](const std::string& text) { return text.find(words) != std::string::npos; });
}
int first_attending(const Results& results) {
  int layer = 0;
  while (!results.model.model->config().dims.attends(layer)) ++layer;
  return layer;
}
}  // namespace

TEST_CASE("hybrid: Explore tells of the head that is looked at whether it has a softmax and scores") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore s(opened("granitemoehybrid"));  // a state, attention, a state, attention
  for (int layer = 0; layer < 4; ++layer) {
    CAPTURE(layer);
    s.app.explorer().editor.select({layer, 1});
    REQUIRE(s.settle());
    const bool attends = s.results().model.model->config().dims.attends(layer);
    CHECK(attends == (layer % 2 == 1));
    CHECK((s.results().map({layer, 1})->place().kind == MapKind::probability) == attends);
    s.app.explorer().editor.view().edit_scope = EditScope::head;
    s.driver.frames(3);
    CHECK(s.driver.shown("Temperature") == attends);
  }
  // Of all heads it can be asked, whichever is looked at: those that attend follow.
  s.app.explorer().editor.select({0, 1});
  s.app.explorer().editor.view().edit_scope = EditScope::all;
  s.driver.frames(3);
  CHECK(s.driver.shown("Temperature"));
}

TEST_CASE("hybrid: the page State has the layers with a state alone") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage page(opened("granitemoehybrid"));
  page.open("state of a state space", "state", "state/matrix");
  const Item matrix = page.driver.item("state/matrix");
  page.driver.click_at({matrix.center().x, matrix.min.y + 0.75f * (matrix.max.y - matrix.min.y)});  // the second row
  REQUIRE(page.settle());
  page.driver.frames(3);
  CHECK(page.driver.told("layer 2"));
  page.choose("Lanes of a layer");
  CHECK(page.driver.shown("state/matrix"));
  // Its controls, and the numbers of a token.
  for (const char* name :
       {"step", "kept", "written", "Layer", "Step Δ, mean over lanes", "Numbers in a layer", "Lanes"})
    CHECK_MESSAGE(page.driver.shown(name), name);
  page.driver.click("kept");
  REQUIRE(page.settle());
  // From the second layer with a state to the first: the one between them attends.
  const Item layer = page.driver.item("Layer");
  page.driver.click_at({layer.min.x + 1, layer.center().y});
  REQUIRE(page.settle());
  page.driver.hover("‖B‖");
  CHECK(page.driver.until([&] { return page.driver.told("blocks.0.mixer.hook_b"); }, 200));
}

TEST_CASE("hybrid: the state of a gated delta rule is shown with its controls, and of a convolution no step") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage delta(opened("qwen3_5_text"));
  delta.open("state of a state space", "state", "state/matrix");
  for (const char* name : {"step", "kept", "written", "Layer", "Lanes", "‖k‖", "‖q‖"})
    CHECK_MESSAGE(delta.driver.shown(name), name);
  CHECK_FALSE(delta.driver.shown("‖B‖"));
  delta.driver.hover("Written");
  CHECK(delta.driver.until([&] { return delta.driver.told("hook_x, hook_beta"); }, 200));
  delta.app.explorer().editor.select({0, 1});
  delta.open("weighted attention");
  CHECK(says(delta.driver, "Layer 0 is the gated delta rule: it has no values"));
  AnalysePage convolution(opened("lfm2"));
  convolution.open("state of a state space");
  CHECK(says(convolution.driver, "No step says what its layers hold"));
  CHECK_FALSE(convolution.driver.shown("kept"));
}

TEST_CASE("hybrid: pages that nothing can be asked say so, and Circuits goes to a head that attends") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage page(opened("nemotron_h"));  // of which one layer attends
  const int attends = first_attending(page.results());
  REQUIRE(attends > 0);
  page.app.explorer().editor.select({0, 1});
  REQUIRE(page.settle());
  auto& shown = page.app.settings().pages["Analyse"];
  page.open("state of a state space");
  shown = "linear-layers";
  REQUIRE(page.settle());
  CHECK(says(page.driver, "Some of its layers are no softmax already"));
  CHECK_FALSE(page.driver.shown("Allowed"));
  shown = "composition";
  REQUIRE(page.settle());
  CHECK(says(page.driver, "One layer composes with nothing"));
  CHECK_FALSE(page.driver.shown("composition/matrix"));
  shown = "circuits";
  REQUIRE(page.settle());
  CHECK(says(page.driver, "Layer 0 has no circuits"));
  page.driver.click(fmt::format("Layer {}", attends));
  REQUIRE(page.settle());
  CHECK(page.state().document.selected == HeadId{attends, 1});
  CHECK(page.driver.shown("circuit/matrix"));
}

TEST_CASE("hybrid: Positions without a head, where none is needed, and a way to one where it is") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = opened("nemotron_h");
  options.height = 1100;  // what Q and K come from stands below all the methods
  Explore s(options);
  PositionsController controller(s.app.explorer().jobs, s.app.explorer().editor, s.app.explorer().run);
  PositionsWorkspace positions(controller);
  s.app.add(positions);
  s.app.explorer().editor.select({0, 1});
  s.driver.frames(2);
  s.driver.click("Positions");
  REQUIRE(s.settle());
  CHECK(says(s.driver, "Layer 0 has no positions"));
  for (const char* method : {"sinusoidal", "binary"}) {
    CAPTURE(method);
    s.driver.click(fmt::format("position {}", method));
    REQUIRE(s.settle());
    CHECK_FALSE(says(s.driver, "Layer 0 has no positions"));
    CHECK(s.driver.shown("Loss as it is"));
    CHECK(nan_on_screen(s.driver) == "");
  }
  s.driver.click("position learned");
  REQUIRE(s.settle());
  CHECK_FALSE(says(s.driver, "turns"));  // it does not
  s.driver.click("position rope");
  s.driver.click("Random");
  REQUIRE(s.settle());
  CHECK(s.driver.shown("query m"));
  controller.view.source = PositionsView::Source::head;
  s.driver.frames(2);
  CHECK(says(s.driver, "Layer 0 has no positions"));
  const int attends = first_attending(s.results());
  s.driver.click(fmt::format("Layer {}", attends));
  REQUIRE(s.settle());
  CHECK(s.state().document.selected == HeadId{attends, 1});
  CHECK(s.driver.shown("query m"));
}

TEST_CASE("hybrid: a mechanism stands in for attention where there is some, and nothing else can be clicked") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore s(opened("granitemoehybrid"));  // layers 1 and 3 attend
  MechanismsWorkspace mechanisms(s.app.explorer().jobs, s.app.explorer().editor, s.app.explorer().run);
  s.app.add(mechanisms);
  s.app.explorer().editor.select({1, 1});
  s.app.settings().pages["Mechanisms"] = "linear";
  s.driver.frames(2);
  s.driver.click("Mechanisms");
  REQUIRE(s.settle());
  s.driver.click("In the model");
  REQUIRE(s.settle());
  CHECK_FALSE(s.driver.shown("Layer 0"));
  CHECK_FALSE(s.driver.shown("swap 0.0"));
  const auto& dims = s.results().model.model->config().dims;
  const auto swapped = [&] { return swaps_of(s.state().document.edits, dims).size(); };
  s.driver.click("Layer 1");
  REQUIRE(s.settle());
  CHECK(swapped() == static_cast<std::size_t>(dims.heads));
  s.driver.click("All heads");
  REQUIRE(s.settle());
  CHECK(swapped() == 2 * static_cast<std::size_t>(dims.heads));
  s.driver.click("swap 3.0");
  REQUIRE(s.settle());
  CHECK(swapped() == 2 * static_cast<std::size_t>(dims.heads) - 1);
  CHECK(s.results().run->request.edits == s.state().document.edits);  // none was refused
  CHECK_FALSE(s.app.explorer().jobs.message());
  s.app.explorer().editor.select({0, 1});
  s.driver.click("Compare");
  s.driver.frames(3);
  CHECK(says(s.driver, "Layer 0 has no queries, keys and values"));
}

TEST_CASE("hybrid: Generate tells of the state as inspect does") {
  HEADSCOPE_NEEDS_DISPLAY();
  // 3 layers · 24 channels · 3 tokens · 4 bytes; 3 · (12 · 5 + 42 · 2) · 4.
  for (const auto& [family, bytes] : {std::pair{"lfm2", "864 B"}, std::pair{"qwen3_5_text", "1.73 kB"}}) {
    CAPTURE(std::string(family));
    Explore s(opened(family));
    GenerationController controller(s.app.explorer().jobs, s.app.explorer().editor, s.app.explorer().run,
                                    s.app.explorer().files);
    GenerateWorkspace generate(controller);
    s.app.add(generate);
    s.driver.frames(2);
    s.driver.click("Generate");
    s.driver.click("Cost");
    CHECK(s.driver.until([&] { return s.driver.shown("The state, of any length"); }, 600));
    CHECK(says(s.driver, bytes));
    CHECK(s.driver.until([&] { return says(s.driver, "the layers that attend need keys and values"); }, 200));
  }
}

TEST_CASE("hybrid: every page of Analyse shows something or says in a line what it lacks") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const char* family : {"granitemoehybrid", "nemotron_h", "qwen3_5_text", "lfm2"}) {
    AnalysePage page(opened(family));
    for (const HeadId head : {HeadId{0, 1}, HeadId{first_attending(page.results()), 1}}) {
      page.app.explorer().editor.select(head);
      REQUIRE(page.settle());
      for (const CatalogueGroup& group : page.analyse.pages())
        for (const CatalogueEntry& entry : group.entries) {
          CAPTURE(std::string(family));
          CAPTURE(entry.id);
          page.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
          page.driver.frames(2);
          page.driver.type(entry.title);
          page.driver.frames(2);
          page.driver.key(ImGuiKey_Enter);
          CHECK(page.settle());
          if (const auto& message = page.app.explorer().jobs.message()) {
            CAPTURE(message->text);
            CHECK(std::ranges::count(message->text, '\n') <= 1);
            CHECK(message->text.find("a trace that recorded it") == std::string::npos);
          }
          CHECK(nan_on_screen(page.driver) == "");
          page.app.explorer().jobs.dismiss();
        }
    }
  }
}

}  // namespace headscope::hybrid_window_test
