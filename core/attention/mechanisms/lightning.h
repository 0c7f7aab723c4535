#pragma once
// Lightning Attention, which the hybrid of MiniMax-01 also runs in seven of eight layers.

#include "core/attention/mechanism.h"

namespace headscope::mechanism {

MechanismResult lightning_run(const MechanismInput& in, const MechanismValues& values, Detail detail);
Tensor lightning_output(const MechanismInput& in, const MechanismValues& values);
Recurrence lightning_recurrent(const MechanismInput& in, const MechanismValues& values);
MechanismCost lightning_cost(const MechanismShape& s, const MechanismValues& values);
std::vector<ShapeChip> lightning_chips(const MechanismShape& s, const MechanismValues& values);
std::vector<MechanismParameter> lightning_parameters();

}  // namespace headscope::mechanism
