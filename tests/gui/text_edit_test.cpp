#include "app/widgets/text_edit.h"

#include <doctest/doctest.h>

#include "core/base/random.h"

using namespace headscope;

namespace {
/// Every character is 10 wide.
float ten(std::string_view) {
  return 10;
}

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
