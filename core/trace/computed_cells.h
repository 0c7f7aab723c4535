#pragma once
// Weights of a map that are computed where they are looked at, from what a pass kept of every token: memory grows with
// n, not n² (AttentionMap::computed). Thread-safe (const).

#include "core/trace/attention_rule.h"

namespace headscope {

class ComputedCells {
 public:
  virtual ~ComputedCells() = default;
  virtual Index rows() const = 0;
  virtual Index columns() const = 0;
  /// Writes all cells of these rows and columns to `out`, rows `stride` apart. Costs as much as the rows from their
  /// first column on to the last that is asked for, or to the row's own token.
  virtual void write(KeyRange rows, KeyRange columns, float* out, Index stride) const = 0;
};

}  // namespace headscope
