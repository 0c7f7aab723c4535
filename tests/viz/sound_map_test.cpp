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
