#include "app/render/mechanism_steps_picture.h"

namespace headscope {

std::vector<std::string> AxisNames::of(MechanismAxis axis, Index first, Index count) const {
  if (axis != MechanismAxis::query && axis != MechanismAxis::key) return {};
  const std::vector<std::string>& all = axis == MechanismAxis::query ? queries : keys;
  if (first + count > static_cast<Index>(all.size())) return {};
  return {all.begin() + first, all.begin() + first + count};
}

FlowMatrix flow_matrix(const MechanismStep& step, const AxisNames& names) {
  FlowMatrix m{step.id, step.title, step.formula, step.value, step.masked, {}, {}, "value", false};
  if (step.range == MechanismStep::Range::probability) m.low = 0, m.high = 1, m.unit = "share";
  if (step.range == MechanismStep::Range::positive) m.low = 0;
  m.decimals = step.mixture;
  m.rows = step.row_names.empty() ? names.of(step.rows, step.first_row, step.value.dim(0)) : step.row_names;
  m.columns =
      step.column_names.empty() ? names.of(step.columns, step.first_column, step.value.dim(1)) : step.column_names;
  return m;
}

}  // namespace headscope
