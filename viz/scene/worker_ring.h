#pragma once
// Workers on a ring: each with the queries it keeps and the block of keys and values that lies with it in this round;
// arrows say where the blocks go next.

#include <string>
#include <vector>

#include "viz/scene/scene.h"
#include "viz/scene/token_axis.h"

namespace headscope {

struct WorkerRing {
  struct Worker {
    std::string queries;  ///< "Q 0–5"
    std::string keys;     ///< "K, V 12–17"
    int of = 0;           ///< whose keys they are: their colour
    bool works = false;   ///< false: nothing to do with them
    double met = 0;       ///< share of the blocks that it has folded in
    std::string tooltip = {};
  };
  std::string state, remark;  ///< in the middle: "round 2 of 4"
  std::vector<Worker> workers;
  double width = 900, height = 270;
};

/// The colour of a worker's block of keys, the same wherever it lies.
Color block_color(int of, int workers, const Theme& theme);
/// Marks "worker.<w>", "block.<w>" (the keys that lie with it), "pass.<w>" (the arrow to the next).
Scene worker_ring_scene(const WorkerRing& ring, const Style& style);

}  // namespace headscope
