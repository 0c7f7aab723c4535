#pragma once
// One head's attention over one text, immutable, with the sums that the softmax pass took while the row was in cache.
// Three storages behind one interface:
//   dense     every weight stored, (query, key) float32;
//   factored  q, k (after rotation), scale, rule and one log-sum-exp per row are kept, and any weight is exact:
//             weight(i, j) = exp(scale · q_i·k_j + bias(i, j) − lse_i). Memory grows with n, not n²;
//   computed  the same of layers that are no attention: what their weights are made of is kept (computed_cells.h).
// A map that was edited, or came from a file, is dense. Thread-safe (const).

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/trace/attention_rule.h"
#include "core/trace/computed_cells.h"
#include "core/trace/head_id.h"
#include "core/trace/row_blocks.h"
#include "core/trace/token_links.h"

namespace headscope {

/// What the numbers of a map are: probabilities (rows sum to 1, or to what a sink leaves: attention_rule.h), effective
/// weights of another mechanism (may be negative or unnormalised), probabilities with exact zeros, or what two maps
/// differ by.
enum class MapKind { probability, effective, sparse, difference };

/// Pooled picture of a map: cell (r, c) is the weight farthest from 0 of queries [r·bin, …) and keys [c·bin, …).
struct Overview {
  int bin = 1;    ///< cells per bin on both axes
  Tensor values;  ///< (⌈n_query / bin⌉, ⌈n_key / bin⌉)
};

/// What sums over a head's first rows were after whole tiles of them (row_stats.h), so that those of a text that goes
/// on need not begin anew.
struct PartialSums {
  Index rows = 0, n_key = 0;
  std::vector<double> column_mass, distance_mass;  ///< of a map of so many rows and keys; likewise below
};

/// Sums over one head's rows. Vectors of length n_query unless said. Entropies are in nats.
struct HeadStats {
  std::vector<double> log_sum_exp;  ///< of the biased scores (a float's step at 64 would move a weight by 4e-6);
                                    ///< empty when the scores were not seen (imported, edited)
  std::vector<float> entropy;       ///< −Σ_k p ln p over the keys
  std::vector<float>
      entropy_without_first;  ///< the same after key 0 is dropped and the row renormalised; NaN if nothing is left
  std::vector<float> max_weight;
  std::vector<float> min_weight;  ///< 0 or, where a weight is below, the least; empty when the scores were seen, since
                                  ///< no weight of a softmax is
  std::vector<std::int32_t> max_key;        ///< key of the largest weight (the first of equals); −1 for an empty row
  std::vector<float> first;                 ///< weight on key 0
  std::vector<float> duplicate, induction;  ///< weight on the row's TokenLinks; empty without links
  std::vector<double> column_mass;          ///< (key) Σ over queries
  std::vector<double> distance_mass;  ///< (n_query + n_key − 1) Σ of weights by distance: entry d + n_key − 1 − offset
                                      ///< holds distance d = (offset + query) − key
  Overview overview;
  std::vector<std::shared_ptr<const PartialSums>>
      partial;  ///< of the last whole tiles; empty unless they were asked for

  bool any_negative() const;  ///< whether some weight is below 0
};

class AttentionMap {
 public:
  struct Place {
    int layer = 0, head = 0, kv_head = 0;
    Index offset = 0;  ///< absolute position of query row 0 (cached tokens before it)
    MapKind kind = MapKind::probability;
    /// Queries are of another text than keys (cross-attention): query i has nothing to do with key i.
    bool between_texts = false;
  };

  /// `weights` (query, key). `rule` may be null when the mask is not known (imported maps).
  static AttentionMap dense(Place place, Tensor weights, std::shared_ptr<const AttentionRule> rule,
                            std::shared_ptr<const HeadStats> stats);
  static AttentionMap dense(Place place, RowBlocks weights, std::shared_ptr<const AttentionRule> rule,
                            std::shared_ptr<const HeadStats> stats);
  /// `q` (query, d_head), `k` (key, d_head): views into the recorded tensors. stats->log_sum_exp must be filled.
  static AttentionMap factored(Place place, Tensor q, Tensor k, float scale, std::shared_ptr<const AttentionRule> rule,
                               std::shared_ptr<const HeadStats> stats);

