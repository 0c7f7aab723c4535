#pragma once
// What a mask leaves of attention over n tokens: cells, work, what a cache has to keep, rows that see nothing.

#include <vector>

#include "core/trace/attention_rule.h"

namespace headscope {

struct MaskFacts {
  Index tokens = 0;
  Index cells = 0;                ///< visible ones of the n · n
  Index causal_cells = 0;         ///< n (n + 1) / 2, what a plain decoder computes
  Index ahead = 0;                ///< visible cells above the diagonal
  std::vector<Index> empty_rows;  ///< queries without a key: their weights are all zero
  /// Keys of the text that some one of the next n queries may still see: what a cache must keep. With a mask that looks
  /// ahead this is all there is to say about the past; the future cannot be kept.
  Index kept_keys = 0;

  double share() const { return tokens > 0 ? static_cast<double>(cells) / static_cast<double>(tokens * tokens) : 0; }
  double causal_share() const {
    return causal_cells > 0 ? static_cast<double>(cells) / static_cast<double>(causal_cells) : 0;
  }
  /// Multiply-adds counted as two: q·k and weight·v of every visible cell.
  double operations(Index d_head, Index d_value) const { return 2.0 * static_cast<double>(cells * (d_head + d_value)); }
};

MaskFacts mask_facts(const AttentionRule& rule, Index tokens);

/// (query, key): 1 = hidden, row-major, as pictures want it.
std::vector<std::uint8_t> hidden_cells(const AttentionRule& rule, Index tokens);

}  // namespace headscope
