#pragma once
// The cells of a map from the strongest on, in exact order, without going through the map: the largest weight of every
// row is known from the run, so that only rows whose turn has come are computed. Thread rule: one thread at a time.

#include <optional>
#include <queue>
#include <stop_token>
#include <vector>

#include "core/trace/attention_map.h"

namespace headscope {

class StrongCells {
 public:
  /// Of the map, or of one row of it.
  explicit StrongCells(AttentionMap map, std::optional<Index> row = std::nullopt);

  /// The cell of this rank, 0 = the strongest: furthest from 0, the first of equals in reading order. nullopt past the
  /// last one that is not 0. What lies before is found first and kept. Throws Cancelled when `stop` is asked for.
  std::optional<AttentionMap::Cell> at(Index rank, const std::stop_token& stop = {});

 private:
  /// The rest of a row, of which `taken` cells stand in the queue or have been found, all no weaker than `bound`; or,
  /// with a key, one cell.
  struct Entry {
    float bound = 0, weight = 0;
    Index query = 0, key = -1, taken = 0;
    bool operator<(const Entry& other) const;  ///< comes later
  };
  void begin(const std::stop_token& stop);
  void expand(const Entry& rest);

  AttentionMap map_;
  std::optional<Index> row_;
  bool begun_ = false;
  std::priority_queue<Entry> queue_;
  std::vector<AttentionMap::Cell> found_;
  std::vector<float> weights_;  // of a row
  std::vector<Index> order_;    // of its keys
};

}  // namespace headscope
