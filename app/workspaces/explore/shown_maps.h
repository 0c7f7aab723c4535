#pragma once
// The maps that were looked at last, as the view wants them (a difference, words, without the first key), each with its
// pyramid: what was computed of a map stays when another part of it is looked at, and when one comes back to it.
// Thread-safe: jobs that draw, search and write files ask.

#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "app/workspaces/shown_run.h"
#include "core/trace/map_pyramid.h"
#include "core/trace/strong_cells.h"

namespace headscope {

class ShownMap {
 public:
  ShownMap(std::shared_ptr<const Trace> of, HeadId head) : trace(std::move(of)), pyramid(trace->map(head)) {}

  const std::shared_ptr<const Trace> trace;  ///< as_viewed()
  MapPyramid pyramid;

  /// StrongCells::at() of the map, or of one of its rows.
  std::optional<AttentionMap::Cell> strong(std::optional<Index> row, Index rank, const std::stop_token& stop);

 private:
  std::mutex lock_;
  std::optional<StrongCells> cells_;
  std::optional<Index> row_;  // that cells_ is of
};

class ShownMaps {
 public:
  /// Makes it when it is not among those kept. Maps of another run are let go.
  std::shared_ptr<ShownMap> of(const ShownRun& run, HeadId head, FirstToken first);

 private:
  static constexpr std::size_t most_bytes = 256ull << 20;  // of all pyramids
  struct Kept {
    ShownRun run;
    HeadId head;
    FirstToken first = FirstToken::show;
    std::shared_ptr<ShownMap> map;
  };
  std::mutex lock_;
  std::list<Kept> kept_;  // the one asked for last first
};

}  // namespace headscope
