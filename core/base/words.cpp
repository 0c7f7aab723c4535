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

// "{}" and "{:.2f}" of a form as "{0}" and "{1:.2f}", sorted; nothing where its braces do not match.
std::optional<std::vector<std::string>> fields_of(std::string_view form) {
  std::vector<std::string> fields;
  std::size_t next = 0;
  for (std::size_t i = 0; i < form.size(); ++i) {
    if (form[i] != '{' && form[i] != '}') continue;
    if (i + 1 < form.size() && form[i + 1] == form[i]) {
      ++i;
      continue;
    }
    const std::size_t begin = i + 1;
    for (int open = form[i] == '{'; open > 0;) {
      i = form.find_first_of("{}", i + 1);
      if (i == form.npos) return std::nullopt;
      open += form[i] == '{' ? 1 : -1;
    }
    if (i < begin) return std::nullopt;  // "}" alone
    const std::string_view field = form.substr(begin, i - begin), name = field.substr(0, field.find(':'));
    const std::string number = name.empty() ? std::to_string(next++) : std::string(name);
    fields.push_back(fmt::format("{{{}{}}}", number, field.substr(name.size())));
    next += static_cast<std::size_t>(std::ranges::count(field, '{'));  // a width or precision that is given apart
  }
  std::ranges::sort(fields);
  fields.erase(std::ranges::unique(fields).begin(), fields.end());  // a language may say something twice
  return fields;
}

std::string listed(const std::optional<std::vector<std::string>>& fields) {
  if (!fields) return "braces that do not match";
  return fields->empty() ? "none" : fmt::format("{}", fmt::join(*fields, " "));
}

std::atomic<const WordTable*> in_use{nullptr};

}  // namespace

WordTable::WordTable(const Entries& entries) {
  for (const auto& [english, text] : entries) {
    const auto expected = fields_of(english), found = fields_of(text);
    if (text.empty()) continue;
    if (expected == found)
      entries_.emplace(english, text);
    else
      refused_.push_back(
          fmt::format("“{}”: expected the fields {}, found {}", excerpt(english), listed(expected), listed(found)));
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

void use_words(WordTable table) {
  static std::mutex mutex;
  static std::deque<WordTable> all;
  const std::lock_guard lock(mutex);
  in_use = table.entries().empty() ? nullptr : &all.emplace_back(std::move(table));
}

const char* said(const char* english) {
  const WordTable* table = in_use;
  const std::string* text = table ? table->find(english) : nullptr;
  return text ? text->c_str() : english;
}

std::string said(const std::string& english) {
  return std::string(said_view(english));
}

std::string_view said_view(std::string_view english) {
  const WordTable* table = in_use;
  const std::string* text = table ? table->find(english) : nullptr;
  return text ? *text : english;
}

}  // namespace headscope
