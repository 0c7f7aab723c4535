#include "viz/export/glyphs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "viz/export/pango_text.h"

namespace headscope::glyphs_test {

namespace {
const Font sans{FontRole::ui, 12, 400};

double width(Glyphs& glyphs, std::string_view text) {
  double sum = 0;
  for (const Cluster& cluster : glyphs.line(text, sans)) sum += glyphs.advance(cluster.glyph);
  return sum;
}
}  // namespace

TEST_CASE("clusters cover the text once, in the order in which they are drawn") {
  Glyphs glyphs;
  for (const char* text : {"", "plain", "été e\u0301", "今天", "مرحبا بالعالم", "שלום (ab) 12", "नमस्ते",
                           "🙂👍🏽👨‍👩‍👧", "a\xff\x80z"}) {
    CAPTURE(text);
    std::vector<Cluster> line = glyphs.line(text, sans);
    std::ranges::sort(line, {}, &Cluster::begin);
    std::size_t at = 0;
    for (const Cluster& cluster : line) {
      CHECK(cluster.begin == at);
      CHECK(cluster.end > cluster.begin);
      at = cluster.end;
    }
    CHECK(at == std::string_view(text).size());
  }
  const std::vector<Cluster> mixed = glyphs.line("ab שלו", sans);  // read: a b space ש ל ו, drawn: a b space ו ל ש
  REQUIRE(mixed.size() == 6);
  CHECK(mixed[1].begin == 1);
  CHECK(mixed[3].begin == 7);
  CHECK(mixed[5].begin == 3);
  CHECK(mixed[3].right_to_left);
  CHECK_FALSE(mixed[2].right_to_left);
  // Where lines run from right to left, the Hebrew word stands left of what is read before it.
  const std::vector<Cluster> turned = glyphs.line("ab שלו", sans, true);
  CHECK(turned[0].begin == 7);
  CHECK(turned[5].begin == 1);
}

TEST_CASE("lines are as wide as Pango says, at any size") {
  Glyphs glyphs;
  const PangoText measure;
  for (const char* text : {"Effective tokens", "今天", "مرحبا بالعالم", "नमस्ते", "a\u0378b"}) {
    CAPTURE(text);
    CHECK(width(glyphs, text) == doctest::Approx(measure.width(text, {FontRole::ui, 64, 400}) / 64).epsilon(0.001));
  }
  const Glyphs::Metrics metrics = glyphs.metrics(sans);
  CHECK(metrics.ascent == doctest::Approx(measure.measure("x", {FontRole::ui, 64, 400}).ascent / 64).epsilon(0.001));
}

TEST_CASE("letters join: the same letter has other forms at the beginning, inside and at the end of a word") {
  Glyphs glyphs;
  if (!glyphs.has(0x628, sans)) {
    MESSAGE("skipped: no font with Arabic");
    return;
  }
  const std::vector<Cluster> word = glyphs.line("ببب", sans), alone = glyphs.line("ب", sans);
  REQUIRE(word.size() == 3);
  CHECK(word[0].glyph != word[1].glyph);
  CHECK(word[1].glyph != word[2].glyph);
  CHECK(word[2].glyph != alone[0].glyph);
  CHECK(width(glyphs, "ببب") < 3 * width(glyphs, "ب"));
  CHECK(glyphs.line("ببب", sans)[1].glyph == word[1].glyph);  // the same picture, the same number
}

TEST_CASE("a glyph is drawn at any size; what no font has is a box") {
  Glyphs glyphs;
  const int x = glyphs.line("x", sans)[0].glyph;
  const GlyphImage small = glyphs.image(x, 16), large = glyphs.image(x, 64);
  CHECK_FALSE(small.colored);
  const auto ink = [](const GlyphImage& image) {
    double sum = 0;
    for (std::size_t i = 3; i < image.rgba.size(); i += 4) sum += image.rgba[i] / 255.0;
    return sum;
  };
  CHECK(ink(large) == doctest::Approx(16 * ink(small)).epsilon(0.15));
  CHECK(large.top < 0);                  // above the baseline
  CHECK(large.top + large.height <= 2);  // and an x not below it
  CHECK(glyphs.image(glyphs.line(" ", sans)[0].glyph, 16).rgba.size() == 0);
  CHECK_FALSE(glyphs.has(0x378, sans));
  CHECK(ink(glyphs.image(glyphs.line("\u0378", sans)[0].glyph, 32)) > 60);
}

TEST_CASE("what needs no layout, and which way a paragraph runs") {
  for (const char* text : {"", "plain", "naïve Ωж", "今天天气東京", "한국어", "⏎ ␣ → ▾ …", "\xff\xd7"})
    CHECK(stands_alone(text));
  for (const char* text :
       {"e\u0301", "مرحبا", "שלום", "नम", "🙂", "ไทย", "1\u20E3", "今。", "\u200D", "☺", "\U00040001"})
    CHECK_FALSE(stands_alone(text));
  CHECK(runs_right_to_left("12 (שלום) ab"));
  CHECK(runs_right_to_left("\xd7\xff مرحبا"));
  CHECK_FALSE(runs_right_to_left("12 ab שלום"));
  CHECK_FALSE(runs_right_to_left(""));
}

}  // namespace headscope::glyphs_test
