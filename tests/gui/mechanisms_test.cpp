// The Mechanisms workspace, used as a person uses it: found in the palette, a parameter changed, views walked, put into
// the model and taken back.

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>
#include <vector>

#include "app/state/mechanism_swaps.h"
#include "core/attention/hybrid_cost.h"
#include "core/base/file.h"
#include "core/metrics/next_token.h"
#include "tests/gui/explore.h"
#include "tests/gui/laboratory.h"
#include "tests/support/jacobi.h"
#include "tests/support/paths.h"
#include "viz/color/color_norm.h"

namespace headscope::mechanisms_test {

using testing::Explore;
using testing::Laboratory;

TEST_CASE("a mechanism is found, changed, walked through, put into the model and taken out again") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab;
  Explore& e = lab.e;
  MechanismController& controller = lab.mechanisms.controller();
  e.app.explorer().editor.select({1, 0});  // it writes something late in the text alone
  controller.source().first = 58;
  e.driver.frames(2);
  e.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
  e.driver.frames(2);
  e.driver.type("entmax");
  e.driver.frames(2);
  e.driver.key(ImGuiKey_Enter);
  REQUIRE(lab.settled());
  CHECK(e.app.requests().workspace == 1);
  CHECK(controller.mechanism().id == "entmax");
  CHECK(e.driver.shown("mechanism compare"));
  CHECK(controller.page()->comparison.output_error > 1e-3);

  // α to its left end: softmax.
  const Item alpha = e.driver.item("α");
  e.driver.drag(alpha.center(), {alpha.min.x + 2, alpha.center().y});
  REQUIRE(lab.settled());
  CHECK(controller.values().number("alpha") == 1);
  CHECK(controller.page()->comparison.output_error < 1e-5);

  e.driver.click("Steps");
  REQUIRE(lab.settled());
  CHECK(e.driver.shown("mechanism steps"));
  e.driver.click("Recurrent view");
  REQUIRE(lab.settled());
  e.driver.click("Linear, 1+elu");
  REQUIRE(lab.settled());
  CHECK(e.driver.shown("mechanism states"));
  // It opens on the whole text, and playing begins at its start.
  CHECK(controller.token == MechanismController::last_token);
  e.driver.click("Play");
  CHECK(controller.playing);
  CHECK(controller.token < 5);
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
  CHECK(controller.page()->input.m() == 3);
  e.driver.click("Random");
  REQUIRE(lab.settled());
  CHECK(controller.page()->input.n() == 24);
}

TEST_CASE(
    "the arithmetic of a cell stays on the page: pinned by a click, moved by arrows, kept while parameters change") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab;
  Explore& e = lab.e;
  MechanismController& controller = lab.mechanisms.controller();
  lab.open("softmax");
  e.driver.click("Steps");
  REQUIRE(lab.settled());
  CHECK(!controller.pinned);
  const Item dots = e.driver.item("mechanism steps/dots");
  const auto cells = static_cast<float>(controller.page()->input.m());
  const float cell = (dots.max.x - dots.min.x) / cells;
  e.driver.click_at(ImVec2{dots.min.x + 2.5f * cell, dots.min.y + 5.5f * cell});
  REQUIRE(controller.pinned);
  CHECK(*controller.pinned == MechanismCell{"dots", 5, 2});
  const HeadId head = controller.head();
  e.driver.key(ImGuiKey_DownArrow);
  e.driver.key(ImGuiKey_LeftArrow);
  CHECK(*controller.pinned == MechanismCell{"dots", 6, 1});
  CHECK(controller.head() == head);  // they moved the cell, not the head
  controller.set_value("temperature", 3);
  REQUIRE(lab.settled());
  CHECK(*controller.pinned == MechanismCell{"dots", 6, 1});
  e.driver.key(ImGuiKey_Escape);
  CHECK(!controller.pinned);
  // A page without such a step lets go of it.
  e.driver.click_at(ImVec2{dots.min.x + 2.5f * cell, dots.min.y + 5.5f * cell});
  REQUIRE(controller.pinned);
  lab.open("saturation");
  REQUIRE(lab.settled());
  e.driver.frames(2);
  CHECK(!controller.pinned);
}

