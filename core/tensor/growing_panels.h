#pragma once
// Rows that grow (growing_rows.h) as a product reads them when they stand on its right, transposed: in panels
// (panels.h), one set for each head, to which new rows are added. So keys that a cache holds need not be packed anew
// for every token.

#include "core/tensor/tensor.h"

namespace headscope {

class ThreadPool;

class GrowingPanels {
 public:
  GrowingPanels() = default;
  /// Another begins with nothing: it is made of the rows that it is given.
  GrowingPanels(const GrowingPanels&) {}
  GrowingPanels& operator=(const GrowingPanels&) { return *this = GrowingPanels(); }
  GrowingPanels(GrowingPanels&&) = default;
  GrowingPanels& operator=(GrowingPanels&&) = default;

  /// Packs those of `rows` (row, head, d), of unit inner stride, that were not here at the last call. Storage that is
  /// new is for `room` rows, or as many as it takes. REQUIRES that the others have not changed, or were forgotten.
  void put(const Tensor& rows, Index room, ThreadPool& pool);
  /// Rows from this one on have changed, or will.
  void forget(Index from);

  /// The first panel of a head: d · width() numbers each, one panel behind the other.
  const float* of(Index head) const { return panels_.data() + head * panels_.stride(0); }
  std::size_t bytes() const { return panels_.defined() ? panels_.bytes() : 0; }
  /// Of them those of the rows that are here, in whole panels.
  std::size_t bytes_in_use() const;

 private:
  Tensor panels_;  // (head, panels · d · width)
  Index known_ = 0, room_ = 0;
};

}  // namespace headscope
