#pragma once
// Where the memory of Titans enters: alone, as context, as gate, as layer (core/attention/memory_paths.h), with the
// numbers of one run. A pure function.

#include "core/attention/memory_paths.h"
#include "viz/scene/box_diagram.h"

namespace headscope {

BoxDiagram memory_diagram(const MemoryPaths& paths);

}  // namespace headscope
