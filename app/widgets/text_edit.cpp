#include "app/widgets/text_edit.h"

#include <algorithm>
#include <cmath>

#include "viz/scene/text.h"

namespace headscope {

namespace {
bool part_of_word(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
         byte == '_' || byte == '\'';
}
}  // namespace

void TextEdit::set_text(std::string text) {
  text_ = std::move(text);
  caret_ = border(caret_);
  anchor_ = border(anchor_);
  wanted_x_.reset();
}

std::pair<std::size_t, std::size_t> TextEdit::selection() const {
  return std::minmax(caret_, anchor_);
}

std::string_view TextEdit::selected() const {
  const auto [begin, end] = selection();
  return std::string_view(text_).substr(begin, end - begin);
}

std::size_t TextEdit::border(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  const std::size_t begin = before(offset);
  return after(begin) > offset ? begin : offset;
}

std::size_t TextEdit::before(std::size_t offset) const {
  return offset == 0 ? 0 : character_begin(text_, offset);
}

std::size_t TextEdit::after(std::size_t offset) const {
  return offset >= text_.size() ? text_.size() : character_end(text_, offset);
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

/// The line's parts in the order in which they are drawn, their places not yet set.
void TextEdit::add_line(std::size_t begin, std::size_t end, bool right_to_left, float width,
                        std::span<const Part> parts) {
  Line line{begin, end, right_to_left, {}, {}};
  float x = 0;
  for (Part part : parts) {
    const float advance = part.right - part.left;
    part.left = x, part.right = x += advance;
    line.parts.push_back(part);
  }
  const float total = x, shift = right_to_left ? width - total : 0;
  for (Part& part : line.parts) part.left += shift, part.right += shift;
  line.x.assign(end - begin + 1, right_to_left ? shift : total);
  for (const Part& part : line.parts) {
    // The caret also stands inside what is drawn as one when people count several characters in it.
    std::vector<std::size_t> borders;
    for (std::size_t at = part.begin; at < part.end; at = after(at)) borders.push_back(at);
    const float step = (part.right - part.left) / static_cast<float>(std::max<std::size_t>(borders.size(), 1));
    for (std::size_t i = 0; i < borders.size(); ++i) {
      const float from_start = step * static_cast<float>(i);
      const std::size_t next = i + 1 < borders.size() ? borders[i + 1] : part.end;
      for (std::size_t byte = borders[i]; byte < next; ++byte)
        line.x[byte - begin] = part.right_to_left ? part.right - from_start : part.left + from_start;
    }
  }
  lines_.push_back(std::move(line));
}

void TextEdit::wrap(float width, const TextLayout& layout) {
  lines_.clear();
  for (std::size_t begin = 0; begin <= text_.size();) {
    const std::size_t end = std::min(text_.find('\n', begin), text_.size());
    const std::string_view paragraph = std::string_view(text_).substr(begin, end - begin);
    const bool backwards = layout.right_to_left(paragraph);
    const auto laid_out = [&](std::size_t from, std::size_t to) {
      std::vector<Part> parts;
      for (const TextLayout::Part& p : layout.parts(std::string_view(text_).substr(from, to - from), backwards))
        parts.push_back({from + p.begin, from + p.end, 0, p.width, p.right_to_left});
      return parts;
    };
    const std::vector<Part> all = laid_out(begin, end);
    std::vector<Part> read = all;  // in the order in which they are read
    std::ranges::stable_sort(read, {}, &Part::begin);
    const bool plain = !backwards && std::ranges::none_of(all, &Part::right_to_left);
    const auto finish = [&](std::size_t from, std::size_t to) {
      if (!plain) return add_line(from, to, backwards, width, laid_out(from, to));  // words change places within a line
      const auto at = [&](std::size_t offset) { return std::ranges::lower_bound(all, offset, {}, &Part::begin); };
      add_line(from, to, backwards, width, {at(from), at(to)});
    };
    std::size_t from = begin, space = begin;  // the line's beginning; it may break at `space` when that lies behind it
    float x = 0;
    for (std::size_t i = 0; i < read.size();) {
      const Part& part = read[i];
      const char first = text_[part.begin];
      const bool blank = first == ' ' || first == '\t';
      // Spaces hang over the edge rather than begin a line.
      if (x + part.right > width && !blank && part.begin > from) {
        const std::size_t cut = space > from ? space : part.begin;
        finish(from, cut);
        from = space = cut;
        x = 0;
        while (i > 0 && read[i - 1].begin >= cut) --i;  // the rest of the word comes again
        continue;
      }
      x += part.right;
      if (blank) space = part.end;
      ++i;
    }
    finish(from, end);
    begin = end + 1;
  }
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
  // The end of a line that goes on is the beginning of the next one.
  const bool soft = line.end < text_.size() && text_[line.end] != '\n';
  const std::size_t last = soft && line.end > line.begin ? std::max(before(line.end), line.begin) : line.end;
  if (line.parts.empty()) return line.begin;
  if (x < line.parts.front().left) return line.right_to_left ? last : line.begin;
  if (x >= line.parts.back().right) return line.right_to_left ? line.begin : last;
  for (const Part& part : line.parts) {
    if (x >= part.right) continue;
    std::size_t best = part.begin;
    float nearest = std::abs(line.x[part.begin - line.begin] - x);
    for (std::size_t at = after(part.begin); at < part.end; at = after(at))
      if (const float off = std::abs(line.x[at - line.begin] - x); off < nearest) nearest = off, best = at;
    if (std::abs((part.right_to_left ? part.left : part.right) - x) < nearest) best = part.end;
    return std::min(border(best), last);
  }
  return last;
}

std::optional<std::size_t> TextEdit::character_at(std::size_t index, float x) const {
  for (const Part& part : lines_[std::min(index, lines_.size() - 1)].parts)
    if (x >= part.left && x < part.right) return border(part.begin);
  return std::nullopt;
}

void TextEdit::erase_selection() {
  const auto [begin, end] = selection();
  text_.erase(begin, end - begin);
  caret_ = anchor_ = begin;
  wanted_x_.reset();
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
  if (caret_ == anchor_) anchor_ = word || caret_ == 0 ? word_before(caret_) : backspace_begin(text_, caret_);
  erase_selection();
}

void TextEdit::erase_ahead(bool word) {
  if (caret_ == anchor_) anchor_ = word ? word_after(caret_) : after(caret_);
  erase_selection();
}

void TextEdit::move_to(std::size_t offset, bool select) {
  caret_ = std::min(offset, text_.size());
  if (!select) anchor_ = caret_;
  wanted_x_.reset();
}

void TextEdit::sideways(bool to_the_left, bool word, bool select) {
  const bool back = to_the_left != lines_[place(caret_).line].right_to_left;
  if (!select && caret_ != anchor_) return move_to(back ? selection().first : selection().second, false);
  if (back) return move_to(word ? word_before(caret_) : before(caret_), select);
  move_to(word ? word_after(caret_) : after(caret_), select);
}

void TextEdit::vertical(int by, bool select) {
  const Place now = place(caret_);
  const float x = wanted_x_.value_or(now.x);
  if (by < 0 && now.line == 0) return move_to(0, select);
  if (by > 0 && now.line + 1 >= lines_.size()) return move_to(text_.size(), select);
  move_to(offset_at(by < 0 ? now.line - 1 : now.line + 1, x), select);
  wanted_x_ = x;
}

void TextEdit::line_begin(bool select) {
  move_to(lines_[place(caret_).line].begin, select);
}

void TextEdit::line_end(bool select) {
  const std::size_t line = place(caret_).line;
  move_to(offset_at(line, lines_[line].right_to_left ? -1e9f : 1e9f), select);
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