  /// Of a whole text: as many queries as `cells` has rows, and keys as it has columns.
  static AttentionMap computed(Place place, std::shared_ptr<const ComputedCells> cells,
                               std::shared_ptr<const AttentionRule> rule, std::shared_ptr<const HeadStats> stats);

  const Place& place() const { return place_; }
  int layer() const { return place_.layer; }
  HeadId id() const { return {layer(), head()}; }
  int head() const { return place_.head; }
  Index n_query() const { return n_query_; }
  Index n_key() const { return n_key_; }
  bool is_factored() const { return q_.defined(); }
  /// Whether every weight stands in memory: false where one costs a product or more (factored, computed).
  bool is_dense() const { return weights_.defined(); }
  const RowBlocks& weights() const { return weights_; }  ///< not defined unless is_dense()
  /// The factors, for views that show how a score comes about; undefined unless is_factored().
  const Tensor& q() const { return q_; }  ///< (query, d_head), after rotation
  const Tensor& k() const { return k_; }  ///< (key, d_head), after rotation
  float scale() const { return scale_; }  ///< what q·k is multiplied by; 1 unless is_factored()
  /// What this map itself keeps, statistics included; q and k, and what cells are computed of, excluded, which maps of
  /// a layer share.
  std::size_t bytes() const;

  float weight(Index query, Index key) const;          ///< 0 for a masked cell
  bool masked(Index query, Index key) const;           ///< false when the rule is not known
  void row(Index query, std::span<float> out) const;   ///< out.size() == n_key()
  Tensor tile(KeyRange queries, KeyRange keys) const;  ///< (queries, keys)
  Tensor to_dense() const { return tile({0, n_query_}, {0, n_key_}); }
  /// The same pooled: cell (r, c) is that weight farthest from 0 of queries queries.begin + [r·bin, …) and keys
  /// keys.begin + [c·bin, …), NaN where one of them is NaN. The weights never stand in memory together.
  Tensor pooled(KeyRange queries, KeyRange keys, Index bin) const;
  /// False when the mask hides every key of these from every query: all weights are 0, and nothing need be computed.
  bool sees(KeyRange queries, KeyRange keys) const;
  struct Cell {
    Index query = 0, key = 0;
    float weight = 0;
  };
  /// The weight furthest from 0 among those that are not masked, the first of equals in reading order; nullopt when all
  /// are masked or NaN.
  std::optional<Cell> strongest(KeyRange queries, KeyRange keys) const;
  /// Pooled to at most max_cells on each side; exact (bin 1) when the map is small enough. Never loses a strong weight.
  /// A map that is not dense and too long for that answers from the overview stored during the run, which may be
  /// coarser than asked.
  Overview overview(Index max_cells) const;

  const HeadStats& stats() const { return *stats_; }
  const AttentionRule* rule() const { return rule_.get(); }

 private:
  /// The weights, of a map that is not dense, written to `out`, rows `stride` apart.
  void compute(KeyRange queries, KeyRange keys, float* out, Index stride) const;

  Place place_;
  Index n_query_ = 0, n_key_ = 0;
  RowBlocks weights_;                           // dense
  Tensor q_, k_;                                // factored
  std::shared_ptr<const ComputedCells> cells_;  // computed
  float scale_ = 1;
  std::shared_ptr<const AttentionRule> rule_;
  std::shared_ptr<const HeadStats> stats_;
};

/// How weights are pooled: of `cell` and `weight` the one farther from 0 stays, of equals the positive, and NaN stays
/// NaN. Of weights that are nowhere negative, that is the larger. A cell of nothing is 0.
void pool_weight(float& cell, float weight);
/// Values of squares of `bin` cells pooled; the last row and column of squares may be narrower.
Tensor pooled(const Tensor& values, Index bin);

/// The stored overview has at most this many cells on a side; longer maps are pooled to it during the run.
inline constexpr Index stored_overview_cells = 128;

/// Statistics of a map known only by its weights (imported, opened from a file, edited). `links` may be null.
std::shared_ptr<const HeadStats> stats_of_weights(const Tensor& weights, const TokenLinks* links, Index offset = 0);

}  // namespace headscope
