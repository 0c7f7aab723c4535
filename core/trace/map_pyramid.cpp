#include "core/trace/map_pyramid.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "core/base/nth.h"
#include "core/base/thread_pool.h"

namespace headscope {

namespace {

// A tile of the base is one cell this many levels above it: up to there every cell belongs to one tile alone.
constexpr int levels_above = 7;
static_assert(MapPyramid::tile_cells == Index{1} << levels_above);

}  // namespace

MapPyramid::MapPyramid(AttentionMap map) : map_(std::move(map)) {
  const Index longest = std::max(map_.n_query(), map_.n_key());
  while (cells(longest, base_) > most_kept) ++base_;
  const Index down = (rows(base_) + tile_cells - 1) / tile_cells;
  leaves_.assign(static_cast<std::size_t>(down * across(base_)), Known::no);
  // Pages that nobody writes to cost nothing.
  for (int level = base_; level <= base_ + levels_above; ++level)
    levels_.push_back(Tensor::uninitialized({rows(level), columns(level)}));
}

int MapPyramid::level_for(Index longest, Index max_cells) const {
  const auto bin = static_cast<std::uint64_t>(bin_for(longest, max_cells));
  return std::min(std::countr_zero(bin), base_ + levels_above);
}

Index MapPyramid::bin_for(Index longest, Index max_cells) {
  const Index least = (longest + max_cells - 1) / max_cells;
  return static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(std::max<Index>(least, 1))));
}

KeyRange MapPyramid::span(Index tile, int level, Index weights) const {
  const Index side = tile_cells << level;
  return {tile * side, std::min((tile + 1) * side, weights)};
}

/// Tiles that a window needs and that are not there, those nearest to its middle first.
std::vector<MapPyramid::Place> MapPyramid::lacking(const Window& window) {
  const int level = std::min(window.level, base_), shift = window.level - level;
  const auto tiles = [&](KeyRange cells_of) {
    return KeyRange{(cells_of.begin << shift) / tile_cells, ((cells_of.end << shift) + tile_cells - 1) / tile_cells};
  };
  const KeyRange down = tiles(window.rows), right = tiles(window.columns);
  std::vector<Place> out;
  for (Index row = down.begin; row < std::min(down.end, (rows(level) + tile_cells - 1) / tile_cells); ++row)
    for (Index column = right.begin; column < std::min(right.end, across(level)); ++column)
      if (level == base_ ? leaf(row, column) == Known::no : !fine_.contains({level, row, column}))
        out.emplace_back(level, row, column);
  const auto far = [&](const Place& place) {
    const Index y = 2 * std::get<1>(place) + 1 - down.begin - down.end,
                x = 2 * std::get<2>(place) + 1 - right.begin - right.end;
    return y * y + x * x;
  };
  std::ranges::stable_sort(out, {}, far);
  return out;
}

bool MapPyramid::refine(const Window& window, const std::function<bool()>& go_on, ThreadPool* pool) {
  const std::scoped_lock hold(lock_);
  assert(window.rows.begin >= 0 && window.rows.end <= rows(window.level) && window.columns.begin >= 0 &&
         window.columns.end <= columns(window.level));
  const std::vector<Place> places = lacking(window);
  const int threads = pool ? pool->threads() : 1;
  const auto make = [&](const Place& place) {
    const auto [level, row, column] = place;
    const KeyRange queries = span(row, level, map_.n_query()), keys = span(column, level, map_.n_key());
    return map_.sees(queries, keys) ? map_.pooled(queries, keys, bin(level)) : Tensor{};
  };
  for (std::size_t done = 0; done < places.size();) {
    if (!go_on()) return false;
    const std::size_t count = std::min(places.size() - done, static_cast<std::size_t>(threads));
    std::vector<Tensor> made(count);
    if (count > 1)
      pool->parallel(static_cast<int>(count),
                     [&](int i, int) { nth(made, i) = make(places[done + static_cast<std::size_t>(i)]); });
    else
      made[0] = make(places[done]);
    for (std::size_t i = 0; i < count; ++i) keep(places[done + i], std::move(made[i]));
    done += count;
  }
  return true;
}

void MapPyramid::keep(const Place& place, Tensor values) {
  const auto [level, row, column] = place;
  if (level == base_) {
    leaf(row, column) = values.defined() ? Known::yes : Known::empty;
    if (!values.defined()) return;
    leaves_kept_ += values.bytes() + values.bytes() / 3;
    for (Index r = 0; r < values.dim(0); ++r)
      std::copy_n(values.data() + r * values.dim(1), values.dim(1),
                  &levels_[0].ref(row * tile_cells + r, column * tile_cells));
    raise_from(row, column);
    return;
  }
  fine_kept_ += values.defined() ? values.bytes() : 0;
  ages_.push_front(place);
  fine_[place] = {std::move(values), ages_.begin()};
}