TEST_CASE("a cell of a matrix by hand is dragged, and typed into; what follows is computed anew") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab;
  Explore& e = lab.e;
  MechanismController& controller = lab.mechanisms.controller();
  e.app.settings().pages["Mechanisms"] = "softmax";
  e.driver.frames(2);
  e.driver.click("Mechanisms");
  e.driver.click("By hand");
  REQUIRE(lab.settled());
  // q = [1, 0] on K = [1, 0], [0, 1], [1, 1] with V = 10, 20, 30: weights 0.40, 0.20, 0.40, output 20.
  CHECK(controller.page()->result.weights.at(0, 0) == doctest::Approx(0.4011).epsilon(1e-3));
  CHECK(controller.page()->result.output.at(0, 0) == doctest::Approx(20).epsilon(1e-3));
  const ImVec2 key = e.driver.item("K 1 0").center();
  e.driver.drag(key, {key.x, key.y - 60}, 6);  // 60 pixels are one: the second key is (1, 1) too
  REQUIRE(lab.settled());
  CHECK(controller.source().k.at(1, 0) == 1.0f);
  CHECK(controller.source().example.empty());
  for (Index j = 0; j < 3; ++j) CHECK(controller.page()->result.weights.at(0, j) == doctest::Approx(1.0 / 3));
  e.driver.double_click("V 2 0");
  e.driver.type("60");
  e.driver.key(ImGuiKey_Enter);
  REQUIRE(lab.settled());
  CHECK(controller.source().v.at(2, 0) == 60.0f);
  CHECK(controller.page()->result.output.at(0, 0) == doctest::Approx(30));
  // Taken back one by one, the drag as a whole, then done again.
  const auto after = [&](ImGuiKey pressed) {
    e.driver.key(pressed, ImGuiMod_Ctrl);
    REQUIRE(lab.settled());
  };
  after(ImGuiKey_Z);
  CHECK(controller.source().v.at(2, 0) == 30.0f);
  CHECK(controller.source().k.at(1, 0) == 1.0f);
  after(ImGuiKey_Z);
  CHECK(controller.source().k.at(1, 0) == 0.0f);
  CHECK(controller.source().example == "one-query");
  CHECK(controller.page()->result.output.at(0, 0) == doctest::Approx(20).epsilon(1e-3));
  after(ImGuiKey_Y);
  CHECK(controller.source().k.at(1, 0) == 1.0f);
  CHECK(controller.source().example.empty());
  after(ImGuiKey_Y);
  CHECK(controller.page()->result.output.at(0, 0) == doctest::Approx(30));
  // As text: the same numbers, and another size can be written.
  e.driver.click("Text");
  e.driver.frames(4);
  CHECK(e.driver.shown("##matrix K"));
}

TEST_CASE("a worked example is found in the palette, opened on its page, and undone") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab;
  Explore& e = lab.e;
  MechanismController& controller = lab.mechanisms.controller();
  lab.open("linear");
  for (const auto& [words, label] : {std::pair{"spectrogram", "1/0"}, {"amino acids", "F1"}}) {
    e.driver.key(ImGuiKey_K, ImGuiMod_Ctrl);
    e.driver.frames(2);
    e.driver.type(words);
    e.driver.frames(2);
    e.driver.key(ImGuiKey_Enter);
    REQUIRE(lab.settled());
    CHECK(controller.mechanism().id == "softmax");
    REQUIRE(!controller.page()->names.queries.empty());
    CHECK(controller.page()->names.queries.front() == label);
  }
  CHECK(controller.page()->input.v.dim(1) == 1);
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  REQUIRE(lab.settled());
  CHECK(controller.source().example == "sound");
}

