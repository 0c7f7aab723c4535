#include "core/text/vocabulary.h"

#include <fmt/format.h>

#include <charconv>

#include "core/base/error.h"
#include "core/base/excerpt.h"
#include "core/base/json.h"
#include "core/base/nth.h"
#include "core/io/json_view.h"

namespace headscope {

Vocabulary::Vocabulary(const std::string& where, std::vector<Entry> entries) {
  if (entries.empty()) throw Error(where, "at least one token", "an empty vocabulary");
  const auto limit = static_cast<std::int64_t>(2 * entries.size() + 65536);
  std::int64_t largest = 0;
  for (const Entry& entry : entries) {
    if (entry.id < 0 || entry.id >= limit)
      throw Error(where, fmt::format("ids from 0 to at most {} for {} tokens", limit - 1, entries.size()),
                  fmt::format("id {} for '{}'", entry.id, entry.spelling));
    if (entry.spelling.empty())
      throw Error(where, "a spelling for every token", fmt::format("id {} with none", entry.id));
    largest = std::max(largest, entry.id);
  }
  spellings_.resize(static_cast<std::size_t>(largest) + 1);
  ids_.reserve(entries.size());
  for (Entry& entry : entries) {
    std::string& place = nth(spellings_, entry.id);
    if (!place.empty())
      throw Error(where, "one token per id",
                  fmt::format("id {} for both '{}' and '{}'", entry.id, place, entry.spelling));
    place = std::move(entry.spelling);
    if (!ids_.emplace(place, static_cast<std::int32_t>(entry.id)).second)
      throw Error(where, "one id per token", fmt::format("ids {} and {} for '{}'", ids_.at(place), entry.id, place));
  }
}

std::optional<std::int32_t> Vocabulary::find(std::string_view spelling) const {
  const auto found = ids_.find(spelling);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

std::optional<unsigned char> byte_token(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling.back() != '>') return std::nullopt;
  unsigned value = 0;
  const char* end = spelling.data() + 5;
  const auto [stop, error] = std::from_chars(spelling.data() + 3, end, value, 16);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return static_cast<unsigned char>(value);
}

std::vector<Vocabulary::Entry> read_vocab_json(const std::filesystem::path& path) {
  const nlohmann::json document = read_json_file(path);
  std::vector<Vocabulary::Entry> entries;
  entries.reserve(document.size());
  for (const auto& [spelling, id] : document.items()) {
    if (!id.is_number_integer())
      JsonView(id, fmt::format("{}: {}", path.string(), excerpt(spelling))).integer();  // throws
    entries.push_back({spelling, id.get<std::int64_t>()});
  }
  return entries;
}

}  // namespace headscope
