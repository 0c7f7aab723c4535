#pragma once
// One map at every zoom. Level L has cells of 2^L × 2^L weights, each the one of them farthest from 0 (pool_weight),
// aligned to the map: at level 0 a cell is a weight. Tiles are computed when they are asked for, those in the middle
// first, and kept: a whole level of at most most_kept cells on a side and all above it, which are pooled from it, for
// good; of the finer ones the tiles that were looked at last. Until a tile is there, what lies above it answers, at
// last the overview that the run has stored: nothing is ever blank. Thread-safe; who comes second waits.

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <tuple>
#include <vector>

#include "core/trace/attention_map.h"

namespace headscope {

class ThreadPool;

class MapPyramid {
 public:
  static constexpr Index tile_cells = 128;                ///< on a side
  static constexpr Index most_kept = 4096;                ///< cells on a side of the finest level that stays
  static constexpr std::size_t fine_bytes = 64ull << 20;  ///< of the tiles below it

  explicit MapPyramid(AttentionMap map);

  const AttentionMap& map() const { return map_; }
  static Index bin(int level) { return Index{1} << level; }
  /// The smallest bin of any level that shows `longest` weights by at most `max_cells` cells.
  static Index bin_for(Index longest, Index max_cells);
  /// Its level, as far as levels go.
  int level_for(Index longest, Index max_cells) const;
  Index rows(int level) const { return cells(map_.n_query(), level); }
  Index columns(int level) const { return cells(map_.n_key(), level); }

  /// A part of a level, in its cells.
  struct Window {
    int level = 0;
    KeyRange rows, columns;
  };
  /// Computes what a window lacks, on `pool` if there is one, for as long as `go_on` says, which is asked before every
  /// few tiles. True when nothing is lacking. REQUIRES a window inside its level.
  bool refine(const Window& window, const std::function<bool()>& go_on, ThreadPool* pool = nullptr);

  struct Cells {
    Tensor values;                     ///< (row, column)
    std::vector<std::uint8_t> coarse;  ///< row-major, 1 = no nearer to 0 than the cell's value, which is not known yet;
                                       ///< empty = all are known
  };
  Cells read(const Window& window);
  std::size_t bytes() const;  ///< what is kept

 private:
  enum class Known : std::uint8_t { no, empty, yes };  ///< empty: nothing is seen there, all weights are 0
  using Place = std::tuple<int, Index, Index>;         ///< level, and row and column of a tile
  struct Fine {
    Tensor values;  ///< undefined: empty
    std::list<Place>::iterator age;
  };

  static Index cells(Index weights, int level) { return (weights + bin(level) - 1) >> level; }
  Index across(int level) const { return (columns(level) + tile_cells - 1) / tile_cells; }
  Known& leaf(Index row, Index column) { return leaves_[static_cast<std::size_t>(row * across(base_) + column)]; }
  KeyRange span(Index tile, int level, Index weights) const;
  std::vector<Place> lacking(const Window& window);
  void keep(const Place& place, Tensor values);
  void raise_from(Index row, Index column);
  float above(int level, Index row, Index column);
  float from_overview(int level, Index row, Index column) const;

  AttentionMap map_;
  int base_ = 0;                ///< the finest level that is kept whole
  std::vector<Known> leaves_;   ///< tiles of the base, row-major
  std::vector<Tensor> levels_;  ///< base_ and above, (row, column); written where a leaf is known
  std::map<Place, Fine> fine_;
  std::list<Place> ages_;  ///< of fine_, the one looked at last first
  std::size_t fine_kept_ = 0, leaves_kept_ = 0;
  mutable std::mutex lock_;
};

}  // namespace headscope
