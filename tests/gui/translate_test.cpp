// An encoder-decoder in the window: its source and target, its three stacks, edits of each, and what it writes.

#include <doctest/doctest.h>

#include <fmt/format.h>

#include "core/metrics/alignment.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"

namespace headscope::translate_test {

using testing::Explore;

namespace {
AppOptions translator(int width, int height) {
  AppOptions out = Explore::options(width, height);
  out.model = testing::reference("encoder-decoders/t5");
  out.source = "the cat sat on the mat";
  out.text = "the dog";
  return out;
}
const Trace& whole(Explore& e) {
  return *e.results().run->whole;
}
}  // namespace

TEST_CASE("each stack of an encoder-decoder is looked at in its own tokens") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1600, 1000}}) {
    Explore e(translator(width, height));
    REQUIRE(whole(e).encoder);
    REQUIRE(whole(e).cross);
    CHECK(e.state().document.stack == Stack::decoder);
    CHECK(e.results().run->trace == e.results().run->whole);
    CHECK(e.driver.shown("Write target"));
    e.driver.click("Encoder");
    REQUIRE(e.settle());
    CHECK(e.results().run->trace == whole(e).encoder);
    CHECK(e.driver.shown(fmt::format("token {}", whole(e).encoder->tokens.size() - 1)));
    e.driver.click("Cross");
    REQUIRE(e.settle());
    CHECK(e.results().run->trace == whole(e).cross);
    CHECK(e.results().map(e.state().document.selected)->n_key() == static_cast<Index>(whole(e).encoder->tokens.size()));
    CHECK(e.results().map(e.state().document.selected)->n_query() == static_cast<Index>(whole(e).tokens.size()));
    e.driver.click("query token 1");
    CHECK(e.state().document.query == 1);
    // The next tokens are the decoder's, whichever stack is looked at.
    CHECK_FALSE(e.results().run->next.empty());
    e.driver.key(ImGuiKey_N, ImGuiMod_Alt);
    REQUIRE(e.settle());
    CHECK(e.state().document.stack == Stack::encoder);
    e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
    REQUIRE(e.settle());
    CHECK(e.state().document.stack == Stack::cross);
  }
}

TEST_CASE("an edit is of the stack that is looked at, and shows what it does to the answer") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(translator(1600, 1000));
  const auto ablate = [&](const char* button, Stack stack) {
    e.driver.click(button);
    REQUIRE(e.settle());
    e.driver.key(ImGuiKey_X);
    REQUIRE(e.settle());
    REQUIRE(e.driver.until([&] { return e.results().effect && e.results().effect->after == e.results().run->trace; }));
    CHECK(e.state().document.edits.back().target.stack == stack);
    CHECK(e.results().effect->change.kl > 0);
    // What was changed moved: the head of that stack in its map, or what follows from it.
    CHECK(e.results().effect->moved.size() == e.results().run->trace->maps.size());
  };
  ablate("Encoder", Stack::encoder);
  const Tensor encoded = whole(e).logits.copy();
  ablate("Cross", Stack::cross);
  ablate("Decoder", Stack::decoder);
  CHECK(e.state().document.edits.size() == 3);
  double most = 0;
  for (Index i = 0; i < encoded.size(); ++i)
    most = std::max(most, static_cast<double>(std::abs(encoded.data()[i] - whole(e).logits.data()[i])));
  CHECK(most > 0);
  e.driver.key(ImGuiKey_X);  // of the decoder's head again: it comes back
  REQUIRE(e.settle());
  CHECK(e.state().document.edits.size() == 2);
}

