#pragma once
// A text that is being edited, wrapped into lines of a given width: caret, selection, movement, all in bytes of UTF-8,
// always at the border of a character as people count them. Knows no fonts and no keys: a TextLayout says where
// characters stand. Undo belongs to whoever owns the text. Owned by the UI thread.
//
// Scripts may run from right to left. Editing follows the order in which text is read: what is typed stands after the
// caret, Backspace takes what was read last. A line of a paragraph that runs from right to left begins at the right
// edge, and there the left arrow goes on.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace headscope {

/// Lays lines out. Lengths are window pixels.
class TextLayout {
 public:
  /// What is drawn as one: bytes [begin, end) of the line.
  struct Part {
    std::size_t begin = 0, end = 0;
    float width = 0;
    bool right_to_left = false;
  };
  virtual ~TextLayout() = default;
  virtual bool right_to_left(std::string_view paragraph) const = 0;
  /// From left to right; together they are all of the line, which holds no line break.
  virtual std::vector<Part> parts(std::string_view line, bool right_to_left) const = 0;
};

class TextEdit {
 public:
  /// What is drawn as one: bytes [begin, end) of the text, from `left` to `right` in the line.
  struct Part {
    std::size_t begin = 0, end = 0;
    float left = 0, right = 0;
    bool right_to_left = false;
  };
  /// [begin, end) of the text, the line break that ends it left out.
  struct Line {
    std::size_t begin = 0, end = 0;
    bool right_to_left = false;
    std::vector<Part> parts;  ///< from left to right
    std::vector<float> x;     ///< where the caret stands before byte begin + i, and at last where the line ends
  };
  struct Place {
    std::size_t line = 0;
    float x = 0;
  };

  const std::string& text() const { return text_; }
  /// Another text; the caret stays as near to its place as it can.
  void set_text(std::string text);
  std::size_t caret() const { return caret_; }
  std::pair<std::size_t, std::size_t> selection() const;  ///< [first, second); empty = none
  std::string_view selected() const;

  /// Breaks the text at spaces into lines of `width`, a longer word anywhere. Call it after every change, before what
  /// asks for lines or places. The caret's line is empty when the text ends with a line break.
  void wrap(float width, const TextLayout& layout);
  const std::vector<Line>& lines() const { return lines_; }
  Place place(std::size_t offset) const;
  std::size_t offset_at(std::size_t line, float x) const;  ///< nearest border between characters
  /// Where the character begins that stands at x of the line; nullopt beside the text.
  std::optional<std::size_t> character_at(std::size_t line, float x) const;

  // Changes. Each replaces the selection, if there is one.
  void insert(std::string_view text);  ///< carriage returns are left out
  void erase_back(bool word);
  void erase_ahead(bool word);
  void erase_selection();

  // Movement; `select` keeps the other end of the selection.
  void move_to(std::size_t offset, bool select);
  void left(bool word, bool select) { sideways(true, word, select); }
  void right(bool word, bool select) { sideways(false, word, select); }
  void up(bool select) { vertical(-1, select); }
  void down(bool select) { vertical(1, select); }
  void line_begin(bool select);
  void line_end(bool select);
  void select_all();
  void select_word(std::size_t offset);

 private:
  std::size_t border(std::size_t offset) const;  ///< of the character that it is in
  std::size_t before(std::size_t offset) const;
  std::size_t after(std::size_t offset) const;
  std::size_t word_before(std::size_t offset) const;
  std::size_t word_after(std::size_t offset) const;
  void vertical(int lines, bool select);
  void sideways(bool to_the_left, bool word, bool select);
  void add_line(std::size_t begin, std::size_t end, bool right_to_left, float width, std::span<const Part> parts);

  std::string text_;
  std::size_t caret_ = 0, anchor_ = 0;
  std::optional<float> wanted_x_;  ///< column that up and down keep to; nullopt = the caret's own
  std::vector<Line> lines_{Line{0, 0, false, {}, {0}}};
};

}  // namespace headscope
