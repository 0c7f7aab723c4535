#include "app/widgets/text_edit.h"

#include <algorithm>
#include <cmath>

namespace headscope {

namespace {
bool inside_character(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) == 0x80;
}
bool begins_long_character(char c) {
  return static_cast<unsigned char>(c) >= 0xC0;
}
bool part_of_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
         byte == '_' || byte == '\'';
}
}  // namespace

void TextEdit::set_text(std::string text) {
  text_ = std::move(text);
  const auto border = [&](std::size_t offset) {
    offset = std::min(offset, text_.size());
    while (offset > 0 && offset < text_.size() && inside_character(text_[offset])) --offset;
    return offset;
  };
  caret_ = border(caret_);
  anchor_ = border(anchor_);
  wanted_x_ = -1;
}

std::pair<std::size_t, std::size_t> TextEdit::selection() const {
  return std::minmax(caret_, anchor_);
}

std::string_view TextEdit::selected() const {
  const auto [begin, end] = selection();
  return std::string_view(text_).substr(begin, end - begin);
}

// Text that is no UTF-8 may stand here too: a stray byte is a character of its own.
std::size_t TextEdit::before(std::size_t offset) const {
  if (offset == 0) return 0;
  for (std::size_t back = 1; back <= std::min<std::size_t>(offset, 4); ++back) {
    if (inside_character(text_[offset - back])) continue;
    return begins_long_character(text_[offset - back]) ? offset - back : offset - 1;
  }
  return offset - 1;
}

std::size_t TextEdit::after(std::size_t offset) const {
  if (offset >= text_.size()) return text_.size();
  const bool is_long = begins_long_character(text_[offset++]);
  for (int i = 0; is_long && i < 3 && offset < text_.size() && inside_character(text_[offset]); ++i) ++offset;
  return offset;
}

std::size_t TextEdit::word_before(std::size_t offset) const {
  while (offset > 0 && !part_of_word(text_[offset - 1])) --offset;
  while (offset > 0 && part_of_word(text_[offset - 1])) --offset;
  return offset;
}

std::size_t TextEdit::word_after(std::size_t offset) const {
  while (offset < text_.size() && part_of_word(text_[offset])) ++offset;
  while (offset < text_.size() && !part_of_word(text_[offset])) ++offset;
  return offset;
}

void TextEdit::wrap(float width, const Advance& advance) {
  lines_.clear();
  Line line;
  std::size_t space = 0;  // where the line may break: after this, when > begin
  const auto finish = [&](std::size_t end, std::size_t next) {
    line.end = end;
    line.x.resize(end - line.begin + 1);
    lines_.push_back(std::move(line));
    line = Line{next, next, {}};
  };
  float x = 0;
  for (std::size_t at = 0; at < text_.size();) {
    const std::size_t next = after(at);
    if (text_[at] == '\n') {
      line.x.push_back(x);
      finish(at, next);
      x = 0;
      at = space = next;
      continue;
    }
    const float step = advance(std::string_view(text_).substr(at, next - at));
    const bool blank = text_[at] == ' ' || text_[at] == '\t';
    // Spaces hang over the edge rather than begin a line.
    if (x + step > width && !blank && at > line.begin) {
      const std::size_t cut = space > line.begin ? space : at;
      line.x.push_back(x);
      finish(cut, cut);
      x = 0;
      at = space = cut;  // the rest of the word is laid out again
      continue;
    }
    for (std::size_t byte = at; byte < next; ++byte) line.x.push_back(x);
    x += step;
    at = next;
    if (blank) space = at;
  }
  line.x.push_back(x);
  finish(text_.size(), text_.size());
}

TextEdit::Place TextEdit::place(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  // The last line that begins at or before it: a caret at a soft break stands at the beginning of the next line.
  const auto found = std::ranges::upper_bound(lines_, offset, {}, &Line::begin);
  const auto index = static_cast<std::size_t>(std::max<std::ptrdiff_t>(found - lines_.begin() - 1, 0));
  const Line& line = lines_[index];
  return {index, line.x[std::min(offset - line.begin, line.x.size() - 1)]};
}

std::size_t TextEdit::offset_at(std::size_t index, float x) const {
  const Line& line = lines_[std::min(index, lines_.size() - 1)];
  x = std::clamp(x, 0.f, line.x.back());
  // The end of a line that goes on is the beginning of the next one.
  const bool soft = line.end < text_.size() && text_[line.end] != '\n';
  const std::size_t last = soft && line.end > line.begin ? before(line.end) : line.end;
  std::size_t best = line.begin;
  for (std::size_t at = line.begin; at <= last; at = after(at)) {
    if (std::abs(line.x[at - line.begin] - x) < std::abs(line.x[best - line.begin] - x)) best = at;
    if (at == text_.size()) break;
  }
  return best;
}

void TextEdit::erase_selection() {
  const auto [begin, end] = selection();
  text_.erase(begin, end - begin);
  caret_ = anchor_ = begin;
  wanted_x_ = -1;
}

void TextEdit::insert(std::string_view text) {
  erase_selection();
  std::string clean;
  for (const char c : text)
    if (c != '\r') clean += c;
  text_.insert(caret_, clean);
  caret_ = anchor_ = caret_ + clean.size();
}

void TextEdit::erase_back(bool word) {
  if (caret_ == anchor_) anchor_ = word ? word_before(caret_) : before(caret_);
  erase_selection();
}

void TextEdit::erase_ahead(bool word) {
  if (caret_ == anchor_) anchor_ = word ? word_after(caret_) : after(caret_);
  erase_selection();
}

void TextEdit::move_to(std::size_t offset, bool select) {
  caret_ = std::min(offset, text_.size());
  if (!select) anchor_ = caret_;
  wanted_x_ = -1;
}

void TextEdit::left(bool word, bool select) {
  if (!select && caret_ != anchor_) return move_to(selection().first, false);
  move_to(word ? word_before(caret_) : before(caret_), select);
}

void TextEdit::right(bool word, bool select) {
  if (!select && caret_ != anchor_) return move_to(selection().second, false);
  move_to(word ? word_after(caret_) : after(caret_), select);
}

void TextEdit::vertical(int by, bool select) {
  const Place now = place(caret_);
  const float x = wanted_x_ >= 0 ? wanted_x_ : now.x;
  if (by < 0 && now.line == 0) return move_to(0, select);
  if (by > 0 && now.line + 1 >= lines_.size()) return move_to(text_.size(), select);
  move_to(offset_at(by < 0 ? now.line - 1 : now.line + 1, x), select);
  wanted_x_ = x;
}

void TextEdit::line_begin(bool select) {
  move_to(lines_[place(caret_).line].begin, select);
}

void TextEdit::line_end(bool select) {
  move_to(offset_at(place(caret_).line, 1e9f), select);
}

void TextEdit::select_all() {
  anchor_ = 0;
  caret_ = text_.size();
}

void TextEdit::select_word(std::size_t offset) {
  std::size_t begin = std::min(offset, text_.size()), end = begin;
  while (begin > 0 && part_of_word(text_[begin - 1])) --begin;
  while (end < text_.size() && part_of_word(text_[end])) ++end;
  anchor_ = begin;
  caret_ = begin == end ? after(end) : end;
}

}  // namespace headscope