TEST_CASE("matrices as text follow the example, and what was typed is one's own, scaled by 1 ÷ √d") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab;
  Explore& e = lab.e;
  MechanismController& controller = lab.mechanisms.controller();
  e.app.settings().pages["Mechanisms"] = "softmax";
  e.driver.frames(2);
  e.driver.click("Mechanisms");
  e.driver.click("By hand");
  REQUIRE(lab.settled());
  e.driver.click("Text");
  e.driver.frames(3);
  const auto choose = [&](std::string_view id) {
    controller.use_example(*std::ranges::find(worked_examples(), id, &WorkedExample::id));
    REQUIRE(lab.settled());
  };
  // Words of one's own in K alone: Q and V are what they were, to the last digit, whatever example came before.
  choose("two-by-two");
  choose("welcome");
  CHECK(controller.page()->input.scale == 1);
  const Tensor q = controller.source().q;
  Tensor v = controller.source().v.copy();
  v.ref(0, 0) = 0.1234567f;
  controller.set_numbers(q, controller.source().k, v);
  REQUIRE(lab.settled());
  e.driver.click("##matrix K");
  e.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
  e.driver.type("1 0 0 0.123456\n0 1 0 1\n1 0 0 1");
  REQUIRE(lab.settled());
  CHECK(controller.source().example.empty());
  CHECK(controller.page()->input.scale == 0.5f);
  CHECK(controller.source().k.at(0, 3) == 0.123456f);
  for (Index i = 0; i < 3; ++i)
    for (Index j = 0; j < 4; ++j) {
      CHECK(controller.source().q.at(i, j) == q.at(i, j));
      CHECK(controller.source().v.at(i, j) == v.at(i, j));
    }
  // Typed on: the other numbers are read from what stands there, and that is exact.
  e.driver.key(ImGuiKey_End, ImGuiMod_Ctrl);
  e.driver.type("5");
  REQUIRE(lab.settled());
  CHECK(controller.source().k.at(2, 3) == 15);
  CHECK(controller.source().k.at(0, 3) == 0.123456f);
}

TEST_CASE("the recurrent view holds outputs against a parallel form only where there is one") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab;
  lab.open("gated");
  lab.e.driver.click("Recurrent view");
  REQUIRE(lab.settled());
  CHECK(lab.e.driver.shown("mechanism states/recurrent"));
  CHECK(lab.e.driver.shown("mechanism states/parallel"));
  lab.open("rnn");
  CHECK(lab.e.driver.shown("mechanism states/recurrent"));
  CHECK_FALSE(lab.e.driver.shown("mechanism states/parallel"));
}

TEST_CASE("a hybrid: every k-th layer keeps softmax, the others run the mechanism; and back again") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab("tiny-gpt2");  // four layers: of 7 : 1 the last keeps softmax
  Explore& e = lab.e;
  lab.open("hybrid");
  e.driver.click("In the model");
  REQUIRE(lab.settled());
  const auto layers_with_softmax = [&] {
    std::vector<int> kept;
    const auto& trace = *e.results().run->trace;
    REQUIRE(trace.maps.size() == 16);
    for (int layer = 0; layer < 4; ++layer) {
      int softmax = 0;
      for (int head = 0; head < 4; ++head) softmax += trace.map({layer, head}).place().kind == MapKind::probability;
      REQUIRE((softmax == 0 || softmax == 4));  // a layer as a whole
      if (softmax == 4) kept.push_back(layer);
    }
    return kept;
  };
  CHECK(layers_with_softmax() == std::vector<int>{0, 1, 2, 3});
  const double before = mean_loss(e.results().losses->now);
  e.driver.click("7 : 1");
  REQUIRE(lab.settled());
  CHECK(layers_with_softmax() == std::vector<int>{3});
  const MechanismSwaps swaps = swaps_of(e.state().document.edits, e.results().model.model->config().dims);
  CHECK(swaps.size() == 12);
  for (const auto& [head, words] : swaps) {
    CHECK(head.layer < 3);
    CHECK(words.starts_with("hybrid"));
  }
  CHECK(mean_loss(e.results().losses->now) > before);  // it was trained with softmax
  lab.mechanisms.controller().set_value("every", 2);
  REQUIRE(lab.settled());
  e.driver.click("1 : 1");
  REQUIRE(lab.settled());
  CHECK(layers_with_softmax() == std::vector<int>{1, 3});
  e.driver.click("Back to softmax");
  REQUIRE(lab.settled());
  CHECK(e.state().document.edits.empty());
  CHECK(mean_loss(e.results().losses->now) == before);
}