TEST_CASE("the target is written by the model, goes on in Generate, and another source makes another one") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1600, 1000);
  options.example = "tiny-translate";
  Explore e(options);
  const std::string right = e.state().document.text;  // the example's
  Explorer& all = e.app.explorer();
  GenerationController controller{all.jobs, all.editor, all.run, all.files};
  GenerateWorkspace generate{controller};
  e.app.add(generate);
  e.driver.frames(2);
  e.driver.click("Empty it");
  REQUIRE(e.settle());
  CHECK(whole(e).tokens.size() == 1);  // the token that begins every target
  e.driver.click("Write target");
  REQUIRE(e.driver.until([&] { return !e.state().document.text.empty(); }, 3000));
  REQUIRE(e.settle());
  CHECK(whole(e).text == e.state().document.text);
  CHECK(e.state().document.text == right);
  e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
  REQUIRE(e.settle());
  CHECK(e.state().document.text.empty());
  // Step by step it is the same text, and every step says where it looked in the source.
  e.driver.click("Generate");
  REQUIRE(e.driver.until([&] { return controller.next().has_value(); }, 3000));
  controller.settings().greedy = true;
  REQUIRE(e.driver.until([&] { return controller.next().has_value(); }, 3000));
  e.driver.click("Step");
  REQUIRE(e.driver.until([&] { return controller.branch().steps.size() == 1; }, 3000));
  const GenerationStep& step = *controller.branch().steps[0].step;
  REQUIRE(step.source_rows.defined());
  CHECK(step.source_rows.dim(1) == static_cast<Index>(whole(e).encoder->tokens.size()));
  CHECK(e.driver.shown("source 0"));
  const ModelInfo& model = whole(e).model;
  CHECK(step.source_rows.dim(0) == Index{model.dims.layers} * model.dims.heads);
  for (Index key = 0; key < step.source_rows.dim(1); ++key)
    CHECK(step.source_rows.at(0, key) == doctest::Approx(whole(e).cross->map({0, 0}).weight(0, key)).epsilon(1e-5));
  e.driver.click("Explore");
  e.app.explorer().editor.set_source("the old king saw these mice");
  REQUIRE(e.settle());
  CHECK(whole(e).encoder->text == "the old king saw these mice");
  e.driver.click("Write target");
  REQUIRE(e.driver.until([&] { return e.state().document.text != right && !e.state().document.text.empty(); }, 3000));
  CHECK(e.state().document.text != right);
}

TEST_CASE("pages that ask for logits say so of the other stacks, and sessions keep source and stack") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(translator(1600, 1000));
  Explorer& all = e.app.explorer();
  AnalyseWorkspace analyse{all.jobs, all.run};
  e.app.add(analyse);
  e.driver.frames(2);
  e.driver.click("Cross");
  REQUIRE(e.settle());
  Session session;
  session.document = e.state().document;
  const Session again = session_from_json(to_json(session), "test");
  CHECK(again.document == e.state().document);
  CHECK(again.document.source == "the cat sat on the mat");
  CHECK(again.document.stack == Stack::cross);
  e.driver.click("Analyse");
  for (const PageEntry& entry : page_registry()) {
    CAPTURE(entry.info.id);
    e.app.settings().pages["Analyse"] = entry.info.id;
    if (entry.info.id == "alignment") {  // reads what the target attends to in the source, and nothing else
      e.driver.frames(3);
      CHECK_FALSE(e.driver.shown("Decoder"));
      continue;
    }
    for (const char* stack : {"Decoder", "Cross", "Encoder"}) {
      e.driver.click(stack);
      int quiet = 0;
      REQUIRE(e.driver.until([&] { return (quiet = e.app.settled() ? quiet + 1 : 0) > 8; }, 3000));
      // A message is one sentence that says what was expected; no page fails otherwise.
      if (const auto& message = e.app.explorer().jobs.message()) {
        CHECK(message->text.find("expected") != std::string::npos);
        e.app.explorer().jobs.dismiss(message->tag);
      }
    }
  }
}

