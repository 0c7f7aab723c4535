// A model of speech in the window: the sound in place of the source, what is written of it, its stacks, its view.

#include <doctest/doctest.h>

#include <algorithm>

#include "app/render/spoken_words.h"
#include "app/state/exports.h"
#include "core/base/file.h"
#include "tests/gui/explore.h"
#include "tests/support/paths.h"
#include "viz/scene/sound_map.h"

namespace headscope::sound_panel_test {

using testing::Explore;
using testing::reference;

namespace {
AppOptions listener(int width, int height) {
  AppOptions out = Explore::options(width, height);
  out.model = reference("speech/whisper");
  out.sound = reference("speech/sound.wav");
  out.text = " hello";
  return out;
}
}  // namespace

TEST_CASE("a sound stands in place of the source; a click pins one of its stretches, the view Sound shows the row") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const auto& [width, height] : {std::pair{1280, 720}, std::pair{1600, 1000}}) {
    CAPTURE(width);
    Explore e(listener(width, height));
    REQUIRE(e.results().run->whole->encoder);
    CHECK_FALSE(e.driver.shown("##source"));
    CHECK(e.driver.shown("##prompt"));
    REQUIRE(e.driver.until([&] { return e.driver.shown("sound/stretch.7"); }));
    e.driver.click("Encoder");
    REQUIRE(e.settle());
    CHECK(e.results().run->trace == e.results().run->whole->encoder);
    CHECK_FALSE(e.driver.shown("token 0"));  // rows of a sound are no words
    REQUIRE(e.driver.until([&] { return e.driver.shown("sound/stretch.7"); }));
    e.driver.click("sound/stretch.7");
    REQUIRE(e.settle());
    CHECK(e.state().document.query == 7);
    e.driver.click("Cross");
    REQUIRE(e.settle());
    CHECK(e.driver.shown("query token 1"));
    e.driver.key(ImGuiKey_7);
    REQUIRE(e.driver.until([&] { return e.driver.shown("head/stretch.7"); }));
  }
}

TEST_CASE("the words of the target stand over the sound where they were said, and the pinned one is marked") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = listener(1280, 720);
  options.text = " hello he";
  Explore e(options);
  REQUIRE(e.driver.until([&] { return e.app.settled() && e.driver.shown("sound/word.1"); }));
  const auto spoken = spoken_words(*e.results().run->whole, e.results().model.target.get());
  REQUIRE(spoken);
  REQUIRE(spoken->words.size() == 2);
  CHECK(spoken->words[0].text == "hello");
  CHECK(spoken->words[1].text == "he");
  // The heads that the model's file names (tests/cli/speech_cli_test.cpp), and its median.
  CHECK(spoken->by ==
        "times by dynamic time warping over heads 0.1, 1.0, 1.2 of cross-attention (named by the model's "
        "file), a median of 7 keys");
  CHECK_FALSE(e.driver.shown("sound/word.2"));
  e.driver.hover("sound/word.1");
  REQUIRE(e.driver.until([&] { return e.driver.told("“he” "); }));
  CHECK(e.driver.told("by dynamic time warping over heads 0.1, 1.0, 1.2"));
  // The whole picture, in the view Sound, and the file that it is written to.
  e.driver.click("Cross");
  REQUIRE(e.settle());
  e.driver.key(ImGuiKey_7);
  REQUIRE(e.driver.until([&] { return e.app.settled() && e.driver.shown("head/word.1"); }));
  const std::filesystem::path file = testing::scratch_dir("gui-sound-words") / "sound.svg";
  export_view(e.app.explorer().jobs, e.state(), e.results(), {file, 96});
  REQUIRE(e.driver.until([&] { return std::filesystem::exists(file) && e.app.settled(); }));
  const std::string svg = read_file(file);
  CHECK(svg.find(">hello<") != std::string::npos);
  CHECK(svg.find("dynamic time warping") != std::string::npos);
  // Another text is timed anew.
  e.app.explorer().editor.set_text(" hello");
  REQUIRE(e.settle());
  REQUIRE(e.driver.until([&] { return e.app.settled() && !e.driver.shown("head/word.1"); }));
  CHECK(e.driver.shown("head/word.0"));
}

TEST_CASE("a sound that is opened is written down, and another takes its place as one step") {
  HEADSCOPE_NEEDS_DISPLAY();
  AppOptions options = listener(1280, 720);
  options.sound.reset();
  options.text = "";
  App app(options);
  ExploreWorkspace workspace;
  headscope::testing::Driver driver(app.window(), [&] { app.frame(); });
  app.add(workspace);
  REQUIRE(driver.until([&] { return app.settled() && app.explorer().results().model.model; }));
  driver.frames(4);
  CHECK(driver.shown("Open a sound…"));
  CHECK_FALSE(app.explorer().results().run);
  driver.click("Tones");
  REQUIRE(driver.until([&] { return app.settled() && app.explorer().results().run; }));
  CHECK(app.explorer().state().document.sound == "builtin:tones");
  REQUIRE(driver.until([&] { return !app.explorer().state().document.text.empty(); }));
  const std::string first = app.explorer().state().document.text;
  // Longer than is heard at once: heard from another second on when the hand lets go, with its own times.
  const Item slider = driver.item("Begins at");
  driver.drag(slider.center(), {slider.max.x - 10, slider.center().y});
  REQUIRE(driver.until([&] {
    return app.settled() && app.explorer().results().run &&
           app.explorer().results().run->whole->encoder->sound->from > 0;
  }));
  const auto heard = app.explorer().results().run->whole->encoder;
  CHECK(app.explorer().state().document.sound == "builtin:tones#t=2");
  CHECK(heard->sound->from == 2);
  CHECK(heard->sound->whole() == doctest::Approx(3.25));
  CHECK(heard->tokens[1].label == "2.02 s");
  CHECK_FALSE(app.explorer().state().document.text.empty());
  app.explorer().run.hear(reference("speech/sound.wav"));
  REQUIRE(driver.until([&] {
    return app.settled() && !app.explorer().state().document.text.empty() && app.explorer().results().run &&
           app.explorer().results().run->request.sound == reference("speech/sound.wav");
  }));
  CHECK(app.explorer().results().run->whole->encoder->sound->seconds == doctest::Approx(0.5));
}

}  // namespace headscope::sound_panel_test
