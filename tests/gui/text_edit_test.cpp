#include "app/widgets/text_edit.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "core/base/random.h"
#include "viz/scene/text.h"

namespace headscope::text_edit_test {

namespace {
/// Every character is 10 wide. Capitals stand for a script that runs from right to left, and so does a paragraph that
/// begins with one.
class Tens final : public TextLayout {
 public:
  bool right_to_left(std::string_view text) const override { return !text.empty() && backwards(text[0]); }
  std::vector<Part> parts(std::string_view line, bool right_to_left) const override {
    std::vector<Part> out;
    for (std::size_t at = 0; at < line.size();) {
      const std::size_t end = character_end(line, at);
      out.push_back({at, end, 10, rtl_ && backwards(line[at])});
      at = end;
    }
    if (!rtl_) return out;
    // Runs of one direction, each turned round that runs to the left; with the line, their order too.
    std::vector<std::vector<Part>> runs;
    for (const Part& part : out) {
      if (runs.empty() || runs.back().front().right_to_left != part.right_to_left) runs.emplace_back();
      runs.back().push_back(part);
    }
    if (right_to_left) std::ranges::reverse(runs);
    out.clear();
    for (std::vector<Part>& run : runs) {
      if (run.front().right_to_left) std::ranges::reverse(run);
      out.insert(out.end(), run.begin(), run.end());
    }
    return out;
  }
  explicit Tens(bool rtl = false) : rtl_(rtl) {}

