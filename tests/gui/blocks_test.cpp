// The pages about blocks and whole models, used as a person uses them.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "core/base/file.h"
#include "core/edits/post_norm_edit.h"
#include "tests/gui/analyse_page.h"
#include "tests/gui/with_letters.h"
#include "tests/support/paths.h"

namespace headscope::blocks_test {

using testing::AnalysePage;
using testing::scratch_dir;

namespace {
bool says(AnalysePage& page, std::string_view words) {
  page.driver.frames(2);
  return std::ranges::any_of(page.app.window().items().texts(),
                             [&](const std::string& text) { return text.find(words) != std::string::npos; });
}
}  // namespace

TEST_CASE("the residual stream: by depth, a position pinned, norms moved and kept as an edit, random blocks") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage b("tiny-gpt2");
  b.open("residual stream");
  CHECK(b.driver.shown("stream/line.mean"));
  CHECK(b.driver.shown("added/line.attention"));
  CHECK(b.driver.shown("cosine/line.MLP"));
  b.choose("By position");
  b.choose("Stage 2 Position 3");
  CHECK(b.state().document.query == 3);
  b.choose("Norm before or behind");
  CHECK(b.driver.shown("blocks/column.0.1"));
  CHECK(b.driver.shown("placement/line.norm behind"));
  b.choose("Keep as an edit");
  REQUIRE(b.state().document.edits.size() == 1);
  CHECK(b.state().document.edits[0].action.as<PostNorm>());
  b.choose("Take the edit back");
  CHECK(b.state().document.edits.empty());
  b.choose("Random blocks");
  CHECK(b.driver.shown("stack weights/line.norm before"));
  CHECK(b.driver.shown("stack norm/line.norm behind"));
}

TEST_CASE(
    "Gemma 4: a layer's own input and the number behind a block are parts of the stream, widths are each layer's") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1600, 1000}}) {
    AppOptions options = AnalysePage::options("induction", width, height);
    options.model = testing::with_letters("gemma4_text");
    options.text = "who took what";
    AnalysePage b(options);
    b.open("residual stream", "residual", "added/line.the layer's own input");
    CHECK(b.driver.shown("added/line.scale of all"));
    CHECK(b.driver.shown("added/line.MLP"));
    CHECK(b.driver.shown("Left of the embedding"));
    b.open("logit lens", "lens", "Stage 3 Position 0");
    b.open("weight tying", "path", "path/strip.0");
    CHECK(says(b, "13 × 22–44"));
    CHECK(says(b, "13 × 4 × 6–10"));
    b.open("shared keys and values", "sharing", "Per token");
    CHECK(says(b, "LAYERS DIFFER IN THEIR KEYS"));
    CHECK_FALSE(b.driver.shown("Start"));
    CHECK_FALSE(b.app.explorer().jobs.message());
    b.driver.key(ImGuiKey_I, ImGuiMod_Ctrl);
    b.driver.frames(4);
    b.driver.click("What it is");
    CHECK(b.driver.until([&] { return says(b, "4 of 6–10 dimensions, on 2 heads of keys and values"); }));
    CHECK(says(b, "22–44 wide, gated"));
  }
}

TEST_CASE("norms: rows are typed, a wrong one says so and the last answer stays, the example comes back") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage b("tiny-llama");
  b.open("batchnorm");
  REQUIRE(b.driver.shown("norms/matrix.BatchNorm"));
  b.driver.click("##row b");
  b.driver.type(" 7");
  REQUIRE(b.settle());
  CHECK(b.driver.shown("norms/matrix.LayerNorm"));
  b.choose("“hello” and “machine learning”");
  b.choose("The model's norms");
  CHECK(b.driver.shown("strips/strip.0"));
  CHECK(b.driver.shown("Computed anew, differs by"));
  b.choose("last");
  CHECK(b.driver.shown("strips/strip.3"));  // RMSNorm: before, normalised, gain, after
  CHECK_FALSE(b.driver.shown("strips/strip.4"));
}

TEST_CASE("the feed-forward layer: neurons of a position, curves, parameters of a typed shape") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage b("tiny-llama");
  b.open("swiglu");
  REQUIRE(b.driver.shown("Whole MLP of this layer"));
  b.choose("active/bar.2");
  CHECK(b.state().document.query == 2);
  b.choose("Activation functions");
  CHECK(b.driver.shown("activations/line.SiLU (this model)"));
  CHECK(b.driver.shown("SwiGLU"));
  b.choose("Parameters");
  b.choose("Llama 2 7B");
  CHECK(b.driver.shown("Feed-forward ÷ attention"));
  b.driver.click("##shape");
  b.driver.type(" depth=3");
  b.driver.frames(3);
  CHECK_FALSE(b.app.explorer().jobs.message());
}

TEST_CASE("a page that is left keeps nothing of a run that is no longer on screen") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage a("tiny-gpt2");
  a.open("direct logit attribution");
  a.app.explorer().editor.set_text("Long ago, a weaver lived near the village.");  // a run that Explore has not drawn
  REQUIRE(a.settle());
  for (const char* page : {"loss per token", "weighted attention", "feed-forward"}) a.open(page);
  const std::weak_ptr<const TracedRun> old = a.results().run;
  a.open("masks");
  a.app.explorer().editor.set_text("The mayor of Zoziford kept a goat.");
  REQUIRE(a.settle());
  CHECK(old.expired());
  a.open("direct logit attribution");  // and answers again
}

TEST_CASE("a list of a page is exported as a table, every row of it") {
  HEADSCOPE_NEEDS_DISPLAY();
  AnalysePage a("tiny-gpt2");
  const std::filesystem::path folder = scratch_dir("gui-export-table");
  a.app.settings().save_folder = folder;
  a.open("loss per token");
  a.driver.key(ImGuiKey_E, ImGuiMod_Ctrl);
  REQUIRE(a.settle());
  a.driver.click("picture to export");
  REQUIRE(a.settle());
  a.driver.click("export losses table");
  a.driver.click("CSV");
  REQUIRE(a.settle());
  a.driver.click("Export");
  REQUIRE(a.driver.until([&] { return a.app.explorer().jobs.message().has_value(); }));
  const std::string said = a.app.explorer().jobs.message()->text;
  CAPTURE(said);
  REQUIRE(a.app.explorer().jobs.message()->level == Message::Level::info);
  const auto from = said.find(folder.string());
  const std::string csv = read_file(said.substr(from, said.find("  ", from) - from), std::size_t{1} << 24);
  CHECK(csv.starts_with("position,target,p,"));
  const auto tokens = static_cast<std::ptrdiff_t>(a.results().run->trace->tokens.size());
  CHECK(std::ranges::count(csv, '\n') >= tokens);  // a title, and a line for each prediction
}

TEST_CASE("the path of a token and the loss of each: every model, a bar pins its guess") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const std::string example : {"tiny-gpt2", "tiny-llama", "induction-2l"}) {
    CAPTURE(example);
    AnalysePage b(example.c_str(), 1280, 720);
    b.open("weight tying", "path", "path/strip.0");
    b.choose("One scale for all");
    b.open("perplexity", "loss", "losses/bar.4");
    b.choose("losses/place.4");  // its bar may be lower than a pointer can hit
    CHECK(b.state().document.query == 3);
    CHECK(b.driver.shown("Largest difference"));
    b.open("residual stream", "residual", "stream/line.mean");
    b.open("batchnorm", "norms", "norms/matrix.BatchNorm");
    b.open("swiglu", "ffn", "Activation functions");
  }
}

}  // namespace headscope::blocks_test