TEST_CASE("what a whole model costs is told beside a model that has no queries and one whose mask is another") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const char* model : {"tiny-mamba", "tiny-bert"}) {
    CAPTURE(model);
    Laboratory lab(model);
    lab.mechanisms.controller().view = MechanismController::View::cost;
    lab.e.app.settings().pages["Mechanisms"] = "lightning";
    lab.e.driver.frames(2);
    lab.e.driver.click("Mechanisms");
    REQUIRE(lab.e.driver.until([&] { return lab.e.driver.shown("whole model cost"); }));
  }
}

TEST_CASE("what a whole model costs: of lightning and its hybrid alone, set from the open model at first, then moved") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab("tiny-gpt2");
  Explore& e = lab.e;
  lab.open("linear");
  CHECK_FALSE(e.driver.shown("Cost"));
  for (const char* id : {"lightning", "hybrid"}) {
    CAPTURE(id);
    lab.open(id);
    REQUIRE(e.driver.shown("Cost"));
  }
  e.driver.click("Cost");
  REQUIRE(lab.settled());
  CHECK(e.driver.shown("whole model cost"));
  // The curve's reading under the pointer is the cost of such a model at some length.
  const auto tells = [&](HybridShape shape, int every) {
    e.driver.hover("whole model cost");
    e.driver.frames(3);
    for (double n = 256; n <= 4194305; n *= std::sqrt(2.0)) {
      shape.tokens = n;
      const HybridCost cost = hybrid_model_cost(shape, every);
      if (e.driver.told(cost.name + "  " + short_number(cost.flops / (n * shape.batch), 4))) return true;
    }
    return false;
  };
  CHECK(tells({4, 128, 4}, 8));
  CHECK_FALSE(tells({4, 128, 8}, 8));
  CHECK_FALSE(tells({5, 128, 4}, 8));
  const Item layers = e.driver.item("Layers l");
  e.driver.drag(layers.center(), {layers.max.x - 60, layers.center().y});
  REQUIRE(lab.settled());
  CHECK_FALSE(tells({4, 128, 4}, 8));
  lab.mechanisms.controller().set_value("every", 2);
  REQUIRE(lab.settled());
  e.driver.hover("whole model cost");
  e.driver.frames(3);
  CHECK(e.driver.told("hybrid 1 : 1"));
  // Another mechanism has no such view, and shows its first; back here it is still chosen.
  lab.open("linear");
  CHECK(e.driver.shown("mechanism compare/reference"));
  lab.open("hybrid");
  CHECK(e.driver.shown("whole model cost"));
}

TEST_CASE("local below: the lower half keeps softmax over the last eight tokens, the upper half runs TransNormer") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab("tiny-gpt2");
  Explore& e = lab.e;
  lab.open("transnormer");
  e.driver.click("In the model");
  REQUIRE(lab.settled());
  e.driver.click("Local below");
  REQUIRE(lab.settled());
  const auto& trace = *e.results().run->trace;
  for (int layer = 0; layer < 4; ++layer)
    for (int head = 0; head < 4; ++head) {
      CAPTURE(layer);
      const AttentionMap& map = trace.map({layer, head});
      CHECK((map.place().kind == MapKind::probability) == (layer < 2));
      if (layer >= 2) continue;
      const Index last = map.n_query() - 1;
      REQUIRE(last > 20);
      double sum = 0;
      for (Index key = 0; key <= last; ++key) {
        const double weight = static_cast<double>(map.weight(last, key));
        if (last - key >= 8) CHECK(weight == 0);
        sum += weight;
      }
      CHECK(std::abs(sum - 1) < 1e-5);
    }
  const std::vector<Intervention> edits = e.state().document.edits;
  e.driver.click("Local below");  // again: no mask is laid twice
  REQUIRE(lab.settled());
  CHECK(std::ranges::is_permutation(e.state().document.edits, edits));
}

