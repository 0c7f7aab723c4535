#include "core/text/jinja/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.h"
#include "core/base/utf8.h"

namespace headscope::jinja {

namespace {

using Kind = Token::Kind;

bool letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool digit(char c) {
  return c >= '0' && c <= '9';
}
bool blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

class Lexer {
 public:
  Lexer(const std::string& source, const std::string& where)
      : where_(where), source_(replace_all(replace_all(source, "\r\n", "\n"), "\r", "\n")) {
    if (source_.ends_with('\n')) source_.pop_back();  // as Jinja does
  }

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const std::size_t open = next_opening();
      text(open);
      if (at_ >= source_.size()) break;
      const char kind = source_[at_ + 1];
      const int line = line_;
      take(2);
      if (at_ < source_.size() && (source_[at_] == '-' || (kind != '{' && source_[at_] == '+'))) take(1);
      if (kind == '#')
        comment(line);
      else
        inside(kind == '{', line);
    }
    add(Kind::end, "");
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(int line, const std::string& expected, const std::string& found) const {
    throw Error(fmt::format("{}, line {}", where_, line), expected, found);
  }
  void add(Kind kind, std::string text) { out_.push_back({kind, std::move(text), line_}); }
  void take(std::size_t count) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(at_ + count), '\n'));
    at_ += count;
  }

  std::size_t next_opening() const {
    for (std::size_t at = source_.find('{', at_); at != std::string::npos && at + 1 < source_.size();
         at = source_.find('{', at + 1))
      if (source_[at + 1] == '{' || source_[at + 1] == '%' || source_[at + 1] == '#') return at;
    return source_.size();
  }

  /// What stands before the opening at `end`, less the white space that the tags around it take.
  void text(std::size_t end) {
    std::string piece = source_.substr(at_, end - at_);
    const bool line_start = at_ == 0 || source_[at_ - 1] == '\n';
    if (end < source_.size()) {
      const bool block = source_[end + 1] != '{';
      const char mark = end + 2 < source_.size() ? source_[end + 2] : ' ';
      if (mark == '-') {
        while (!piece.empty() && blank(piece.back())) piece.pop_back();
      } else if (block && mark != '+') {
        std::size_t last = piece.size();
        while (last > 0 && (piece[last - 1] == ' ' || piece[last - 1] == '\t')) --last;
        if (last > 0 ? piece[last - 1] == '\n' : line_start) piece.resize(last);
      }
    }
    take(end - at_);
    if (!piece.empty()) add(Kind::text, std::move(piece));
  }

  /// Behind a closing tag: "-" takes all white space, a block one line break.
  void closed(bool dash, bool block) {
    if (dash)
      while (at_ < source_.size() && blank(source_[at_])) take(1);
    else if (block && at_ < source_.size() && source_[at_] == '\n')
      take(1);
  }

  void comment(int line) {
    const std::size_t end = source_.find("#}", at_);
    if (end == std::string::npos) fail(line, "#} at the end of a comment", "none");
    const bool dash = end > at_ && source_[end - 1] == '-';
    take(end + 2 - at_);
    closed(dash, true);
  }

  void inside(bool value, int line) {
    const std::size_t first = out_.size();
    add(value ? Kind::open_value : Kind::open_block, "");
    int open = 0;  // brackets, in which a brace closes no tag
    for (;;) {
      while (at_ < source_.size() && blank(source_[at_])) take(1);
      if (at_ >= source_.size())
        fail(line, value ? "}} that closes {{" : "%} that closes {%", "the end of the template");
      const std::string close = value ? "}}" : "%}";
      const bool dash = source_[at_] == '-' && source_.compare(at_ + 1, 2, close) == 0;
      const bool plus = !value && source_[at_] == '+' && source_.compare(at_ + 1, 2, close) == 0;
      if (dash || plus || (open == 0 && source_.compare(at_, 2, close) == 0)) {
        take(dash || plus ? 3 : 2);
        add(value ? Kind::close_value : Kind::close_block, "");
        closed(dash, !value && !plus);
        if (out_.size() == first + 3 && out_[first + 1].kind == Kind::name && out_[first + 1].text == "raw")
          raw(first, line);
        return;
      }
      word(open);
    }
  }

  /// Everything up to {% endraw %} is text.
  void raw(std::size_t first, int line) {
    out_.resize(first);
    for (std::size_t at = source_.find("{%", at_); at != std::string::npos; at = source_.find("{%", at + 2)) {
      std::size_t i = at + 2;
      if (i < source_.size() && (source_[i] == '-' || source_[i] == '+')) ++i;
      while (i < source_.size() && blank(source_[i])) ++i;
      if (source_.compare(i, 6, "endraw") != 0) continue;
      const std::size_t end = source_.find("%}", i);
      if (end == std::string::npos) break;
      text(at);
      const bool dash = source_[end - 1] == '-';
      take(end + 2 - at_);
      closed(dash, true);
      return;
    }
    fail(line, "{% endraw %}", "none");
  }

  void word(int& open) {
    const char c = source_[at_];
    std::size_t end = at_;
    if (letter(c)) {
      while (end < source_.size() && (letter(source_[end]) || digit(source_[end]))) ++end;
      return push(Kind::name, end);
    }
    if (digit(c)) {
      while (end < source_.size() && (digit(source_[end]) || source_[end] == '_')) ++end;
      const bool point = end + 1 < source_.size() && source_[end] == '.' && digit(source_[end + 1]);
      if (point)
        for (++end; end < source_.size() && digit(source_[end]);) ++end;
      return push(point ? Kind::number : Kind::integer, end);
    }
    if (c == '"' || c == '\'') return string(c);
    static constexpr std::array<std::string_view, 6> pairs{"==", "!=", "<=", ">=", "//", "**"};
    const std::string_view two = std::string_view(source_).substr(at_, 2);
    if (std::ranges::find(pairs, two) != pairs.end()) return push(Kind::sign, at_ + 2);
    if (std::string_view("+-*/%~<>=()[]{}.,:|").find(c) == std::string_view::npos)
      fail(line_, "an expression", fmt::format("'{}'", source_.substr(at_, static_cast<std::size_t>(utf8_length(c)))));
    if (std::string_view("([{").find(c) != std::string_view::npos) ++open;
    if (std::string_view(")]}").find(c) != std::string_view::npos && --open < 0)
      fail(line_, "a bracket that was opened", fmt::format("'{}'", c));
    push(Kind::sign, at_ + 1);
  }

  void push(Kind kind, std::size_t end) {
    add(kind, source_.substr(at_, end - at_));
    take(end - at_);
  }

  void string(char quote) {
    const int line = line_;
    std::string out;
    std::size_t i = at_ + 1;
    const auto more = [&](std::size_t count) {
      if (i + count > source_.size()) fail(line, "a string that ends", "the end of the template");
    };
    const auto number = [&](std::size_t digits, int base) {
      more(digits);
      std::int32_t value = 0;
      for (std::size_t k = 0; k < digits; ++k) {
        const char c = source_[i++];
        const int d = digit(c)               ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : 99;
        if (d >= base) fail(line, "hexadecimal digits behind \\x, \\u or \\U", fmt::format("'{}'", c));
        value = value * base + d;
        if (value > 0x10FFFF) fail(line, "a character up to U+10FFFF", "a larger number");
      }
      if (value >= 0xD800 && value < 0xE000) fail(line, "a character", "half of a surrogate pair");
      out += to_utf8(value);
    };
    for (;;) {
      more(1);
      const char c = source_[i++];
      if (c == quote) break;
      if (c != '\\') {
        out += c;
        continue;
      }
      more(1);
      const char what = source_[i++];
      static constexpr std::string_view plain = "\\'\"abfnrtv", stands = "\\'\"\a\b\f\n\r\t\v";
      if (const std::size_t at = plain.find(what); at != std::string_view::npos)
        out += stands[at];
      else if (what == 'x' || what == 'u' || what == 'U')
        number(what == 'x' ? 2 : what == 'u' ? 4 : 8, 16);
      else if (what == '0')
        out += '\0';
      else if (what != '\n')
        out += '\\', out += what;
    }
    add(Kind::string, std::move(out));
    take(i - at_);
  }

  const std::string& where_;
  std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> out_;
};

}  // namespace

std::vector<Token> tokens_of(const std::string& source, const std::string& where) {
  return Lexer(source, where).run();
}

}  // namespace headscope::jinja
