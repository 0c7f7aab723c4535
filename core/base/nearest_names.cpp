#include "core/base/nearest_names.h"

#include <algorithm>
#include <numeric>

namespace headscope {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // One row of the table at a time: row[j] is the distance between the prefixes a[0, i) and b[0, j).
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string nearest_names_hint(std::string_view wanted, std::span<const std::string> names, std::size_t count) {
  constexpr std::size_t looked_at = 200;  // a file may bring names of any length
  std::vector<std::pair<std::size_t, std::size_t>> ranked;
  ranked.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    ranked.emplace_back(edit_distance(wanted.substr(0, looked_at), std::string_view(names[i]).substr(0, looked_at)), i);
  count = std::min(count, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count), ranked.end());
  std::string hint;
  for (std::size_t i = 0; i < count; ++i)
    hint += (i ? ", " : "nearest names: ") + names[ranked[i].second].substr(0, looked_at);
  return hint;
}

}  // namespace headscope
