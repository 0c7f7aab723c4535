#pragma once
// Rows that more are put behind, in place, so that what grows by one row costs one row. What was handed out stays as it
// is for good: where other rows than the next ones come, they come into new storage.

#include "core/tensor/backend.h"

namespace headscope {

class GrowingRows {
 public:
  GrowingRows() = default;
  /// Of `all`, whose first `lent` rows somebody may look at.
  explicit GrowingRows(Tensor all, Index lent = 0) : all_(std::move(all)), lent_(lent) {}

  /// The first `known` rows and, behind them, `fresh`. Storage that is new is for `room` rows, or as many as it takes.
  /// REQUIRES that the first `known` are there.
  Tensor put(Index known, const Tensor& fresh, Index room, Backend& backend);

  /// Whether `rows` are the first of these.
  bool are(const Tensor& rows) const { return all_.defined() && rows.storage() == all_.storage(); }
  std::size_t bytes() const { return all_.defined() ? all_.bytes() : 0; }
  /// The first `rows` in other storage, with as much room.
  GrowingRows copy(Index rows) const;

 private:
  Tensor all_;  // (room, …)
  Index lent_ = 0;
};

}  // namespace headscope
