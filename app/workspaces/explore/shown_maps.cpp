#include "app/workspaces/explore/shown_maps.h"

#include <algorithm>

namespace headscope {

std::optional<AttentionMap::Cell> ShownMap::strong(std::optional<Index> row, Index rank, const std::stop_token& stop) {
  const std::scoped_lock hold(lock_);
  if (!cells_ || row_ != row) {
    cells_.emplace(pyramid.map(), row);
    row_ = row;
  }
  return cells_->at(rank, stop);
}

std::shared_ptr<ShownMap> ShownMaps::of(const ShownRun& run, HeadId head, FirstToken first) {
  const std::scoped_lock hold(lock_);
  // An old run is large, and nobody comes back to it.
  std::erase_if(kept_, [&](const Kept& kept) { return kept.run.trace != run.trace || kept.run.minus != run.minus; });
  const auto found = std::ranges::find_if(
      kept_, [&](const Kept& kept) { return kept.run.words == run.words && kept.head == head && kept.first == first; });
  if (found != kept_.end())
    kept_.splice(kept_.begin(), kept_, found);
  else
    kept_.push_front({run, head, first, std::make_shared<ShownMap>(as_viewed(run, head, first), head)});
  std::size_t bytes = 0;
  auto each = kept_.begin();
  for (bytes += each->map->pyramid.bytes(), ++each; each != kept_.end();) {
    bytes += each->map->pyramid.bytes();
    if (bytes > most_bytes)
      each = kept_.erase(each);
    else
      ++each;
  }
  return kept_.front().map;
}

}  // namespace headscope
