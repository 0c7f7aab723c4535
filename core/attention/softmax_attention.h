#pragma once
// Scaled dot-product attention (Vaswani et al., Attention Is All You Need, 2017) with its maps recorded:
//   scores = cap(scale · q kᵀ) + bias,  pattern = softmax over the visible keys (and a sink),  z = pattern · v,
// for every head of one layer; with fewer key heads than query heads, neighbours share (Ainslie et al., GQA, 2023).
// Cost: 2 · heads · (d_head + d_value) operations per visible cell, computed in blocks of rows that stay in cache;
// masked blocks cost nothing. Unless somebody wants scores or pattern, no n² matrix is ever stored.

#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "core/tensor/backend.h"
#include "core/tensor/growing_panels.h"
#include "core/trace/attention_map.h"
#include "core/trace/capture.h"
#include "core/trace/tap.h"

namespace headscope {

struct AttentionInput {
  Tensor q;     ///< (query, head, d_head), after rotation; unit inner stride
  Tensor k, v;  ///< (key, kv_head, d_head), after rotation, and (key, kv_head, d_value)
  /// Several texts one after another, each seeing itself only: their lengths. Empty = one. With several, offset is 0.
  std::span<const Index> lengths = {};
  std::span<const Index> key_lengths = {};  ///< of the texts that they look at, where these are others; else empty
  Index mapped = 0;                         ///< whose maps are built; −1 = every text's
  float scale = 1;
  std::shared_ptr<const AttentionRule> rule;
  float cap = 0;                        ///< > 0: scores are bent to cap · tanh(score ÷ cap)
  std::span<const double> slopes = {};  ///< of ALiBi, by head; empty = none
  double slope_unit = 0;                ///< HeadRule::slope_unit
  std::span<const std::shared_ptr<const BucketBias>> buckets = {};         ///< of T5, by head; empty = none
  std::span<const std::shared_ptr<const DistanceVectors>> distances = {};  ///< of DeBERTa, by head; empty = none
  bool between_texts = false;  ///< queries are of another text than keys (cross-attention)
  Tensor sinks;                ///< (head): AttentionRule::sink, learned; undefined = none
  Index offset = 0;            ///< absolute position of query 0
  /// So many of the first queries are there for the maps alone: they have no row of z. `before`, where it is not empty,
  /// are this layer's maps, by head, of a pass over a text that begins with the same rows: statistics go on from
  /// theirs.
  Index known = 0;
  std::span<const AttentionMap> before = {};
  bool goes_on = false;  ///< maps are kept so that a later pass can go on from them
  /// Of k, kept by who keeps k from pass to pass, so that only what is new is packed; may be null.
  GrowingPanels* key_panels = nullptr;
  Index room = 0;  ///< so many keys there may be in the end, for key_panels; 0 = as there are
  int layer = 0;
  MapStorage storage = MapStorage::none;  ///< none, dense or factored
  bool statistics = true;                 ///< of maps; without them dense maps have weights alone (MapRequest)
  const TokenLinks* links = nullptr;      ///< of the whole text; may be null
  float entropy_price = 0;  ///< with a tape: what a nat of one row's entropy, without its first key, adds to
                            ///< the number that is differentiated
};

struct AttentionOutput {
  Tensor z;                        ///< (query − known, head, d_value)
  std::vector<AttentionMap> maps;  ///< one per head (text by text when several are mapped), empty with storage none
};

/// With a tape the patterns are kept for the way back, heads · query · key floats per text, unless a device computes
/// that finds them again (AttentionKernel::record()).
/// `tap` (may be null) is asked for each head's rule and temperature. Sites attn_scores and pattern, (head, query,
/// key), go through it, text by text; a map whose scores or weights a tap replaced is stored dense, whatever was asked.
/// Throws Cancelled, and Error when a tap returns another shape.
AttentionOutput softmax_attention(const AttentionInput& input, Backend& backend, Tap* tap, std::stop_token stop);

}  // namespace headscope
