// The Generate workspace, used as a person uses it: step, run, pause, scrub, fork, open in Explore.

#include <fmt/format.h>

#include "core/edits/ablate_edit.h"
#include "core/tensor/panels.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"

namespace headscope::generate_workspace_test {

using testing::Explore;

namespace {

struct Generate : Explore {
  GenerationController controller{app.explorer().jobs, app.explorer().editor, app.explorer().run, app.explorer().files};
  GenerateWorkspace generate{controller};
  explicit Generate(const char* example = "tiny-gpt2") : Explore(wanted(example)) {
    app.add(generate);
    driver.frames(2);
    driver.click("Generate");
    controller.settings().past_end = true;
    REQUIRE(driver.until([&] { return controller.next().has_value(); }, 3000));
  }
  static AppOptions wanted(const char* example) {
    AppOptions out = options(1600, 1000);
    out.example = example;
    out.text = "By the harbour, Ben the weaver was";
    return out;
  }
  std::size_t written() const { return controller.branch().steps.size(); }
  bool reaches(std::size_t steps) {
    return driver.until([&] { return written() >= steps && controller.next().has_value(); }, 3000);
  }
};

}  // namespace

TEST_CASE("tokens are written by step and by running, paused, and looked back at") {
  HEADSCOPE_NEEDS_DISPLAY();
  Generate g;
  CHECK(g.controller.cursor() == 0);
  const std::int32_t foretold = g.controller.next()->step->token;
  g.driver.click("Step");
  REQUIRE(g.reaches(1));
  CHECK(g.controller.branch().steps[0].step->token == foretold);  // what was shown is what came
  CHECK(g.written() == 1);

  g.driver.click("Full speed");
  g.driver.click("Run");
  REQUIRE(g.driver.until([&] { return g.written() > 8; }, 3000));
  if (g.controller.running()) {
    g.driver.click("Pause");
    CHECK_FALSE(g.controller.running());
  }
  REQUIRE(g.driver.until([&] { return g.app.settled(); }, 3000));
  const std::size_t there = g.written();
  g.driver.frames(8);
  CHECK(g.written() == there);

  // Scrub: the slider's left end is the first step; arrows walk; → at the end would write on.
  const Item transcript = g.driver.item("##tape");
  g.driver.drag(transcript.center(), {transcript.min.x + 2, transcript.center().y});
  CHECK(g.controller.cursor() == 0);
  g.driver.move_to({5, 500});
  g.driver.key(ImGuiKey_RightArrow);
  CHECK(g.controller.cursor() == 1);
  g.driver.key(ImGuiKey_LeftArrow);
  CHECK(g.controller.cursor() == 0);
  CHECK(g.written() == there);
  g.driver.click("Newest");
  CHECK(g.controller.cursor() + 1 >= there);
}

TEST_CASE("a step is forked with another token, both branches stay, and the text opens in Explore") {
  HEADSCOPE_NEEDS_DISPLAY();
  Generate g;
  for (std::size_t i = 1; i <= 4; ++i) {
    g.driver.click("Step");
    REQUIRE(g.reaches(i));
  }
  const auto before = g.controller.branch().steps;
  g.controller.show(1);
  REQUIRE(g.driver.until([&] { return g.app.settled(); }, 3000));
  const TokenDistribution d = token_distribution(before[1].step->logits, before[1].step->settings);
  const std::int32_t other = d.ids[before[1].step->token == d.ids[2] ? 3 : 2];
  g.driver.click("candidates/candidate." + std::to_string(other));
  REQUIRE(g.driver.until([&] { return g.controller.branches().size() == 2 && g.written() == 2; }, 3000));
  CHECK(g.controller.branch().steps[1].step->token == other);
  CHECK(g.controller.branch().steps[0].step == before[0].step);  // shared, not copied
  CHECK(g.controller.branch().from == 1);

  g.driver.click("branch 0");
  g.driver.frames(2);
  CHECK(g.controller.chosen() == 0);
  REQUIRE(g.written() == 4);
  CHECK(g.controller.branch().steps[1].step == before[1].step);
  g.driver.click("branch 1");

  const std::vector<std::int32_t> ids = g.controller.branch().transcript(g.controller.prompt()->trace->ids()).ids();
  g.driver.click("Open in Explore");
  CHECK(g.app.requests().workspace == 0);
  REQUIRE(g.driver.until([&] { return g.results().run && g.results().run->trace->ids() == ids; }, 3000));
  CHECK(g.results().run->trace->text.starts_with("By the harbour"));
}

TEST_CASE("the cache's bytes say that keys stand there once more, as products read them") {
  HEADSCOPE_NEEDS_DISPLAY();
  Generate g;
  g.driver.click("Step");
  REQUIRE(g.reaches(1));
  const ModelDims& dims = g.controller.model().model->config().dims;
  const auto tokens = static_cast<int>(g.controller.text()->tokens.size());
  g.driver.hover("KV cache");
  REQUIRE(g.driver.until([&] { return g.driver.told(fmt::format("in panels of {} tokens", panels::width())); }));
  CHECK(g.driver.told(fmt::format("{} · {} · (2 · {} · {}) · 4", dims.layers, tokens, dims.kv_heads, dims.d_head)));
  CHECK(g.driver.told(
      fmt::format("{} · {} · {} · {} · 4", dims.layers, panels::padded(tokens), dims.kv_heads, dims.d_head)));
  g.driver.hover("KV cache after it");
  CHECK(g.driver.until([&] { return g.driver.told(fmt::format("in panels of {} tokens", panels::width())); }));
}

TEST_CASE("edits of the document act on what is written") {
  HEADSCOPE_NEEDS_DISPLAY();
  Generate g("tiny-llama");
  const Tensor plain = g.controller.next()->step->logits;
  g.app.explorer().editor.set_edits({Intervention{{}, Ablate{}}});
  REQUIRE(g.driver.until(
      [&] { return g.controller.next() && g.controller.prompt()->request.edits.size() == 1 && g.app.settled(); },
      3000));
  CHECK(g.controller.next()->step->logits.at(0) != plain.at(0));
  // The last row of the explorer's run is what the controller reads: same edits, same text.
  const auto& logits = g.results().run->trace->logits;
  const Index last = logits.dim(0) - 1;
  for (const Index id : {Index{0}, Index{17}, Index{400}})
    CHECK(g.controller.next()->step->logits.at(id) == doctest::Approx(logits.at(last, id)).epsilon(1e-4));
}

TEST_CASE("each study measures and shows") {
  HEADSCOPE_NEEDS_DISPLAY();
  Generate g;
  g.driver.click("Cost");
  REQUIRE(g.driver.until([&] { return g.controller.costs() != nullptr; }, 20000));
  CHECK(g.controller.costs()->back().length == 256);
  g.driver.click("Streaming");
  REQUIRE(g.driver.until([&] { return g.controller.streaming() != nullptr; }, 20000));
  CHECK(g.controller.streaming()->losses.size() == 4);
  // On the model that learnt to rest on its first token, until somebody wants to see the open one.
  CHECK(g.controller.streaming()->model.model->config().name == "sink-2l");
  CHECK(g.controller.streaming()->settings == StreamingSettings{32, 4});
  CHECK(g.controller.streaming()->rests.front().share > 0.5);
  CHECK(g.controller.streaming()->rests_anew.front().share < 0.5);
  g.driver.frames(2);
  CHECK(g.driver.shown("Head 1.2"));
  g.driver.click("tiny-gpt2");
  g.driver.frames(1);
  CHECK(g.controller.streaming() == nullptr);  // no number of another model under its name
  CHECK_FALSE(g.driver.shown("Head 1.2"));
  REQUIRE(g.driver.until([&] { return g.controller.streaming() != nullptr; }, 20000));
  CHECK(g.controller.streaming()->model.model->config().name == "tiny-gpt2");
  CHECK(g.controller.streaming()->ids.size() >= 256);
  g.driver.click("Teacher forcing");
  REQUIRE(g.driver.until([&] { return g.controller.forcing() != nullptr; }, 20000));
  CHECK(g.controller.forcing()->target.size() + g.controller.forcing()->given ==
        g.controller.prompt()->trace->tokens.size());
  CHECK(g.driver.shown("forcing loss"));
}

TEST_CASE("generated branches come back with their session") {
  HEADSCOPE_NEEDS_DISPLAY();
  const auto file = headscope::testing::scratch_dir("gui-tape") / "session.json";
  std::vector<std::vector<std::int32_t>> written;
  const auto texts = [](const GenerationController& controller) {
    std::vector<std::vector<std::int32_t>> all;
    for (const GenerationBranch& branch : controller.branches())
      all.push_back(branch.transcript(controller.prompt()->trace->ids()).ids());
    return all;
  };
  {
    Generate g;
    for (std::size_t i = 1; i <= 3; ++i) {
      g.driver.click("Step");
      REQUIRE(g.reaches(i));
    }
    g.controller.fork(1, 42);
    REQUIRE(g.reaches(2));
    written = texts(g.controller);
    g.app.settings().save_folder = file.parent_path();
    g.driver.key(ImGuiKey_S, ImGuiMod_Ctrl);
    REQUIRE(g.driver.until([&] { return g.driver.shown("Save") && g.app.settled(); }));
    g.driver.click("Save");
    REQUIRE(g.driver.until([&] { return g.app.explorer().jobs.message().has_value() && g.app.settled(); }));
    CHECK(g.app.explorer().jobs.message()->text.starts_with("Saved"));
  }
  AppOptions again = Explore::options(1600, 1000);
  again.session = file;
  Explore e(again);
  GenerationController controller(e.app.explorer().jobs, e.app.explorer().editor, e.app.explorer().run,
                                  e.app.explorer().files);
  GenerateWorkspace generate(controller);
  e.app.add(generate);
  e.driver.frames(2);
  e.driver.click("Generate");
  REQUIRE(e.driver.until(
      [&] { return controller.branches().size() == 2 && !controller.replaying() && controller.next(); }, 3000));
  CHECK(texts(controller) == written);
  CHECK(controller.chosen() == 1);
  CHECK(e.driver.shown("branch 1"));
}

TEST_CASE("beams are drawn as a tree; a click looks at a text, Esc goes back, the number of beams searches anew") {
  HEADSCOPE_NEEDS_DISPLAY();
  Generate g;
  g.controller.settings().past_end = false;
  g.driver.click("Beams");
  REQUIRE(
      g.driver.until([&] { return g.controller.beams() && g.driver.shown("beams/node.0") && g.app.settled(); }, 6000));
  const auto tree = g.controller.beams();
  CHECK(g.controller.searched()->width == 4);
  REQUIRE(tree->beams.size() == 4);
  CHECK(g.driver.shown("beam 4"));
  CHECK_FALSE(g.driver.shown("generated text"));
  g.driver.click("beam 2");
  REQUIRE(g.reaches(tree->tokens(tree->beams[1].node).size()));
  CHECK(g.controller.followed() == tree->beams[1].node);
  CHECK(g.driver.shown("tape 8"));  // its text stands below the tree
  g.driver.key(ImGuiKey_Escape);
  g.driver.frames(2);
  CHECK_FALSE(g.controller.followed());
  CHECK(g.controller.branch().steps.empty());

  // A node of the tree: the text up to there; then its heads and choices on the tape.
  g.driver.click("beams/node.1");
  REQUIRE(g.driver.until([&] { return g.controller.followed() == 1 && g.written() == 1; }, 3000));
  CHECK(g.controller.branch().steps[0].step->token == tree->nodes[1].token);
  g.driver.click("Heads and choices on the tape");
  REQUIRE(g.driver.until([&] { return g.driver.shown("head rows") && g.app.settled(); }, 3000));
  CHECK(g.written() == 1);

  g.driver.click("Beams");
  g.controller.beam_settings().width = 2;
  REQUIRE(g.driver.until([&] { return g.controller.searched()->width == 2 && g.app.settled(); }, 6000));
  CHECK(g.controller.beams()->beams.size() == 2);
  REQUIRE(g.driver.until([&] { return !g.driver.shown("beam 3"); }, 3000));
}

}  // namespace headscope::generate_workspace_test
