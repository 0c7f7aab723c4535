#pragma once
// Where a method that works block by block stands, for a picture of the machine: what lies in fast memory after so many
// tiles and what has crossed between the two memories; which worker of a ring holds whose keys.

#include <optional>
#include <string>
#include <vector>

#include "core/attention/mechanism.h"

namespace headscope {

struct TileWork {
  Index done = 0, tiles = 0;
  bool skipped = false;  ///< the newest one: the mask hides all of it
  /// A matrix of slow memory, and what of it lies in fast memory.
  struct Block {
    std::string name;  ///< "Q"
    ShapeChip::Role role = ShapeChip::Role::plain;
    Index rows = 0, width = 0;  ///< of the whole
    KeyRange held = {};         ///< rows in fast memory; empty = none
    double crossed = 0;         ///< bytes read or written so far
  };
  std::vector<Block> blocks;
  /// What is in fast memory alone: "S 2×2".
  struct Kept {
    std::string name;
    Index rows = 0, width = 0;
  };
  std::vector<Kept> kept;
  double moved = 0, moved_in_all = 0;  ///< bytes between the memories so far, and by the last tile
  double plain = 0;                    ///< with the n × m matrices in slow memory
  double one_tile = 0;                 ///< as moved_in_all, were the whole text one tile
  /// The online softmax of one row of the newest tile: m and l before it and after it, and Σ e^(s − m) of its keys,
  /// with the new m.
  struct Row {
    Index query = 0;
    float max_before = 0, max = 0, sum_before = 0, sum = 0, added = 0;
  };
  std::optional<Row> row = {};
};

struct RingRound {
  Index done = 0, rounds = 0;
  struct Worker {
    KeyRange queries, keys;  ///< its own, and those that lie with it now
    Index of = 0;            ///< whose keys they are
    bool works = false;      ///< false: the mask leaves it nothing to do with them
    Index met = 0;           ///< blocks of keys that it has folded in
    double cells = 0;        ///< scores that it has computed
  };
  std::vector<Worker> workers;
  double sent = 0;                ///< bytes that a worker has sent on so far
  std::vector<Index> texts = {};  ///< where each text of the row begins, and last where the row ends
};

}  // namespace headscope
