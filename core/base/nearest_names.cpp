#include "core/base/nearest_names.h"

#include <algorithm>
#include <numeric>
#include <tuple>

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
  wanted = wanted.substr(0, looked_at);
  // "wte.weight" and "transformer.wte.weight" are many edits apart, yet one is what the other meant.
  const auto extends = [&](std::string_view name) {
    return name.starts_with(wanted) || name.ends_with(wanted) || wanted.ends_with(name);
  };
  std::vector<std::tuple<bool, std::size_t, std::size_t>> ranked;
  ranked.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::string_view name = std::string_view(names[i]).substr(0, looked_at);
    ranked.emplace_back(!extends(name), edit_distance(wanted, name), i);
  }
  count = std::min(count, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(count), ranked.end());
  std::string hint;
  for (std::size_t i = 0; i < count; ++i)
    hint += (i ? ", " : "nearest names: ") + names[std::get<2>(ranked[i])].substr(0, looked_at);
  return hint;
}

}  // namespace headscope