 private:
  bool backwards(char c) const { return rtl_ && c >= 'A' && c <= 'Z'; }
  bool rtl_;
};
const Tens ten;

std::vector<std::string> lines(TextEdit& edit, float width) {
  edit.wrap(width, ten);
  std::vector<std::string> all;
  for (const TextEdit::Line& line : edit.lines()) all.push_back(edit.text().substr(line.begin, line.end - line.begin));
  return all;
}
using Lines = std::vector<std::string>;
}  // namespace

TEST_CASE("text wraps at spaces, long words anywhere, line breaks stay") {
  TextEdit edit;
  CHECK(lines(edit, 100) == Lines{""});
  edit.set_text("When Mary and John");
  CHECK(lines(edit, 1000) == Lines{"When Mary and John"});
  CHECK(lines(edit, 80) == Lines{"When ", "Mary and ", "John"});  // the space after eight hangs over
  CHECK(lines(edit, 100) == Lines{"When Mary ", "and John"});
  edit.set_text("abcdefgh");
  CHECK(lines(edit, 30) == Lines{"abc", "def", "gh"});
  CHECK(lines(edit, 1) == Lines{"a", "b", "c", "d", "e", "f", "g", "h"});
  edit.set_text("a\n\nb\n");
  CHECK(lines(edit, 100) == Lines{"a", "", "b", ""});
  edit.set_text("日本語 é");
  CHECK(lines(edit, 20) == Lines{"日本", "語 ", "é"});
}

TEST_CASE("places and offsets are each other's inverse, also at soft breaks") {
  TextEdit edit;
  edit.set_text("When Mary and John went, é日\nto the store ");
  edit.wrap(80, ten);
  for (std::size_t at = 0; at <= edit.text().size(); ++at) {
    edit.move_to(at, false);
    if (at < edit.text().size() && (static_cast<unsigned char>(edit.text()[at]) & 0xC0) == 0x80) continue;
    const TextEdit::Place place = edit.place(at);
    CHECK(edit.offset_at(place.line, place.x) == at);
  }
  CHECK(edit.place(5).line == 1);  // after "When ": the beginning of the second line
  CHECK(edit.place(5).x == 0);
}

TEST_CASE("the caret moves by characters, words and lines; selections are replaced") {
  TextEdit edit;
  edit.insert("one two\nthree");
  edit.wrap(1000, ten);
  CHECK(edit.caret() == 13);
  edit.up(false);
  CHECK(edit.caret() == 5);
  edit.line_end(false);
  CHECK(edit.caret() == 7);
  edit.left(true, false);
  CHECK(edit.caret() == 4);
  edit.line_begin(true);
  CHECK(edit.selected() == "one ");
  edit.insert("1 ");
  CHECK(edit.text() == "1 two\nthree");
  edit.wrap(1000, ten);
  edit.down(true);
  CHECK(edit.selected() == "two\nth");
  edit.erase_back(false);
  CHECK(edit.text() == "1 ree");
  edit.erase_back(true);
  CHECK(edit.text() == "ree");
  edit.erase_ahead(false);
  CHECK(edit.text() == "ee");
  edit.select_all();
  edit.insert("a\r\nb");
  CHECK(edit.text() == "a\nb");
  edit.set_text("caffè latte");
  edit.select_word(2);
  CHECK(edit.selected() == "caffè");
  edit.right(false, false);
  edit.left(false, false);
  edit.left(false, true);
  CHECK(edit.selected() == "f");
}

TEST_CASE("a script that runs from right to left: the caret follows the order in which it is read") {
  const Tens both(true);
  TextEdit edit;
  edit.set_text("ab CDE fg");  // on screen: "ab EDC fg", as "CDE " is drawn " EDC" only where the space belongs to it
  edit.wrap(1000, both);
  const std::vector<float> x = edit.lines()[0].x;
  CHECK(x == std::vector<float>{0, 10, 20, 60, 50, 40, 60, 70, 80, 90});
  CHECK(edit.offset_at(0, 57) == 3);  // the right half of C, which is read first
  CHECK(edit.offset_at(0, 52) == 4);
  CHECK(edit.character_at(0, 31) == 5);
  CHECK_FALSE(edit.character_at(0, 95));
  edit.move_to(4, false);
  edit.insert("X");
  CHECK(edit.text() == "ab CXDE fg");
  edit.erase_back(false);
  CHECK(edit.text() == "ab CDE fg");

  // A paragraph that runs to the left begins at the right edge, and there the left arrow goes on.
  edit.set_text("ABC de\nxy");
  edit.wrap(100, both);
  REQUIRE(edit.lines().size() == 2);
  CHECK(edit.lines()[0].right_to_left);
  CHECK(edit.lines()[0].parts.front().left == 40);
  CHECK(edit.lines()[0].x[0] == 100);
  edit.move_to(0, false);
  edit.left(false, false);
  CHECK(edit.caret() == 1);
  edit.right(false, false);
  CHECK(edit.caret() == 0);
  edit.line_end(false);
  CHECK(edit.caret() == 6);
  edit.down(false);
  CHECK(edit.caret() == 9);  // below: the other line stands at the left edge, and ends before that place

  // Lines are broken in the order of reading, and every one is laid out by itself.
  edit.set_text("AB CD EF");
  edit.wrap(60, both);
  REQUIRE(edit.lines().size() == 2);
  CHECK(edit.lines()[1].begin == 6);
  CHECK(edit.lines()[1].x == std::vector<float>{60, 50, 40});
}

TEST_CASE("the caret passes over characters as people count them; Backspace takes the last mark alone") {
  TextEdit edit;
  const std::string family = "👨‍👩‍👧", thumb = "👍🏽", flag = "🇫🇷", accent = "e\u0301";
  edit.set_text("a" + family + thumb + flag + flag + accent);
  edit.wrap(1000, ten);
  std::vector<std::size_t> stops;
  for (edit.move_to(0, false); stops.empty() || stops.back() < edit.text().size(); edit.right(false, false))
    stops.push_back(edit.caret());
  CHECK(stops == std::vector<std::size_t>{0, 1, 19, 27, 35, 43, 46});
  edit.erase_back(false);
  CHECK(edit.text().ends_with(flag + "e"));
  edit.erase_back(false);
  edit.erase_back(false);
  CHECK(edit.text() == "a" + family + thumb + flag);
  edit.erase_back(false);
  edit.erase_back(false);
  CHECK(edit.text() == "a" + family);
  edit.left(false, false);
  CHECK(edit.caret() == 1);
  edit.erase_ahead(false);
  CHECK(edit.text() == "a");
}

TEST_CASE("up and down keep to their column over shorter lines") {
  TextEdit edit;
  edit.set_text("abcdef\nx\nabcdef");
  edit.wrap(1000, ten);
  edit.move_to(5, false);
  edit.down(false);
  CHECK(edit.caret() == 8);
  edit.down(false);
  CHECK(edit.caret() == 14);
}

TEST_CASE("whatever is done, the caret stays in the text and lines cover it") {
  Random random(3);
  TextEdit edit;
  for (int step = 0; step < 5000; ++step) {
    const bool select = random.below(3) == 0, word = random.below(3) == 0;
    edit.wrap(static_cast<float>(random.below(200)), ten);
    switch (random.below(14)) {
      case 0:
        edit.insert("wörd ");
        break;
      case 1:
        edit.insert("\n");
        break;
      case 2:
        edit.insert("\xff\x80\x80\x80\x80");
        break;
      case 3:
        edit.insert("日本");
        break;
      case 4:
        edit.erase_back(word);
        break;
      case 5:
        edit.erase_ahead(word);
        break;
      case 6:
        edit.left(word, select);
        break;
      case 7:
        edit.right(word, select);
        break;
      case 8:
        edit.up(select);
        break;
      case 9:
        edit.down(select);
        break;
      case 10:
        edit.line_end(select);
        break;
      case 11:
        edit.select_word(random.below(80));
        break;
      case 12:
        edit.move_to(edit.offset_at(random.below(9), static_cast<float>(random.below(300))), select);
        break;
      default:
        edit.set_text(edit.text().substr(0, random.below(100)));
    }
    REQUIRE(edit.caret() <= edit.text().size());
    edit.wrap(70, ten);
    std::size_t at = 0;
    for (const TextEdit::Line& line : edit.lines()) {
      REQUIRE(line.begin == at);
      REQUIRE(line.x.size() == line.end - line.begin + 1);
      at = line.end + (line.end < edit.text().size() && edit.text()[line.end] == '\n' ? 1 : 0);
    }
    REQUIRE(at == edit.text().size());
  }
}

}  // namespace headscope::text_edit_test
