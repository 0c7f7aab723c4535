#pragma once
// Where a mechanism stands that works block by block (core/attention/mechanism_ticks.h), as pictures of the machine.

#include <functional>
#include <string>

#include "core/attention/mechanism_ticks.h"
#include "viz/scene/tile_machine.h"
#include "viz/scene/worker_ring.h"

namespace headscope {

/// "tile 95 of 169".
std::string tick_words(const Mechanism& mechanism, Index done, Index ticks);
/// `place`: how a row of the text is called, "fox 3".
TileMachine tile_machine(const TileWork& work, const Mechanism& mechanism,
                         const std::function<std::string(Index)>& place, const Theme& theme);
WorkerRing worker_ring(const RingRound& round, const Mechanism& mechanism);

}  // namespace headscope
