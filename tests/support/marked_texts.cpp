#include "tests/support/marked_texts.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/file.h"
#include "core/base/utf8.h"

namespace headscope::testing {

namespace fs = std::filesystem;

namespace {

bool in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}

/// Goes through a file of C++ word by word.
class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  bool ended() const { return at_ >= source_.size(); }
  int line() const { return 1 + static_cast<int>(std::ranges::count(source_.substr(0, at_), '\n')); }
  char here() const { return at_ < source_.size() ? source_[at_] : '\0'; }
  void skip(std::size_t count = 1) { at_ = std::min(at_ + count, source_.size()); }

  /// Past spaces and comments.
  void skip_space() {
    while (!ended()) {
      if (std::isspace(static_cast<unsigned char>(here())))
        skip();
      else if (rest().starts_with("//"))
        to(source_.find('\n', at_));
      else if (rest().starts_with("/*"))
        to(source_.find("*/", at_ + 2)), skip(2);
      else
        return;
    }
  }
  /// A name or a number here, past it; "" where there is none. A prefix of a literal is no name: it stays.
  std::string_view name() {
    const std::size_t begin = at_;
    while (!ended() && in_name(here())) {
      skip();
      // 1'000: no character, though an apostrophe stands there
      if (here() == '\'' && std::isdigit(static_cast<unsigned char>(source_[begin]))) skip();
    }
    return source_.substr(begin, at_ - begin);
  }
  /// A string literal here, past it; nullopt where there is none.
  std::optional<std::string> literal() {
    const std::size_t begin = at_;
    for (const std::string_view prefix : {"u8", "R", "u8R", "L", "u", "U", ""})
      if (rest().starts_with(std::string(prefix) + '"')) {
        skip(prefix.size() + 1);
        return prefix.ends_with('R') ? raw() : plain('"');
      }
    at_ = begin;
    return std::nullopt;
  }
  /// A character or string literal here, whose content does not matter.
  bool skip_literal() {
    if (here() == '\'') {
      skip();
      plain('\'');
      return true;
    }
    return literal().has_value();
  }
  /// The last character before here that is no space: '.' of "console.say".
  char before(std::size_t length) const {
    for (std::size_t i = at_ - length; i > 0; --i)
      if (!std::isspace(static_cast<unsigned char>(source_[i - 1])))
        return source_[i - 1] == '>' && i > 1 && source_[i - 2] == '-' ? '.' : source_[i - 1];
    return '\0';
  }

 private:
  std::string_view rest() const { return source_.substr(std::min(at_, source_.size())); }
  void to(std::size_t place) { at_ = std::min(place, source_.size()); }

  std::string raw() {
    const std::size_t open = source_.find('(', at_);
    const std::string end = ")" + std::string(source_.substr(at_, open - at_)) + "\"";
    const std::size_t close = source_.find(end, open);
    const std::string text(source_.substr(open + 1, close - open - 1));
    to(close), skip(end.size());
    return text;
  }
  std::string plain(char quote) {
    std::string text;
    while (!ended() && here() != quote) {
      if (here() != '\\') {
        text += here();
        skip();
        continue;
      }
      skip();
      escaped(text);
    }
    skip();
    return text;
  }
  void escaped(std::string& text) {
    const char c = here();
    skip();
    const auto digits = [&](std::size_t most, int base) {
      std::string number;
      while (number.size() < most && std::isxdigit(static_cast<unsigned char>(here())) &&
             (base == 16 || (here() >= '0' && here() <= '7')))
        number += here(), skip();
      return std::stoul(number, nullptr, base);
    };
    constexpr std::string_view letters = "abfnrtv\n", meanings = "\a\b\f\n\r\t\v";
    if (c == 'x')
      text += static_cast<char>(digits(64, 16));
    else if (c == 'u' || c == 'U')
      text += to_utf8(static_cast<std::int32_t>(digits(c == 'u' ? 4 : 8, 16)));
    else if (c >= '0' && c <= '7')
      --at_, text += static_cast<char>(digits(3, 8));
    else if (const auto at = letters.find(c); at < meanings.size())
      text += meanings[at];
    else if (c != '\n')  // a line that goes on in the next one
      text += c;
  }

  std::string_view source_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<MarkedText> marked_texts(std::string_view source, std::vector<std::string>& faults) {
  std::vector<MarkedText> out;
  Reader reader(source);
  while (reader.skip_space(), !reader.ended()) {
    if (reader.skip_literal()) continue;
    const std::string_view name = reader.name();
    if (name.empty()) {
      reader.skip();
      continue;
    }
    if ((name != "said" && name != "say" && name != "to_say" && name != "say_later") ||
        reader.before(name.size()) == '.')
      continue;
    const int line = reader.line();
    reader.skip_space();
    if (reader.here() != '(') continue;
    reader.skip(), reader.skip_space();
    std::optional<std::string> part = reader.literal();
    if (!part) continue;  // a variable, or a declaration
    MarkedText found{"", line};
    for (; part; part = reader.literal()) found.text += *part, reader.skip_space();
    if (reader.here() == ')' || (reader.here() == ',' && name.starts_with("say")))
      out.push_back(std::move(found));
    else
      faults.push_back("line " + std::to_string(line) + ": " + std::string(name) + "(\"" + found.text +
                       "\" …): expected literals alone, found another operand");
  }
  return out;
}

std::map<std::string, std::string> marked_texts_of(const fs::path& sources, std::vector<std::string>& faults) {
  std::vector<fs::path> files;
  for (const char* folder : {"app", "core", "viz"})
    for (const fs::directory_entry& each : fs::recursive_directory_iterator(sources / folder))
      if ((each.path().extension() == ".cpp" || each.path().extension() == ".h") &&
          each.path().parent_path() != sources / "app/cli")  // which speaks English, and has a say() of its own
        files.push_back(each.path());
  std::ranges::sort(files);
  std::map<std::string, std::string> out;
  for (const fs::path& file : files) {
    const std::string name = file.lexically_relative(sources).generic_string();
    std::vector<std::string> wrong;
    for (const MarkedText& each : marked_texts(read_file(file), wrong))
      out.try_emplace(each.text, name + ":" + std::to_string(each.line));
    for (const std::string& each : wrong) faults.push_back(name + ", " + each);
  }
  const auto add = [&](const std::string& name, const char* list, const char* key) {
    const nlohmann::json data = nlohmann::json::parse(read_file(sources / name));
    for (const auto& each : data.at(list)) out.try_emplace(each.at(key).get<std::string>(), name);
  };
  add("assets/head_classes.json", "classes", "title");
  add("models/manifest.json", "models", "why");
  return out;
}

}  // namespace headscope::testing
