// Oniguruma's Ruby syntax, in PCRE2's words. Reference: Oniguruma's doc/RE and PCRE2's pcre2pattern(3).
#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <utility>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/utf8.h"
#include "core/text/pattern.h"

namespace headscope {

namespace {

// PCRE2's own \s adds U+180E to Unicode's White_Space, and its \w differs between releases: both are spelled out.
constexpr std::string_view kSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kNotSpace =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
// Unicode's Alphabetic (of which the letters in circles are symbols), marks, digits and connectors: no ½ and no ⁴.
constexpr std::string_view kWord =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";
// Outside of classes Oniguruma looks characters of Latin-1 up in a table of its own, in which ² ³ ¹ ¼ ½ ¾ are of words.
constexpr std::string_view kLatinNumbers = R"(\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
constexpr std::string_view kHex = "0-9a-fA-F";
constexpr std::string_view kNotHex = R"(\x{0}-\x{2f}\x{3a}-\x{40}\x{47}-\x{60}\x{67}-\x{10ffff})";

/// Oniguruma's POSIX classes; PCRE2's own are others beyond ASCII. Those made of properties need PCRE2 10.40.
constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kPosixClasses{
    {{"alpha", R"(\p{Alphabetic})"},
     {"alnum", R"(\p{Alphabetic}\p{Nd})"},
     {"upper", R"(\p{Uppercase})"},
     {"lower", R"(\p{Lowercase})"},
     {"digit", R"(\p{Nd})"},
     {"xdigit", kHex},
     {"space", kSpace},
     {"blank", R"(\x{9}\p{Zs})"},
     {"cntrl", R"(\p{Cc})"},
     {"punct", R"(\p{P}\p{S})"},
     {"graph", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co})"},
     {"print", R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}\p{Zs})"},
     {"ascii", R"(\x{0}-\x{7f})"},
     {"word", kWord}}};

constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kLongCategories{{{"Letter", "L"},
                                                                                        {"Mark", "M"},
                                                                                        {"Number", "N"},
                                                                                        {"Punctuation", "P"},
                                                                                        {"Punct", "P"},
                                                                                        {"Symbol", "S"},
                                                                                        {"Separator", "Z"},
                                                                                        {"Other", "C"}}};