TEST_CASE("the page of alignment tells what stands for what, and how far that is from what is known") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1280, 720);
  options.session = testing::source_dir() / "assets/examples/translate.json";
  Explore e(options);
  Explorer& all = e.app.explorer();
  AnalyseWorkspace analyse{all.jobs, all.run};
  e.app.add(analyse);
  e.driver.frames(2);
  e.app.settings().pages["Analyse"] = "alignment";
  e.driver.click("Analyse");
  const auto settled = [&] {
    int quiet = 0;
    return e.driver.until([&] { return (quiet = e.app.settled() ? quiet + 1 : 0) > 8; }, 3000);
  };
  REQUIRE(settled());
  CHECK(e.driver.shown("1.2"));
  // Rows of the head that was found by training: what stands for the word that is about to be written.
  e.driver.click("##alignment");
  e.driver.type("0-0 2-1 1-2 4-3 6-4 5-5 8-6 10-7 9-8 7-9 3-10 3-11");
  REQUIRE(settled());
  const double wrong = score_alignment(strongest_pairs(whole(e).cross->map({0, 1})),
                                       parse_alignment("0-0 2-1 1-2 4-3 6-4 5-5 8-6 10-7 9-8 7-9 3-10 3-11",
                                                       static_cast<int>(whole(e).encoder->tokens.size()),
                                                       static_cast<int>(whole(e).tokens.size()), "test"))
                           .error_rate;
  CHECK(wrong > 0.2);
  e.driver.click("1.2");
  REQUIRE(settled());
  CHECK(e.state().document.selected == HeadId{1, 2});
  const double right = score_alignment(strongest_pairs(whole(e).cross->map({1, 2})),
                                       parse_alignment("0-0 2-1 1-2 4-3 6-4 5-5 8-6 10-7 9-8 7-9 3-10 3-11",
                                                       static_cast<int>(whole(e).encoder->tokens.size()),
                                                       static_cast<int>(whole(e).tokens.size()), "test"))
                           .error_rate;
  CHECK(right < 0.05);  // 13 pairs for 12 links: the last row is of the end
  CHECK(right > 0);
  e.driver.click("Open in Explore");
  e.driver.frames(4);
  CHECK(e.state().document.stack == Stack::cross);
}

TEST_CASE("patching is offered by stack: the source's tokens in the encoder, the target's elsewhere") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1600, 1000}}) {
    AppOptions options = Explore::options(width, height);
    options.example = "tiny-translate";
    Explore e(options);
    Explorer& all = e.app.explorer();
    AnalyseWorkspace analyse{all.jobs, all.run};
    e.app.add(analyse);
    e.app.settings().pages["Analyse"] = "patch";
    e.driver.frames(2);
    e.driver.click("Analyse");
    const auto settled = [&] {
      int quiet = 0;
      REQUIRE(e.driver.until([&] { return (quiet = e.app.settled() ? quiet + 1 : 0) > 8; }, 6000));
      if (const auto& message = all.jobs.message()) FAIL_CHECK(message->text);
    };
    settled();
    const std::size_t sources = whole(e).encoder->tokens.size();
    for (const char* stack : {"Decoder", "Cross", "Encoder"}) {
      CAPTURE(stack);
      e.driver.click(stack);
      settled();
      CHECK(e.driver.shown("##patching target"));
      e.driver.click("by position");
      settled();
      REQUIRE(e.driver.shown("patching/matrix"));
      // Of cross-attention only what is the target's own.
      CHECK(e.driver.shown("MLP") == (std::string(stack) != "Cross"));
      // As many columns as tokens: the last token's label stands over the map in the encoder alone.
      CHECK(e.driver.shown(fmt::format("patching/label.key.{}", sources - 1)) == (std::string(stack) == "Encoder"));
      e.driver.click("by head");
      settled();
      CHECK(e.driver.shown("patching/matrix"));
      CHECK(e.driver.shown("k") == (std::string(stack) != "Cross"));
    }
  }
}

TEST_CASE("beams of a translation: each one's source words are lit, and the best is what the model was made to write") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = Explore::options(1280, 720);
  options.example = "tiny-translate";
  Explore e(options);
  const std::string right = e.state().document.text;
  Explorer& all = e.app.explorer();
  all.editor.set_text("");
  REQUIRE(e.settle());
  GenerationController controller{all.jobs, all.editor, all.run, all.files};
  GenerateWorkspace generate{controller};
  e.app.add(generate);
  e.driver.frames(2);
  e.driver.click("Generate");
  e.driver.click("Beams");
  REQUIRE(
      e.driver.until([&] { return controller.beams() && e.driver.shown("beams/node.0") && e.app.settled(); }, 6000));
  const auto tree = controller.beams();
  REQUIRE_FALSE(tree->beams.empty());
  std::vector<std::int32_t> best = tree->tokens(tree->beams[0].node);
  REQUIRE(tree->beams[0].ended);
  best.pop_back();
  CHECK(e.results().model.tokenizer->decode(best) == right);
  e.driver.click("beam 1");
  REQUIRE(e.driver.until([&] { return controller.branch().steps.size() == best.size() + 1 && e.app.settled(); }, 3000));
  CHECK(e.driver.shown("source 0"));
  CHECK(controller.at_cursor()->step->source_rows.defined());
  e.driver.click("Back");
  CHECK(controller.branch().steps.empty());
}

}  // namespace headscope::translate_test
