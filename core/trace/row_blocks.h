#pragma once
// A matrix of weights whose rows lie in blocks, one behind the other, so that a map that goes on shares what stands
// with the map it goes on from. A block may be narrower than the matrix: what is not there is 0. Thread-safe (const).

#include <vector>

#include "core/tensor/tensor.h"
#include "core/trace/attention_rule.h"

namespace headscope {

class RowBlocks {
 public:
  RowBlocks() = default;
  explicit RowBlocks(const Tensor& whole) : columns_(whole.dim(1)) { push(whole, whole.size()); }

  bool defined() const { return !blocks_.empty(); }
  Index rows() const { return defined() ? blocks_.back().first + blocks_.back().rows.dim(0) : 0; }
  Index columns() const { return columns_; }
  std::size_t bytes() const;  ///< of the memory that its blocks hold
  /// Whether `values` is a view of one of these.
  bool holds(const Tensor& values) const;

  float at(Index row, Index column) const {
    const Block& block = of(row);
    return column < block.rows.dim(1) ? block.rows.at(row - block.first, column) : 0.0f;
  }
  /// The numbers of a row in `columns`, written one behind the other.
  void row(Index row, KeyRange columns, float* to) const;
  /// Fresh, without gaps.
  Tensor tile(KeyRange rows, KeyRange columns) const;
  /// Rows that all lie in one block which is as wide as the matrix: a view of them; else undefined.
  Tensor view(KeyRange rows) const;

  /// The first `known` rows, shared, and `fresh` (rows, columns of the new matrix) behind them. What would be many
  /// small blocks is copied into one; so is a small part of a large block, which need not stay in memory for their
  /// sake.
  RowBlocks with(Index known, const Tensor& fresh) const;

 private:
  struct Block {
    Index first = 0;
    Tensor rows;
    Index held = 0;  ///< numbers that its memory has: as many, or more where it is a view of some of them
  };
  const Block& of(Index row) const;
  void push(Tensor rows, Index held);
  std::vector<Block> blocks_;
  Index columns_ = 0;
};

}  // namespace headscope