/// Pools a tile of the base into the levels above it.
void MapPyramid::raise_from(Index row, Index column) {
  KeyRange down{row * tile_cells, std::min((row + 1) * tile_cells, rows(base_))},
      right{column * tile_cells, std::min((column + 1) * tile_cells, columns(base_))};
  for (std::size_t i = 1; i < levels_.size(); ++i) {
    const Tensor part = levels_[i - 1].slice(0, down.begin, down.end).slice(1, right.begin, right.end);
    const Tensor halved = pooled(part, 2);
    down = {down.begin / 2, down.begin / 2 + halved.dim(0)};
    right = {right.begin / 2, right.begin / 2 + halved.dim(1)};
    for (Index r = 0; r < halved.dim(0); ++r)
      std::copy_n(halved.data() + r * halved.dim(1), halved.dim(1), &levels_[i].ref(down.begin + r, right.begin));
  }
}

MapPyramid::Cells MapPyramid::read(const Window& window) {
  const std::scoped_lock hold(lock_);
  const Index n_rows = window.rows.size(), n_columns = window.columns.size();
  Cells out{Tensor::uninitialized({n_rows, n_columns}), {}};
  std::vector<std::uint8_t> coarse(static_cast<std::size_t>(n_rows * n_columns), 0);
  bool any = false;
  const int level = window.level, shift = std::max(level - base_, 0);
  const Index tile = tile_cells >> shift;  // of the base, or of this finer level, in cells of this level
  for (Index row0 = window.rows.begin; row0 < window.rows.end;) {
    const Index row1 = std::min((row0 / tile + 1) * tile, window.rows.end);
    for (Index column0 = window.columns.begin; column0 < window.columns.end;) {
      const Index column1 = std::min((column0 / tile + 1) * tile, window.columns.end);
      const Place place{level, row0 / tile, column0 / tile};
      Known known = Known::no;
      const Tensor* from = nullptr;
      Index row_of_it = 0, column_of_it = 0;
      if (level >= base_) {
        known = leaf(row0 / tile, column0 / tile);
        from = &nth(levels_, shift);
      } else if (const auto found = fine_.find(place); found != fine_.end()) {
        ages_.splice(ages_.begin(), ages_, found->second.age);
        from = &found->second.values;
        known = from->defined() ? Known::yes : Known::empty;
        row_of_it = row0 / tile * tile, column_of_it = column0 / tile * tile;
      }
      for (Index row = row0; row < row1; ++row) {
        float* const cell = &out.values.ref(row - window.rows.begin, column0 - window.columns.begin);
        if (known == Known::yes) {
          std::copy_n(from->data() + (row - row_of_it) * from->stride(0) + column0 - column_of_it, column1 - column0,
                      cell);
        } else if (known == Known::empty) {
          std::fill_n(cell, column1 - column0, 0.0f);
        } else {
          any = true;
          for (Index column = column0; column < column1; ++column) {
            cell[column - column0] = above(level, row, column);
            nth(coarse, (row - window.rows.begin) * n_columns + column - window.columns.begin) = 1;
          }
        }
      }
      column0 = column1;
    }
    row0 = row1;
  }
  if (any) out.coarse = std::move(coarse);
  // Only now: what was just read is what was looked at last.
  while (fine_kept_ > fine_bytes && !ages_.empty()) {
    const auto oldest = fine_.find(ages_.back());
    if (oldest->second.values.defined()) fine_kept_ -= oldest->second.values.bytes();
    fine_.erase(oldest);
    ages_.pop_back();
  }
  return out;
}

/// What is known of a cell whose tile is not there: no nearer to 0 than its value.
float MapPyramid::above(int level, Index row, Index column) {
  for (int higher = level + 1; higher <= base_; ++higher) {
    const Index r = row >> (higher - level), c = column >> (higher - level), tile_row = r / tile_cells,
                tile_column = c / tile_cells;
    if (higher == base_) {
      const Known known = leaf(tile_row, tile_column);
      if (known != Known::no) return known == Known::yes ? levels_[0].at(r, c) : 0.0f;
    } else if (const auto found = fine_.find({higher, tile_row, tile_column}); found != fine_.end()) {
      const Tensor& values = found->second.values;
      return values.defined() ? values.at(r - tile_row * tile_cells, c - tile_column * tile_cells) : 0.0f;
    }
  }
  return from_overview(level, row, column);
}

float MapPyramid::from_overview(int level, Index row, Index column) const {
  const Overview& overview = map_.stats().overview;
  if (!overview.values.defined()) return 0;
  const auto bins = [&](Index cell, Index weights) {
    return KeyRange{cell * bin(level) / overview.bin,
                    (std::min((cell + 1) * bin(level), weights) + overview.bin - 1) / overview.bin};
  };
  const KeyRange down = bins(row, map_.n_query()), right = bins(column, map_.n_key());
  float most = 0;
  for (Index r = down.begin; r < down.end; ++r)
    for (Index c = right.begin; c < right.end; ++c) pool_weight(most, overview.values.at(r, c));
  return most;
}

std::size_t MapPyramid::bytes() const {
  const std::scoped_lock hold(lock_);
  return fine_kept_ + leaves_kept_;
}

}  // namespace headscope
