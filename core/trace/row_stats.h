#pragma once
// Softmax and the sums over its rows, in one pass while the row is in cache. The same sums serve maps that are known
// only by their weights (imported or edited). Rows are handed out in tiles, which may be filled by different threads;
// partial sums are added in tile order, so the result does not depend on the threads.

#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "core/trace/attention_map.h"

namespace headscope {

inline constexpr float no_sink = -std::numeric_limits<float>::infinity();

/// Statistics that go on from those of a map whose first rows are the same.
struct KnownRows {
  const HeadStats* stats = nullptr;  ///< of that map, made with `keep_partial`; null = nothing is known
  Index rows = 0;                    ///< so many of its rows are those of this one
  bool keep_partial = false;         ///< so that a longer text can go on from these
};

class HeadStatsBuilder {
 public:
  /// One head's rows. `links` may be null.
  /// `have_scores`: rows come by softmax() and log_sum_exp is kept; else by weights().
  /// `kept` (query, key), may be undefined: where each row's weights are written, zeros where it has no key. The
  /// overview of a small map is then the map itself.
  /// `known`: rows before first_row(), whole tiles, are taken over and need not come, but for those of `kept`. For maps
  /// of whole texts (offset 0), no row of which sees a later key.
  HeadStatsBuilder(Index n_query, Index n_key, Index offset, const TokenLinks* links, bool have_scores,
                   Tensor kept = {}, const KnownRows& known = {});

  Index tile_rows() const { return tile_rows_; }  ///< queries per tile; whole bins of the overview
  Index first_row() const { return first_tile_ * tile_rows_; }
  int tiles() const { return static_cast<int>((n_query_ + tile_rows_ - 1) / tile_rows_); }

  /// The rows [tile · tile_rows(), …) in ascending order, from one thread.
  class Tile {
   public:
    Tile(HeadStatsBuilder& builder, int tile);
    ~Tile();
    Tile(const Tile&) = delete;
    Tile& operator=(const Tile&) = delete;
    /// scores → weights in place, for keys [keys.begin, keys.begin + row.size()); -infinity = masked. A row with no
    /// finite score becomes all zero. `sink` (AttentionRule::sink) counts as one score more, which is no key.
    /// REQUIRES have_scores.
    void softmax(Index query, KeyRange keys, std::span<float> row, float sink = no_sink);
    /// A row known by its weights only, over all its keys.
    void weights(Index query, std::span<float> row);

   private:
    void accumulate(Index query, KeyRange keys, float* row, float factor);
    void keep(Index query, KeyRange keys, const float* row);
    void pool_rows(Index bin_row);
    HeadStatsBuilder& builder_;
    Index first_, rows_;
    std::vector<float>& column_;    // (key)
    std::vector<float>& diagonal_;  // (rows + n_key − 1) by key − (query − first) + rows − 1
    std::vector<float> peak_;       // (key) farthest from 0 of the rows of the current bin, when it has more than one
  };

  /// Adds the partial sums up. Call once, after all tiles from first_row() on.
  std::shared_ptr<const HeadStats> finish();

 private:
  friend class Tile;
  void take_over(const HeadStats& before, Index known);
  Index n_query_, n_key_, offset_, tile_rows_, first_tile_ = 0;
  bool keep_partial_ = false;
  const TokenLinks* links_;
  Tensor kept_;  // (query, key) or undefined
  std::shared_ptr<HeadStats> stats_;
  std::vector<std::vector<float>> column_, diagonal_;  // per tile
};

/// stats_of_weights() of rows in blocks. `known`: as a HeadStatsBuilder takes it.
std::shared_ptr<const HeadStats> stats_of_weights(const RowBlocks& weights, const TokenLinks* links, Index offset,
                                                  const KnownRows& known = {});

/// Softmax of one row in place, without statistics; a row with no finite score becomes all zero.
void softmax_row(std::span<float> row, float sink = no_sink);

}  // namespace headscope
