#pragma once
// A sweep whose cells are sets of edits of one text, measured one after another. A kind of sweep says which edits, and
// keeps what comes out.

#include <optional>
#include <vector>

#include "core/analysis/edit_probe.h"
#include "core/analysis/sweep.h"

namespace headscope {

class CellSweep : public Sweep {
 public:
  void step(const Ctx& ctx) final;
  int done() const final { return done_; }
  int total() const final { return static_cast<int>(cells_.size()); }
  bool finished() const final { return probe_ && done_ == total(); }
  double share() const final;

 protected:
  /// The first step: runs the text as it is, fills `cells`.
  virtual EditProbe prepare(std::vector<std::vector<Intervention>>& cells, const Ctx& ctx) = 0;
  /// Measures cell `index` with the edits that prepare() gave it, and keeps the outcome.
  virtual void measure(const EditProbe& probe, int index, const std::vector<Intervention>& edits, const Ctx& ctx) = 0;
  bool prepared() const { return probe_.has_value(); }

 private:
  std::optional<EditProbe> probe_;
  std::vector<std::vector<Intervention>> cells_;
  std::vector<double> cost_;  // [i]: blocks computed for the cells before i, and for all of them
  int done_ = 0;
};

}  // namespace headscope
