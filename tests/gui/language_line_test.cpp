// A text that leaves the language of a bundled model: said at which word, and the nearest text is one click away.

#include <doctest/doctest.h>

#include "app/workspaces/explore/language_line.h"
#include "tests/gui/explore.h"

namespace headscope::language_line_test {

namespace {
AppOptions with(const char* example) {
  AppOptions out = testing::Explore::options(1280, 720);
  out.example = example;
  return out;
}
constexpr const char* button = "Take the nearest";
}  // namespace

TEST_CASE("a word that the model's language has not: the nearest text is offered, taken with a click, and undone") {
  HEADSCOPE_NEEDS_DISPLAY();
  testing::Explore e(with("everyday-gpt2"));
  CHECK_FALSE(e.driver.shown(button));
  const std::string typed = "Anna saw a bicycle and she fed the bicycle.";
  e.app.explorer().editor.set_text(typed);
  e.app.explorer().editor.history().close_step();
  REQUIRE(e.driver.until([&] { return e.driver.shown(button); }));
  REQUIRE(e.settle());
  const std::string nearest = fit_to_language(Grammar::named("everyday", "test"), typed).nearest;
  e.driver.click(button);
  REQUIRE(e.settle());
  CHECK(e.state().document.text == nearest);
  CHECK(e.results().run->trace->text == nearest);
  CHECK(e.driver.until([&] { return !e.driver.shown(button); }));
  e.app.explorer().editor.undo();
  CHECK(e.state().document.text == typed);
  CHECK(e.driver.until([&] { return e.driver.shown(button); }));
}

TEST_CASE("each model has its own language, and one that learnt none says nothing") {
  HEADSCOPE_NEEDS_DISPLAY();
  const char* text = "Anna saw a dog and she fed the dog.";
  for (const char* example : {"everyday-gpt2", "tiny-gpt2", "induction-2l"}) {
    CAPTURE(example);
    testing::Explore e(with(example));
    e.app.explorer().editor.set_text(text);
    REQUIRE(e.settle());
    if (std::string(example) == "tiny-gpt2") {
      CHECK(e.driver.until([&] { return e.driver.shown(button); }));
      continue;
    }
    e.driver.frames(30);
    CHECK_FALSE(e.driver.shown(button));
  }
}

TEST_CASE("what is said of the word that leaves the language") {
  LanguageFit fit{.inside = false, .word = {11, 18}, .known = false, .nearest = ""};
  CHECK(departure_text(fit, "Anna saw a bicycle.") == "“bicycle” is no word of the language that this model learnt.");
  fit = {.inside = false, .word = {5, 8}, .known = true, .nearest = ""};
  CHECK(departure_text(fit, "Anna dog.") == "No text of the language that this model learnt goes on with “dog” here.");
  fit = {.inside = false, .word = {0, 3}, .known = true, .nearest = ""};
  CHECK(departure_text(fit, "Dog.") == "No text of the language that this model learnt begins with “Dog”.");
}

}  // namespace headscope::language_line_test
