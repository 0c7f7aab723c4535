// An encoder in the window: tokens are masked by hand, by key and at random, and the model says what stands there.

#include <doctest/doctest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/metrics/next_token.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"

namespace headscope::encoder_test {

using testing::Explore;

namespace {
AppOptions encoder(int width, int height) {
  AppOptions out = Explore::options(width, height);
  out.model = testing::reference("families/bert");
  out.text = "the cat sat on the mat";
  return out;
}
const Trace& trace(Explore& e) {
  return *e.results().run->trace;
}
}  // namespace

TEST_CASE("a right click masks a token, K the pinned one, and both show it again; undo knows each") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1600, 1000}}) {
    Explore e(encoder(width, height));
    CHECK(std::ranges::none_of(trace(e).tokens, &Token::masked));
    e.driver.click("token 2", 1);
    REQUIRE(e.settle());
    CHECK(trace(e).tokens[2].masked);
    CHECK(trace(e).tokens[2].label == "[MASK]");
    CHECK(answer_position(trace(e)) == 2);
    // What is listed is the row of the mask.
    CHECK(e.results().run->next.front().id == top_next(trace(e), 1, 2).front().id);
    e.driver.click("token 4");
    e.driver.key(ImGuiKey_K);
    REQUIRE(e.settle());
    CHECK(trace(e).tokens[4].masked);
    CHECK(e.state().document.masked.size() == 2);
    e.driver.key(ImGuiKey_K);
    REQUIRE(e.settle());
    CHECK_FALSE(trace(e).tokens[4].masked);
    e.driver.key(ImGuiKey_Z, ImGuiMod_Ctrl);
    REQUIRE(e.settle());
    CHECK(trace(e).tokens[4].masked);
    e.driver.click("Show all");
    REQUIRE(e.settle());
    CHECK(e.state().document.masked.empty());
    e.driver.click("Mask 15 %");
    REQUIRE(e.settle());
    CHECK(e.state().document.masked.size() == 1);  // of six
    const auto first = e.state().document.masked;
    e.driver.click("Mask 15 %");
    REQUIRE(e.settle());
    CHECK_FALSE(e.state().document.masked == first);  // drawn anew
  }
}

TEST_CASE("edits change what is told, another text is asked nothing, and Generate says why it has nothing to do") {
  HEADSCOPE_NEEDS_DISPLAY();
  Explore e(encoder(1600, 1000));
  Explorer& all = e.app.explorer();
  GenerationController controller{all.jobs, all.editor, all.run, all.files};
  GenerateWorkspace generate{controller};
  e.app.add(generate);
  e.driver.frames(2);
  e.driver.click("Generate");
  e.driver.frames(10);
  CHECK_FALSE(controller.model_continues());
  CHECK_FALSE(controller.prompt());
  CHECK_FALSE(e.driver.shown("Step"));
  e.driver.click("Explore");
  e.driver.frames(4);
  e.driver.click("token 3", 1);
  REQUIRE(e.settle());
  e.driver.key(ImGuiKey_X);  // without the selected head
  REQUIRE(e.settle());
  REQUIRE(e.driver.until([&] { return e.results().effect != nullptr; }));
  CHECK(e.results().effect->change.kl > 0);
  const Trace &before = *e.results().effect->before, &after = *e.results().effect->after;
  REQUIRE_FALSE(e.results().effect->change.tokens.empty());
  for (const NextTokenChange::Token& each : e.results().effect->change.tokens) {
    CHECK(each.before == doctest::Approx(std::exp(-next_token_loss(before.logits.select(0, 3), each.id))));
    CHECK(each.after == doctest::Approx(std::exp(-next_token_loss(after.logits.select(0, 3), each.id))));
  }
  // Every masked token has its line, before → after; a click pins it, and what is listed is of that one.
  e.driver.click("token 5", 1);
  REQUIRE(e.settle());
  REQUIRE(e.driver.until([&] { return e.results().effect && e.results().effect->masked_before.size() == 2; }));
  const std::vector<MaskedAnswer>& masked = e.results().run->masked;
  REQUIRE(masked.size() == 2);
  CHECK(masked[1].position == 5);
  CHECK(masked[1].original_probability != e.results().effect->masked_before[1].original_probability);
  const auto line_of = [&](const MaskedAnswer& each) {
    const auto name = [&](std::int32_t id) { return e.results().model.tokenizer->token(id).label; };
    return each.right() ? fmt::format("{} {}", each.position, name(each.best.id))
                        : fmt::format("{} {} ≠ {}", each.position, name(each.best.id), name(each.original));
  };
  e.driver.click(line_of(masked[1]));
  e.driver.frames(3);
  CHECK(e.state().document.query == 5);
  e.driver.click(line_of(masked[0]));
  e.driver.frames(3);
  CHECK(e.state().document.query == 3);
  e.app.explorer().editor.set_text("the dog ran");
  REQUIRE(e.settle());
  CHECK(e.state().document.masked.empty());
}

}  // namespace headscope::encoder_test
