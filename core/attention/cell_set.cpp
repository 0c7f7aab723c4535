#include "core/attention/cell_set.h"

#include <fmt/format.h>

#include <charconv>

#include "core/attention/mask_entries.h"
#include "core/base/error.h"

namespace headscope {
namespace {

std::string range_text(Index first, Index last) {
  return first == last ? fmt::format("{}", first) : fmt::format("{}-{}", first, last);
}

/// "3" or "3-8"; false when it is neither.
bool read_range(std::string_view text, Index& first, Index& last) {
  const auto number = [](std::string_view digits, Index& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size() && value >= 0 && value <= CellSet::largest;
  };
  const auto dash = text.find('-');
  if (!number(text.substr(0, dash), first)) return false;
  if (dash == std::string_view::npos) {
    last = first;
    return true;
  }
  return number(text.substr(dash + 1), last) && last >= first;
}

}  // namespace

bool CellSet::contains(Index query, Index key) const {
  const auto row = rows_.find(query);
  return row != rows_.end() && row->second.contains(key);
}

void CellSet::erase(Index query, Index key) {
  const auto row = rows_.find(query);
  if (row == rows_.end()) return;
  row->second.erase(key);
  if (row->second.empty()) rows_.erase(row);
}

std::vector<MapCell> CellSet::cells() const {
  std::vector<MapCell> all;
  for (const auto& [query, keys] : rows_)
    for (const Index key : keys) all.push_back({query, key});
  return all;
}

std::string CellSet::text() const {
  std::string out;
  for (auto row = rows_.begin(); row != rows_.end();) {
    auto last = row, next = std::next(row);
    while (next != rows_.end() && next->first == last->first + 1 && next->second == row->second) last = next++;
    const std::string queries = range_text(row->first, last->first);
    for (auto key = row->second.begin(); key != row->second.end();) {
      const Index from = *key;
      Index to = from;
      while (++key != row->second.end() && *key == to + 1) ++to;
      out += fmt::format("{}{}:{}", out.empty() ? "" : " ", queries, range_text(from, to));
    }
    row = next;
  }
  return out;
}

CellSet CellSet::parse(std::string_view text, const std::string& where) {
  CellSet set;
  Index count = 0;
  for (const std::string_view word : mask_entries::words_of(text)) {
    const auto colon = word.find(':');
    Index q0 = 0, q1 = 0, k0 = 0, k1 = 0;
    if (colon == std::string_view::npos || !read_range(word.substr(0, colon), q0, q1) ||
        !read_range(word.substr(colon + 1), k0, k1))
      throw Error(where, fmt::format("cells as QUERY:KEY, either a range as 3-8, positions from 0 to {}", largest),
                  fmt::format("\"{}\"", word.substr(0, 60)));
    if ((q1 - q0 + 1) * (k1 - k0 + 1) > most_cells - count)
      throw Error(where, fmt::format("at most {} cells", most_cells), "more");
    count += (q1 - q0 + 1) * (k1 - k0 + 1);
    for (Index query = q0; query <= q1; ++query)
      for (Index key = k0; key <= k1; ++key) set.insert(query, key);
  }
  if (set.empty()) throw Error(where, "cells as QUERY:KEY, either a range as 3-8", "nothing");
  return set;
}

}  // namespace headscope
