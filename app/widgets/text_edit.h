#pragma once
// A text that is being edited, wrapped into lines of a given width: caret, selection, movement, all in bytes of UTF-8,
// always at the border of a character. Knows no fonts and no keys: widths come from a function. Undo belongs to whoever
// owns the text. Owned by the UI thread.

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headscope {

class TextEdit {
 public:
  /// [begin, end) of the text, the line break that ends it left out; x[i] is where byte begin + i starts, x.back() the
  /// line's width. Bytes inside a character share its place.
  struct Line {
    std::size_t begin = 0, end = 0;
    std::vector<float> x;
  };
  struct Place {
    std::size_t line = 0;
    float x = 0;
  };
  /// Width of one character, given as its UTF-8.
  using Advance = std::function<float(std::string_view character)>;

  const std::string& text() const { return text_; }
  /// Another text; the caret stays as near to its place as it can.
  void set_text(std::string text);
  std::size_t caret() const { return caret_; }
  std::pair<std::size_t, std::size_t> selection() const;  ///< [first, second); empty = none
  std::string_view selected() const;

  /// Breaks the text at spaces into lines of `width`, a longer word anywhere. Call it after every change, before what
  /// asks for lines or places. The caret's line is empty when the text ends with a line break.
  void wrap(float width, const Advance& advance);
  const std::vector<Line>& lines() const { return lines_; }
  Place place(std::size_t offset) const;
  std::size_t offset_at(std::size_t line, float x) const;  ///< nearest border between characters

  // Changes. Each replaces the selection, if there is one.
  void insert(std::string_view text);  ///< carriage returns are left out
  void erase_back(bool word);
  void erase_ahead(bool word);
  void erase_selection();

  // Movement; `select` keeps the other end of the selection.
  void move_to(std::size_t offset, bool select);
  void left(bool word, bool select);
  void right(bool word, bool select);
  void up(bool select) { vertical(-1, select); }
  void down(bool select) { vertical(1, select); }
  void line_begin(bool select);
  void line_end(bool select);
  void select_all();
  void select_word(std::size_t offset);

 private:
  std::size_t before(std::size_t offset) const;
  std::size_t after(std::size_t offset) const;
  std::size_t word_before(std::size_t offset) const;
  std::size_t word_after(std::size_t offset) const;
  void vertical(int lines, bool select);

  std::string text_;
  std::size_t caret_ = 0, anchor_ = 0;
  float wanted_x_ = -1;  ///< column that up and down keep to; < 0 = the caret's own
  std::vector<Line> lines_{Line{0, 0, {0}}};
};

}  // namespace headscope
