#pragma once
// A set of cells of an attention map: what a hand paints. Written as "5:3 5:6-8 10-12:0", queries before the colon,
// keys after it, both ends of a range included.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

struct MapCell {
  Index query = 0, key = 0;
  auto operator<=>(const MapCell&) const = default;
};

class CellSet {
 public:
  static constexpr Index most_cells = 1 << 20;
  static constexpr Index largest = 1 << 20;  ///< of a position

  bool contains(Index query, Index key) const;
  void insert(Index query, Index key) { rows_[query].insert(key); }
  void erase(Index query, Index key);
  bool empty() const { return rows_.empty(); }
  std::vector<MapCell> cells() const;  ///< in order

  /// Ranges as long as they can be, rows that are alike written once; parse() reads it back to an equal set.
  std::string text() const;
  /// Throws Error at `where`.
  static CellSet parse(std::string_view text, const std::string& where);

  bool operator==(const CellSet&) const = default;

 private:
  std::map<Index, std::set<Index>> rows_;  // no empty row
};

}  // namespace headscope
