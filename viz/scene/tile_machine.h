#pragma once
// A method that works tile by tile, as the machine sees it: matrices in slow memory with the rows that lie in fast
// memory lit, what is in fast memory alone, how many bytes have crossed between them, the numbers of one row.

#include <string>
#include <vector>

#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct TileMachine {
  struct Block {
    std::string name;  ///< "Q"
    Color color;
    Index rows = 1, width = 1;
    Index first = 0, last = 0;  ///< rows [first, last) lie in fast memory
    std::string crossed;        ///< "12.3 kB read"
  };
  std::string state;              ///< "tile 95 of 169"
  std::vector<Block> slow;        ///< in slow memory
  std::vector<std::string> kept;  ///< in fast memory alone: "scores 2×2"
  double moved = 0;               ///< bytes
  struct Level {
    double bytes = 0;
    std::string words;  ///< "by the last tile"
  };
  std::vector<Level> levels;     ///< what `moved` is held against
  std::vector<std::string> row;  ///< the numbers of one row, a line each
  double width = 900, height = 190;
};

/// Marks "slow.<name>", "held.<name>", "moved", "level.<i>", "row.<i>".
Scene tile_machine_scene(const TileMachine& machine, const Style& style);

}  // namespace headscope
