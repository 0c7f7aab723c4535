#include "core/base/words.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <mutex>
#include <optional>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/file.h"
#include "core/base/json.h"

namespace headscope {

namespace {

/// "{}" and "{:.{}f}" of a form as "{0}" and "{1:.{2}f}", sorted; nothing where its braces do not match, or where some
/// fields are numbered and others not, which fmt does not format.
std::optional<std::vector<std::string>> fields_of(std::string_view form) {
  std::vector<std::string> fields;
  std::size_t next = 0;
  bool numbered = false;
  const auto number = [&](std::string_view name) {
    numbered |= !name.empty();
    return name.empty() ? std::to_string(next++) : std::string(name);
  };
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '{' && form[i] != '}') continue;
    if (i + 1 < form.size() && form[i + 1] == form[i]) {
      ++i;
      continue;
    }
    if (form[i] == '}') return std::nullopt;
    const std::size_t end = form.find_first_of("{}:", i + 1);
    if (end == form.npos || form[end] == '{') return std::nullopt;
    std::string field = "{" + number(form.substr(i + 1, end - i - 1));
    for (i = end; form[i] != '}'; ++i) {
      field += form[i];
      if (form[i] == '{') {  // a width or precision that is given apart
        const std::size_t close = form.find_first_of("{}", i + 1);
        if (close == form.npos || form[close] == '{') return std::nullopt;
        field += number(form.substr(i + 1, close - i - 1)) + "}";
        i = close;
      }
      if (i + 1 == form.size()) return std::nullopt;
    }
    fields.push_back(field + "}");
  }
  if (numbered && next > 0) return std::nullopt;
  std::ranges::sort(fields);
  fields.erase(std::ranges::unique(fields).begin(), fields.end());  // a language may say something twice
  return fields;
}

std::string listed(const std::optional<std::vector<std::string>>& fields) {
  if (!fields) return "braces that do not match, or numbered fields beside others";
  return fields->empty() ? "none" : fmt::format("{}", fmt::join(*fields, " "));
}

struct WordsInUse {
  WordTable table;
  std::string language;
};
std::atomic<const WordsInUse*> in_use{nullptr};
std::atomic<std::uint64_t> generation{0};

const std::string* found_in_use(std::string_view english) {
  const WordsInUse* words = in_use;
  return words ? words->table.find(english) : nullptr;
}

}  // namespace

WordTable::WordTable(const Entries& entries) {
  for (const auto& [english, text] : entries) {
    const auto expected = fields_of(english), found = fields_of(text);
    if (text.empty()) continue;
    if (expected == found)
      entries_.emplace(english, text);
    else
      refused_.push_back({english, fmt::format("expected the fields {}, found {}", listed(expected), listed(found))});
  }
}

WordTable WordTable::read(const std::filesystem::path& file) {
  const nlohmann::json table = nlohmann::json::parse(read_file(file, 16 << 20), nullptr, false);
  if (!table.is_object()) throw Error(file.string(), "a table of words, {\"English\": \"…\"}", "something else");
  Entries entries;
  for (const auto& [english, text] : table.items()) {
    if (!text.is_string())
      throw Error(file.string(), fmt::format("a text for “{}”", excerpt(english)), text.type_name());
    entries.emplace(english, text.get<std::string>());
  }
  return WordTable(entries);
}

const std::string* WordTable::find(std::string_view english) const {
  const auto found = entries_.find(english);
  return found == entries_.end() ? nullptr : &found->second;
}

void use_words(WordTable table, std::string language) {
  static std::mutex mutex;
  static std::deque<WordsInUse> all;
  const std::lock_guard lock(mutex);
  in_use = table.entries().empty() ? nullptr : &all.emplace_back(std::move(table), std::move(language));
  ++generation;
}

std::uint64_t words_generation() {
  return generation;
}

std::string language_of_words() {
  const WordsInUse* words = in_use;
  return words ? words->language : "";
}

const char* said(const char* english) {
  const std::string* text = found_in_use(english);
  return text ? text->c_str() : english;
}

std::string said(const std::string& english) {
  return std::string(said_view(english));
}

std::string_view said_view(std::string_view english) {
  const std::string* text = found_in_use(english);
  return text ? *text : english;
}

Worded::Worded(std::string text) {
  if (!text.empty()) *this = made_by([text = std::move(text)] { return text; });
}

Worded Worded::entry(std::string english) {
  if (english.empty()) return {};
  return made_by([english = std::move(english)] { return said(english); });
}

Worded Worded::made_by(std::function<std::string()> make) {
  Worded out;
  out.make_ = std::make_shared<const std::function<std::string()>>(std::move(make));
  return out;
}

Worded& Worded::operator+=(const Worded& behind) {
  if (empty()) return *this = behind;
  if (!behind.empty()) *this = made_by([front = *this, behind] { return front.text() + behind.text(); });
  return *this;
}

}  // namespace headscope
