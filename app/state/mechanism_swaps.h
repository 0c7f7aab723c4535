#pragma once
// Which heads run another mechanism, as a table instead of a list of edits: what a grid of layers × heads shows and
// changes. Pure functions.

#include <map>
#include <string>
#include <vector>

#include "app/state/app_state.h"

namespace headscope {

/// Head → spec of the mechanism that an enabled edit puts there, the last one where several do. Edits that reach only
/// some positions are no part of the table.
using MechanismSwaps = std::map<HeadId, std::string>;
MechanismSwaps swaps_of(const std::vector<Intervention>& edits, const ModelDims& dims);

/// `edits` with the table in place of the edits that made it: all heads, whole layers and single heads, in the fewest
/// words; they come last. Other edits keep their order.
std::vector<Intervention> with_swaps(const std::vector<Intervention>& edits, const MechanismSwaps& swaps,
                                     const ModelDims& dims);

}  // namespace headscope
