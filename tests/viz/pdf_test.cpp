// PDF: what stands in the file, read without a reader of PDF: it is plain but for what the pages draw, which zlib
// gives.

#include "viz/export/pdf.h"

#include <doctest/doctest.h>
#include <zlib.h>

#include <charconv>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/paths.h"
#include "viz/export/handout.h"
#include "viz/export/recipe_note.h"
#include "viz/scene/map_cells.h"

namespace headscope::pdf_test {

using namespace testing;

namespace {
int times(std::string_view text, std::string_view part) {
  int found = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

std::string inflated(std::string_view bytes) {
  std::string out(std::size_t{1} << 22, '\0');
  uLongf size = out.size();
  const int done = uncompress(reinterpret_cast<Bytef*>(out.data()), &size, reinterpret_cast<const Bytef*>(bytes.data()),
                              static_cast<uLong>(bytes.size()));
  out.resize(done == Z_OK ? size : 0);
  return out;
}

/// What is drawn on each page.
std::vector<std::string> drawn(std::string_view pdf) {
  std::vector<std::string> out;
  for (std::size_t at = 0; (at = pdf.find("stream\n", at)) != std::string_view::npos;) {
    const std::size_t begin = at + 7, end = pdf.find("\nendstream", begin);
    REQUIRE(end != std::string_view::npos);
    const std::string content = inflated(pdf.substr(begin, end - begin));
    if (content.starts_with("1 0 0 -1 0 ")) out.push_back(content);  // y grows downwards
    at = end + 10;
  }
  return out;
}

/// Every entry of both tables names the byte at which its object begins.
void check_tables(const std::string& pdf) {
  std::size_t table = 0;
  const std::size_t last = pdf.rfind("startxref\n");
  REQUIRE(last != std::string::npos);
  std::from_chars(pdf.data() + last + 10, pdf.data() + pdf.size(), table);
  REQUIRE(pdf.compare(table, 5, "xref\n") == 0);
  int tables = 0;
  while (table > 0) {
    ++tables;
    int first = 0, count = 0;
    const char* at = std::from_chars(pdf.data() + table + 5, pdf.data() + pdf.size(), first).ptr;
    at = std::from_chars(at + 1, pdf.data() + pdf.size(), count).ptr;
    while (*at != '\n') ++at;
    for (int i = 0; i < count; ++i) {
      const std::string entry(at + 1 + 20 * i, 20);
      if (entry[17] == 'f') continue;
      std::size_t object = 0;
      std::from_chars(entry.data(), entry.data() + 10, object);
      const std::string expected = std::to_string(first + i) + " 0 obj\n";
      CHECK(pdf.compare(object, expected.size(), expected) == 0);
    }
    const std::size_t trailer = pdf.find("trailer", table), end = pdf.find("%%EOF", trailer);
    const std::size_t before = pdf.find("/Prev ", trailer);
    table = 0;
    if (before < end) std::from_chars(pdf.data() + before + 6, pdf.data() + pdf.size(), table);
  }
  CHECK(tables == 2);
}

Scene map_scene(Index rows, Index columns, double gap) {
  Scene scene;
  scene.width = 120, scene.height = 90;
  scene.background = rgb(0xffffff);
  scene.title = "Größe (of “it”)";
  scene.description = "plain (words) \\ here";
  scene.recipe = "{\"a\": \"(\\)\", \"b\": \")\xC3\xA4\n%%EOF /Prev 7 \n   /Headscope (no)\"}";
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / static_cast<float>(values.size());
  const MapCells cells{1, Tensor::from({rows, columns}, values), std::vector<std::uint8_t>(values.size(), 0), rows,
                       columns};
  Heatmap map = heatmap_of(cells, {10, 10, 100, 50}, ColorNorm{}, theme("print"));
  map.gap = gap;
  scene.add({map, "map", ""});
  scene.add({Text{{10, 80}, "Words of the scene", {}, rgb(0), Anchor::start, 0}, "", ""});
  return scene;
}
}  // namespace

TEST_CASE("a picture as PDF: its size, its cells one by one, its words in an embedded font, the same bytes each time") {
  const Scene scene = map_scene(2, 3, 1);
  const std::string pdf = encode_pdf(scene);
  CHECK(pdf.starts_with("%PDF-1.4"));
  CHECK(pdf.ends_with("%%EOF\n"));
  check_tables(pdf);
  CHECK(times(pdf, "/Type /Page %") == 1);
  CHECK(pdf.find("/MediaBox [ 0 0 90 67.5 ]") != std::string::npos);  // 1/96 inch is 3/4 of a point
  CHECK(encode_pdf(scene, {.width_px = {}, .width_inches = 5, .dpi = {}}).find("/MediaBox [ 0 0 360 270 ]") !=
        std::string::npos);
  CHECK(times(pdf, "/FontFile") >= 1);
  REQUIRE(drawn(pdf).size() == 1);
  const std::string page = drawn(pdf).front();
  CHECK(times(page, " re f\n") + times(page, " re\nf\n") >= 7);  // the ground and six cells
  CHECK(times(pdf, "/Subtype /Image") == 0);
  CHECK(encode_pdf(scene) == pdf);
  CHECK(pdf.find("/Title <FEFF00470072") != std::string::npos);
  CHECK(pdf.find("/Subject (plain \\(words\\) \\\\ here)") != std::string::npos);
  CHECK_THROWS_AS(encode_pdf(scene, {.width_px = 0, .width_inches = {}, .dpi = {}}), Error);
  CHECK_THROWS_WITH_AS(write_pdf(scratch_dir("pdf") / "no" / "where.pdf", scene), doctest::Contains("where.pdf"),
                       Error);
}

TEST_CASE("cells without a gap reach below those that come after them, and none over the map's edge") {
  const auto pages = drawn(encode_pdf(map_scene(2, 2, 0)));
  REQUIRE(pages.size() == 1);
  // The map lies from 7.5 to 82.5 and from 7.5 to 45 points; half a pixel is 3/8 of a point.
  for (const char* corner : {"45.375 7.5 l", "82.5 26.625 l", "45.375 45 l"}) {
    CAPTURE(std::string(corner));
    CHECK(times(pages.front(), corner) == 1);
  }
  for (const char* beyond : {"82.875", "45.375 l"}) CHECK(times(pages.front(), beyond) == 0);
}

TEST_CASE("a map of more cells than anybody tells apart is an image of whole cells") {
  const std::string pdf = encode_pdf(map_scene(80, 80, 0));
  CHECK(times(pdf, "/Subtype /Image") == 1);
  CHECK(pdf.find("/Interpolate true") == std::string::npos);
}

TEST_CASE("the recipe of a PDF comes back byte for byte; what the pages show does not depend on it") {
  const Scene scene = map_scene(2, 3, 1);
  const std::string pdf = encode_pdf(scene);
  CHECK(recipe_in_pdf(pdf) == scene.recipe);
  Scene other = scene;
  other.recipe = "", other.description = "else";
  const std::string bare = encode_pdf(other);
  CHECK(recipe_in_pdf(bare) == "");
  CHECK(pdf_drawing(bare) == pdf_drawing(pdf));
  CHECK(pdf_drawing(pdf).size() > 1000);
  CHECK(pdf_drawing(pdf).size() < bare.size());
  other.marks.pop_back();
  CHECK(pdf_drawing(encode_pdf(other)) != pdf_drawing(pdf));
  for (std::size_t cut = pdf.size() - 600; cut < pdf.size(); ++cut)  // never more than there is
    CHECK_NOTHROW(recipe_in_pdf(std::string_view(pdf).substr(0, cut)));
}

namespace {
HandoutBlock block(HandoutBlock::Kind kind, const std::string& words) {
  return {kind, emphasised(words)};
}
std::string words(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += "word" + std::to_string(i) + " ";
  return out;
}
/// Of pages as cairo writes them.
int pages(const std::string& pdf) {
  return times(pdf, "/Type /Page %");
}
}  // namespace

TEST_CASE("emphasis stands between asterisks") {
  CHECK(emphasised("") == HandoutWords{});
  CHECK(emphasised("a *b* c") == HandoutWords{{"a "}, {"b", true}, {" c"}});
  CHECK(emphasised("*a") == HandoutWords{{"a", true}});
  CHECK(emphasised("a**b") == HandoutWords{{"a"}, {"b"}});
}

TEST_CASE("a handout as PDF has as many pages as its sections need, with their titles as contents") {
  using Kind = HandoutBlock::Kind;
  Handout handout{"A lesson", "of something"};
  const auto section = [&](const std::string& title, double height) {
    handout.blocks.push_back(block(Kind::heading, title));
    handout.blocks.push_back(block(Kind::prose, words(60)));
    HandoutBlock& picture = handout.blocks.emplace_back(block(Kind::picture, title));
    picture.picture.emplace();
    picture.picture->width = 600, picture.picture->height = height;
    picture.picture->add({Box{{0, 0, 600, height}, rgb(0x336699), {0, 0, 0, 0}, 0, 0}, "", ""});
    handout.blocks.push_back(block(Kind::question, "What *is* it?"));
    handout.blocks.back().choices = {emphasised("this"), emphasised("that")};
  };
  section("One", 200);
  CHECK(pages(encode_handout_pdf(handout, Paper::a4)) == 1);
  section("Two", 200);  // the picture becomes smaller rather than another page
  const std::string both = encode_handout_pdf(handout, Paper::a4);
  CHECK(pages(both) == 1);
  CHECK(both.find("/MediaBox [ 0 0 595.275591 841.889764 ]") != std::string::npos);
  CHECK(encode_handout_pdf(handout, Paper::a4) == both);
  const std::string letter = encode_handout_pdf(handout, Paper::letter);
  CHECK(letter.find("/MediaBox [ 0 0 612 792 ]") != std::string::npos);
  section("Three", 700);
  section("Four", 5000);  // no page is so high
  const std::string four = encode_handout_pdf(handout, Paper::a4);
  CHECK(pages(four) == 3);
  for (const char* title : {"(One)", "(Two)", "(Three)", "(Four)"}) CHECK(times(four, title) == 1);
  CHECK(four.find("/Title (A lesson)") != std::string::npos);
  check_tables(four);
}

TEST_CASE("no heading is parted from its text, no line of a paragraph stands alone, and what no page holds is torn") {
  using Kind = HandoutBlock::Kind;
  for (int lines = 30; lines < 60; ++lines) {
    CAPTURE(lines);
    Handout handout{"Lines", ""};
    std::string filling;  // in one paragraph
    for (int i = 0; i < lines; ++i) filling += "M\n";
    filling.pop_back();
    handout.blocks = {block(Kind::prose, filling), block(Kind::heading, "Last"), block(Kind::prose, "a\nb\nc")};
    const auto pages = drawn(encode_handout_pdf(handout, Paper::a4));
    REQUIRE(pages.size() == (lines <= 39 ? 1 : 2));  // 45 lines of 20 below the title, or 39 with what follows
    const int first = times(pages[0], "(M)");
    CHECK(first == (lines <= 45 ? lines : lines == 46 ? 44 : 45));
    int together = 0;
    for (const std::string& each : pages) together += times(each, "(M)");
    CHECK(together == lines);
    if (pages.size() == 1) continue;
    CHECK(times(pages[0], "12.375 0 0 -12.375") == 0);  // the heading's size
    CHECK(times(pages[1], "12.375 0 0 -12.375") == 1);
  }
  const auto lines_of = [](int count) {
    std::string out = "M";
    for (int i = 1; i < count; ++i) out += "\nM";
    return out;
  };
  // A section that no page holds begins where it can, but there with two lines at least.
  for (const int above : {39, 40, 41, 42}) {
    CAPTURE(above);
    const Handout handout{
        "Lines",
        "",
        {block(Kind::prose, lines_of(above)), block(Kind::heading, "Long"), block(Kind::prose, lines_of(60))}};
    const auto pages = drawn(encode_handout_pdf(handout, Paper::a4));
    CHECK(times(pages[0], "12.375 0 0 -12.375") == (above <= 40 ? 1 : 0));
    CHECK(times(pages[0], "(M)") == (above <= 40 ? 42 : above));
  }
  Handout endless{"Endless", ""};
  std::string filling;
  for (int i = 0; i < 500; ++i) filling += "line\n";
  endless.blocks = {block(Kind::question, filling)};
  CHECK(pages(encode_handout_pdf(endless, Paper::a4)) == 11);
  CHECK(pages(encode_handout_pdf({"", ""}, Paper::a4)) == 1);
}

}  // namespace headscope::pdf_test
