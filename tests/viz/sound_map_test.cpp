// A row of attention over the spectrogram of the sound whose stretches its keys are.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "tests/viz/sample.h"
#include "viz/export/pango_text.h"
#include "viz/scene/sound_map.h"
#include "viz/scene/theme.h"

namespace headscope::sound_map_test {

using testing::heard_trace;

namespace {
Scene scene_of(const Trace& trace, const SoundMapOptions& options) {
  static const PangoText measure;
  return sound_map_scene(trace, options, {theme("dark"), measure});
}
}  // namespace

TEST_CASE("keys lie over their own time, the sound and a little of the silence is shown, and the rest told in words") {
  const Trace trace = heard_trace();
  CHECK(shown_keys(*trace.sound) == 13);  // 1.0 s and 0.3
  const Scene scene = scene_of(trace, {.head = {0, 0}, .query = 0, .plot = 650});
  const Pixels& pixels = std::get<Pixels>(find(scene, "spectrogram")->shape);
  CHECK(pixels.width == 26);
  CHECK(pixels.height == 8);
  const auto brightness = [&](int x, int y) { return (*pixels.rgba)[static_cast<std::size_t>((y * 26 + x) * 4)]; };
  CHECK(brightness(0, 7) > brightness(0, 0));    // it begins low, which is drawn at the bottom …
  CHECK(brightness(19, 0) > brightness(19, 7));  // … and ends high
  CHECK(brightness(24, 0) == brightness(24, 7));
  const auto stretch = [&](int key) {
    return std::get<Box>(find(scene, "stretch." + std::to_string(key))->shape).rect;
  };
  CHECK(stretch(0).x == doctest::Approx(pixels.rect.x));
  CHECK(stretch(4).x == doctest::Approx(pixels.rect.x + 4 * pixels.rect.w / 13));
  CHECK_FALSE(find(scene, "stretch.13"));
  CHECK(find(scene, "stretch.4")->tooltip.find("= 0.5") != std::string::npos);
  CHECK(meaning<TokenAt>(find(scene, "stretch.4"))->position == 4);
  // The curve: two points a key, the largest at the top.
  const Line& curve = std::get<Line>(find(scene, "weights")->shape);
  REQUIRE(curve.points.size() == 26);
  const double zero = curve.points[0].y, full = curve.points[8].y, half = curve.points[10].y;
  CHECK(zero - half == doctest::Approx((zero - full) / 2));
  CHECK(std::get<Text>(find(scene, "weights.most")->shape).text == "0.5");
  CHECK(scene.description.find("1.00 s of sound, 0.25 on the silence behind it") != std::string::npos);
  CHECK(scene.series.front().y[18] == doctest::Approx(0.25));
  CHECK(scene.series.front().x[18] == doctest::Approx(1.8));
}

TEST_CASE("words stand above the spectrogram where they were said, with their times, also where letters have no room") {
  const Trace trace = heard_trace();
  const auto spoken = std::make_shared<const SpokenWords>(
      SpokenWords{{{"oh", 1, 1, 0.1, 0.52}, {"wonderfully", 2, 3, 0.52, 0.55}, {"no.", 4, 5, 0.55, 1.0}}, "by hand"});
  SoundMapOptions options{.head = {0, 0}, .query = 0, .plot = 650};
  const Scene without = scene_of(trace, options);
  options.spoken = spoken;
  options.token = 3;
  const Scene scene = scene_of(trace, options);
  const Rect plot = std::get<Pixels>(find(scene, "spectrogram")->shape).rect;
  CHECK(plot.y > std::get<Pixels>(find(without, "spectrogram")->shape).rect.y);
  const auto box = [&](const char* id) { return std::get<Box>(find(scene, id)->shape).rect; };
  const auto x_of = [&](double seconds) { return plot.x + plot.w * seconds / 1.3; };  // what is shown of it
  CHECK(box("word.0").x == doctest::Approx(x_of(0.1)));
  CHECK(box("word.0").right() == doctest::Approx(x_of(0.52)));
  CHECK(box("word.2").bottom() == doctest::Approx(plot.y));
  CHECK(find(scene, "word.2")->tooltip == "“no.” 0.55 – 1.00 s\nby hand");
  CHECK(std::get<Line>(find(scene, "word.1.begin")->shape).points[0].x == doctest::Approx(x_of(0.52)));
  CHECK(std::get<Line>(find(scene, "word.1.begin")->shape).points[1].y > plot.bottom());
  // The second word's letters reach over the third's beginning: that one stands a row lower.
  CHECK(std::get<Text>(find(scene, "word.2.text")->shape).at.y >
        std::get<Text>(find(scene, "word.1.text")->shape).at.y);
  CHECK(find(scene, "word.1.marked"));  // token 3 is of it
  CHECK_FALSE(find(scene, "word.0.marked"));
  CHECK(scene.description.ends_with("; by hand"));
  const SceneSeries& times = scene.series.back();
  CHECK(times.labels == std::vector<std::string>{"oh", "wonderfully", "no."});
  CHECK(times.x[2] == 0.55);
  CHECK(times.y[2] == 1.0);
  options.room = SoundMapOptions::Room{300, 140};
  const Scene small = scene_of(trace, options);
  CHECK(small.height <= 141);
  CHECK(find(small, "word.1.text"));
  CHECK_FALSE(find(small, "word.2.text"));  // one row, in which the second takes the third's place
  CHECK(find(small, "word.2.begin"));
}

TEST_CASE("a sound that is heard from a later second on has the times of its file") {
  const Trace whole = heard_trace();
  Trace trace = whole;
  SoundFrames frames = *whole.sound;
  frames.from = 60.55;
  trace.sound = std::make_shared<const SoundFrames>(frames);
  SoundMapOptions options{.head = {0, 0}, .query = 0, .plot = 650};
  options.spoken = std::make_shared<const SpokenWords>(SpokenWords{{{"oh", 1, 1, 60.65, 61.07}}, "by hand"});
  const Scene scene = scene_of(trace, options);
  const Rect plot = std::get<Pixels>(find(scene, "spectrogram")->shape).rect;
  const auto x_of = [&](double second) { return plot.x + plot.w * (second - 60.55) / 1.3; };
  CHECK(std::get<Box>(find(scene, "word.0")->shape).rect.x == doctest::Approx(x_of(60.65)));
  const Text& first = std::get<Text>(find(scene, "time.0")->shape);
  CHECK(first.text == "60.6 s");
  CHECK(first.at.x == doctest::Approx(x_of(60.6)));
  CHECK(scene.description.find("60.55 s to 61.55 s of 61.5 s") != std::string::npos);
  CHECK(scene.series.front().x[18] == doctest::Approx(60.55 + 1.8));
}

TEST_CASE("a panel's picture keeps to its room, pitches stand on Slaney's scale, other traces are refused") {
  const Trace trace = heard_trace();
  const Scene small = scene_of(trace, {.head = {0, 0}, .query = 0, .room = SoundMapOptions::Room{300, 140}});
  CHECK(small.width <= 301);
  CHECK(small.height <= 141);
  CHECK(mel_of(1000) == doctest::Approx(15));
  CHECK(mel_of(6400) == doctest::Approx(42));
  CHECK(hertz_of(mel_of(3000)) == doctest::Approx(3000));
  CHECK(hertz_of(6) == doctest::Approx(400));
  Trace text = trace;
  text.sound = nullptr;
  CHECK_THROWS_AS(scene_of(text, {}), Error);
  CHECK_THROWS_AS(scene_of(trace, {.query = 1}), Error);
}

}  // namespace headscope::sound_map_test