/// Whether PCRE2 knows the property as a script. A bare script name means Script_Extensions to PCRE2, Script to
/// Oniguruma.
bool is_script(std::string_view name) {
  const std::string probe = fmt::format(R"(\p{{sc:{}}})", name);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(probe.data()), probe.size(), PCRE2_UTF, &error, &offset, nullptr);
  pcre2_code_free(code);
  return code != nullptr;
}

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : in_(pattern), where_(where) {}

  std::string run() {
    while (at_ < in_.size()) {
      const char c = in_[at_];
      if (c == '\\')
        escape();
      else if (in_class_)
        class_character(c);
      else
        plain_character(c);
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string_view what) const {
    throw Error(where_, "a pattern with an exact PCRE2 counterpart",
                fmt::format("{} in '{}'", what, excerpt(in_, 120)));
  }
  bool next_is(std::string_view text) const { return in_.substr(at_, text.size()) == text; }
  void copy(std::size_t count = 1) {
    out_ += in_.substr(at_, count);
    at_ += count;
  }

  /// A set of characters: its items inside a class, a class of its own outside.
  void set(std::string_view items) {
    out_ += in_class_ ? std::string(items) : fmt::format("[{}]", items);
    at_ += 2;
  }

  void escape() {
    if (at_ + 1 >= in_.size()) refuse("a trailing backslash");
    switch (in_[at_ + 1]) {
      case 's':
        return set(kSpace);
      case 'S':
        return set(kNotSpace);
      case 'w':
        return in_class_ ? set(kWord) : set(fmt::format("{}{}", kWord, kLatinNumbers));
      case 'W':
        return in_class_ ? class_of_no_words() : set(fmt::format("^{}{}", kWord, kLatinNumbers));
      case 'h':
        return set(kHex);
      case 'H':
        return set(kNotHex);
      case 'd':
        return set(R"(\p{Nd})");
      case 'D':
        return set(R"(\P{Nd})");
      case 'p':
      case 'P':
        return property();
      case 'u':
        return code_point();
      case 'b':
      case 'B':
        if (!in_class_) return word_boundary(in_[at_ + 1] == 'b');
        break;
      default:
        break;
    }
    copy(2);
  }

  /// \uHHHH
  void code_point() {
    const std::string_view digits = in_.substr(std::min(at_ + 2, in_.size()), 4);
    if (digits.size() < 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      refuse("\\u without four hexadecimal digits");
    out_ += fmt::format(R"(\x{{{}}})", digits);
    at_ += 6;
  }

  void word_boundary(bool at_boundary) {
    const auto format =
        at_boundary ? "(?:(?<=[{0}])(?![{0}])|(?<![{0}])(?=[{0}]))" : "(?:(?<=[{0}])(?=[{0}])|(?<![{0}])(?![{0}]))";
    out_ += fmt::format(fmt::runtime(format), fmt::format("{}{}", kWord, kLatinNumbers));
    at_ += 2;
  }

  /// \W among the items of a class: PCRE2 has no item for it, so the class becomes a choice when it ends.
  void class_of_no_words() {
    at_ += 2;
    if (next_is("-") && !next_is("-]")) refuse("\\W before a hyphen");
    no_words_ = true;
  }
  void end_class() {
    in_class_ = false;
    ++at_;
    if (!no_words_) {
      out_ += ']';
      return;
    }
    no_words_ = false;
    std::string items = out_.substr(class_begin_ + 1);
    out_.resize(class_begin_);
    const bool negated = items.starts_with('^');
    if (negated) items.erase(0, 1);
    if (items.starts_with('^')) items.insert(0, "\\");
    if (items.empty())
      out_ += fmt::format(fmt::runtime(negated ? "[{}]" : "[^{}]"), kWord);
    else
      out_ += fmt::format(fmt::runtime(negated ? "(?:(?![{0}])[{1}])" : "(?:[{0}]|[^{1}])"), items, kWord);
  }

  void property() {
    const auto close = in_.find('}', at_);
    if (at_ + 2 >= in_.size() || in_[at_ + 2] != '{' || close == std::string_view::npos)
      refuse("a property without {name}");
    bool negated = in_[at_ + 1] == 'P';
    std::string_view name = in_.substr(at_ + 3, close - at_ - 3);
    if (name.starts_with('^')) {
      negated = !negated;
      name.remove_prefix(1);
    }
    std::string known(name);
    for (const auto& [spelled, category] : kLongCategories)
      if (name == spelled) known = category;
    if (known.size() > 2 && is_script(known)) known = "sc:" + known;
    out_ += fmt::format(R"(\{}{{{}}})", negated ? 'P' : 'p', known);
    at_ = close + 1;
  }

  void class_character(char c) {
    if (next_is("[:")) {
      const auto close = in_.find(":]", at_ + 2);
      if (close == std::string_view::npos) refuse("an open POSIX class");
      const std::string_view name = in_.substr(at_ + 2, close - at_ - 2);
      const auto known = std::ranges::find(kPosixClasses, name, &decltype(kPosixClasses)::value_type::first);
      if (known == kPosixClasses.end()) refuse(fmt::format("[:{}:]", name));
      out_ += known->second;
      at_ = close + 2;
      return;
    }
    if (c == '[') {  // a union: its items are items of the outer class
      if (next_is("[^") || next_is("[]")) refuse("a negated or empty class inside a class");
      ++inner_classes_;
      ++at_;
      return;
    }
    if (c == ']' && inner_classes_ > 0) {
      --inner_classes_;
      ++at_;
      return;
    }
    if (next_is("&&")) refuse("an intersection of classes");
    if (c == ']') return end_class();
    copy();
  }

  void plain_character(char c) {
    switch (c) {
      case '[':
        in_class_ = true;
        class_begin_ = out_.size();
        copy(next_is("[^") ? 2 : 1);
        if (next_is("]")) copy();  // a first ] stands for itself
        return;
      case '(':
        return group();
      case '{':
        return interval();
      default:
        return copy();
    }
  }

  /// (?imx) and (?imx-imx:…): Ruby's m lets the dot match newlines, which PCRE2 calls s.
  void group() {
    copy();
    if (!next_is("?")) return;
    const auto end = in_.find_first_not_of("imx-", at_ + 1);
    if (end == std::string_view::npos || end == at_ + 1 || (in_[end] != ':' && in_[end] != ')')) return;
    for (; at_ < end; ++at_) out_ += in_[at_] == 'm' ? 's' : in_[at_];
  }

  void interval() {
    const auto close = in_.find('}', at_);
    const bool counts =
        close != std::string_view::npos && close > at_ + 1 && in_.find_first_not_of("0123456789,", at_ + 1) == close;
    if (!counts) return copy();
    if (next_is("{,")) {  // {,n} is {0,n} to Oniguruma and plain text to older PCRE2
      out_ += "{0";
      ++at_;
    }
    copy(close + 1 - at_);
    if (next_is("+")) refuse("{n,m}+ (a repeated interval in Ruby's syntax, a possessive one in PCRE2's)");
  }

  std::string_view in_;
  const std::string& where_;
  std::string out_;
  std::size_t at_ = 0;
  bool in_class_ = false, no_words_ = false;
  std::size_t class_begin_ = 0;
  int inner_classes_ = 0;
};

}  // namespace

std::string pcre2_from_oniguruma(std::string_view pattern, const std::string& where) {
  return Translator(pattern, where).run();
}

}  // namespace headscope
