#include "core/analysis/cell_sweep.h"

#include <utility>

#include "core/base/nth.h"

namespace headscope {

void CellSweep::step(const Ctx& ctx) {
  if (!probe_) {
    std::vector<std::vector<Intervention>> cells;
    EditProbe probe = prepare(cells, ctx);
    cost_.assign(1, 0);
    // Logits and what surrounds a pass count as one block more.
    for (const auto& edits : cells) cost_.push_back(cost_.back() + 1 + blocks_to_compute(edits, probe.layers()));
    cells_ = std::move(cells);
    probe_ = std::move(probe);
    return;
  }
  measure(*probe_, done_, nth(cells_, done_), ctx);
  ++done_;
}

double CellSweep::share() const {
  if (!probe_) return 0;
  return total() == 0 ? 1 : nth(cost_, done_) / cost_.back();
}

}  // namespace headscope
