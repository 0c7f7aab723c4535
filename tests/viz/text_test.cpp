#include <doctest/doctest.h>

#include "viz/export/pango_text.h"
#include "viz/scene/text.h"

namespace headscope::text_test {

TEST_CASE("printable text shows what is invisible and survives bytes that are no UTF-8") {
  CHECK(printable("plain ␣text ⏎") == "plain ␣text ⏎");
  CHECK(printable("a\nb\tc") == "a␊b␉c");
  CHECK(printable(std::string_view("\0\x1F\x7F", 3)) == "␀␟␡");
  CHECK(printable("\xE2\x82") == "\uFFFD\uFFFD");  // a euro sign cut short
  CHECK(printable("\xC0\xAF\xFF") == "\uFFFD\uFFFD\uFFFD");
  CHECK(printable("\xED\xA0\x80") == "\uFFFD\uFFFD\uFFFD");  // a surrogate is no character
  CHECK(printable("a\u202Eb") == "a<U+202E>b");              // would turn the rest of the line round
  CHECK(printable("a\u200Bb") == "a<U+200B>b");
  CHECK(printable("\u2028") == "<U+2028>");
  CHECK(printable("\uFFFE") == "<U+FFFE>");                        // XML forbids it
  CHECK(printable("👩‍👩‍👧") == "👩‍👩‍👧");  // joiners hold a family together
  CHECK(printable("ééé", 5) == "éé");                              // whole characters only
}

TEST_CASE("text is cut to a width at a character and says so") {
  const PangoText measure;
  const Font font{FontRole::mono, 12, 400};
  const double em = measure.width("m", font);
  CHECK(elided("short", font, 100 * em, measure) == "short");
  CHECK(elided("abcdefgh", font, 5.01 * em, measure) == "abcd…");
  CHECK(elided("abcdefgh", font, 0, measure) == "…");
  for (const double width : {30.0, 50.0, 80.0}) {
    const std::string cut = elided(
        "你好世界你好世界 مرحبا "
        "👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧👩‍👩‍👧",
        font, width, measure);
    CHECK(measure.width(cut, font) <= width);
    CHECK(printable(cut) == cut);
  }
}

TEST_CASE("lines break at spaces and never pass the width") {
  const PangoText measure;
  const Font font{FontRole::mono, 12, 400};
  const double em = measure.width("m", font);
  CHECK(wrapped("aa bb cc", font, 5.01 * em, measure) == std::vector<std::string>{"aa bb", "cc"});
  CHECK(wrapped("aaaaaaaa b", font, 5.01 * em, measure) == std::vector<std::string>{"aaaa…", "b"});
  CHECK(wrapped("", font, 10, measure).empty());
}

TEST_CASE("measures do not depend on the size of what else was drawn: width grows exactly with the type") {
  const PangoText measure;
  for (const char* text : {"When Mary", "<|endoftext|>", "0.87", "你好"}) {
    const double small = measure.width(text, {FontRole::mono, 10, 400}),
                 large = measure.width(text, {FontRole::mono, 40, 400});
    CHECK(large == doctest::Approx(4 * small).epsilon(0.005));
  }
  // Tabular digits: columns of numbers stand in line in both faces.
  for (const FontRole role : {FontRole::ui, FontRole::mono})
    CHECK(measure.width("1111", {role, 12, 400}) == doctest::Approx(measure.width("8888", {role, 12, 400})));
  // No ligatures: each sign of a token keeps its own width.
  CHECK(measure.width("->", {FontRole::mono, 12, 400}) ==
        doctest::Approx(2 * measure.width("-", {FontRole::mono, 12, 400})));
}

}  // namespace headscope::text_test