TEST_CASE("the rank of every head on the page is that of its weights by another decomposition") {
  HEADSCOPE_NEEDS_DISPLAY();
  Laboratory lab;
  Explore& e = lab.e;
  lab.open("low-rank");
  REQUIRE(e.driver.shown("mechanism ranks/matrix"));
  const auto folder = headscope::testing::scratch_dir("gui-ranks");
  e.app.settings().save_folder = folder;
  e.driver.key(ImGuiKey_E, ImGuiMod_Ctrl);
  e.driver.click("picture to export");
  e.driver.click("export mechanism ranks");
  e.driver.click("CSV");
  REQUIRE(e.driver.until([&] { return e.app.settled(); }));
  e.driver.click("Export");
  REQUIRE(e.driver.until([&] { return e.app.explorer().jobs.message().has_value(); }));
  const std::string said = e.app.explorer().jobs.message()->text;
  REQUIRE(said.starts_with("Written: "));
  // part, row, its label, column, its label, value
  std::istringstream lines(read_file(said.substr(std::string("Written: ").size())));
  std::map<HeadId, int> shown;
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, ',');) fields.push_back(cell);
    if (fields.size() > 5 && fields[0].find("matrix") != std::string::npos)
      shown[{std::stoi(fields[1]), std::stoi(fields[3])}] = std::stoi(fields[5]);
  }
  const Trace& trace = *e.results().run->trace;
  REQUIRE(shown.size() == trace.maps.size());
  for (const AttentionMap& map : trace.maps) {
    CAPTURE(map.layer());
    CAPTURE(map.head());
    const auto values = headscope::testing::jacobi(map.to_dense()).values;
    double all = 0, held = 0;
    for (const double value : values) all += value * value;
    int rank = 0;
    while (held < 0.9 * all)
      held += values[static_cast<std::size_t>(rank)] * values[static_cast<std::size_t>(rank)], ++rank;
    CHECK(shown.at({map.layer(), map.head()}) == rank);
  }
  CHECK(shown.at({1, 3}) == 1);  // all on the first token: every row alike
  CHECK(shown.at({1, 1}) > 45);  // the identity: each of the 58 directions counts alike
}

TEST_CASE("what stands in other workspaces is found in the catalogue, and a click leads there") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e;
  MechanismsWorkspace mechanisms(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run);
  AnalyseWorkspace analyse(e.app.explorer().jobs, e.app.explorer().run);
  GenerationController generation(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run,
                                  e.app.explorer().files);
  PositionsController positions_controller(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run);
  GenerateWorkspace generate(generation);
  PositionsWorkspace positions(positions_controller);
  for (Workspace* each : std::initializer_list<Workspace*>{&mechanisms, &analyse, &generate, &positions})
    e.app.add(*each);
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
                                                          {"RoPE", "RoPE"},
                                                          {"YaRN", "RoPE"},
                                                          {"ALiBi", "ALiBi"},
                                                          {"T5", "Relative (T5 bias)"},
                                                          {"StreamingLLM", "Masks"},
                                                          {"rollout", "Attention rollout and flow"},
                                                          {"Transformer2", "Singular values"},
                                                          {"teacher", "Teacher forcing against free running"}};
  for (const auto& [word, title] : expected) {
    CAPTURE(word);
    search(word);
    CHECK(e.driver.shown(title));
    CHECK_FALSE(e.driver.shown("Scaled dot-product"));  // what does not match is gone
  }
  e.driver.click("##search");
  e.driver.key(ImGuiKey_A, ImGuiMod_Ctrl);
  e.driver.key(ImGuiKey_Backspace);
  CHECK(e.driver.shown("Scaled dot-product"));
  search("longformer");
  e.driver.click("Masks");
  e.driver.frames(3);
  CHECK(e.app.requests().workspace == 2);
  CHECK(e.app.settings().pages["Analyse"] == "masks");
}

}  // namespace headscope::mechanisms_test
