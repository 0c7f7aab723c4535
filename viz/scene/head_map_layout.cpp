#include "viz/scene/head_map_layout.h"

#include <algorithm>
#include <cmath>

namespace headscope {

namespace {

constexpr double largest_cell = 44, largest_in_room = 56, smallest_named = 13;

/// One side for both unless the map is long and thin.
CellSize squared(CellSize size, Index rows, Index columns) {
  if (std::max(rows, columns) <= 3 * std::min(rows, columns))
    size.w = size.h = std::min(size.w, size.h);
  else
    size.w = std::min(size.w, 28.0), size.h = std::min(size.h, 28.0);
  return size;
}

/// Cells as large as width × height allow: whole pixels while that wastes little.
CellSize fitted(Index rows, Index columns, double width, double height) {
  const auto side = [](double room, Index n) {
    const double fit = std::clamp(room / static_cast<double>(n), 0.25, largest_in_room);
    return fit >= 12 ? std::floor(fit) : std::floor(4 * fit) / 4;
  };
  return squared({side(width, columns), side(height, rows), 0}, rows, columns);
}

std::optional<Index> inside(std::optional<Index> at, Index from, Index count) {
  return at && *at >= from && *at < from + count ? at : std::nullopt;
}

/// What the whole map would take of a room of this size.
struct Frame {
  double left = 0, above = 0;    ///< room of the labels
  double width = 0, height = 0;  ///< left for cells
  CellSize size;
  Index rows = 0, columns = 0;  ///< cells of the whole map
  double area() const { return size.w * size.h * static_cast<double>(rows) * static_cast<double>(columns); }
};

Frame frame_of(const Trace& trace, const AttentionMap& map, double width, double height, double right, double longest,
               double corner, bool tiles, const Style& style) {
  Frame out;
  out.left = corner;
  out.above = std::round(28 * style.theme.text_scale) + 14;
  const double least_above = out.above;
  double overhang = 0;
  // Labels take room from cells, and smaller cells have fewer labels: a few rounds settle it.
  for (int round = 0; round < 8; ++round) {
    out.width = std::max(width - out.left - std::max(right, overhang), 24.0);
    out.height = std::max(height - out.above, 24.0);
    const auto most = static_cast<Index>(std::min(out.width, out.height));
    const Index longest_side = std::max(map.n_query(), map.n_key()),
                bin = tiles ? MapPyramid::bin_for(longest_side, most) : std::max<Index>(1, bins(longest_side, most));
    const CellSize before = out.size;
    out.rows = bins(map.n_query(), bin);
    out.columns = bins(map.n_key(), bin);
    out.size = fitted(out.rows, out.columns, out.width, out.height);
    if (round > 0 && out.size.w == before.w && out.size.h == before.h) break;
    const AxisTokens rows{trace, map.place().offset, map.n_query(), bin, out.size.h, {}, longest, true};
    const AxisTokens columns{trace, 0, map.n_key(), bin, out.size.w, {}, longest};
    const AxisPlan side = plan_side_axis(rows, style), top = plan_top_axis(columns, style);
    // Never back: room once given to labels stays theirs.
    out.left = std::max(out.left, std::ceil(full_depth(side, rows, style)));
    out.above = std::max({out.above, std::ceil(full_depth(top, columns, style)), least_above});
    overhang = std::max(overhang, top.overhang);
  }
  return out;
}

}  // namespace

CellSize cell_size(Index n_query, Index n_key, double plot) {
  const auto side = [&](Index n) {
    const double fit = std::floor(plot / static_cast<double>(std::max<Index>(n, 1)));
    // A map a little too large for named cells may grow by 40 % before its labels thin out.
    if (fit < smallest_named && static_cast<double>(n) * smallest_named <= 1.4 * plot) return smallest_named;
    return std::clamp(fit, 1.0, largest_cell);
  };
  CellSize out = squared({side(n_key), side(n_query), 0}, n_query, n_key);
  out.max_cells = std::max<Index>(1, static_cast<Index>(1.25 * plot));
  return out;
}

HeadMapLayout head_map_layout(const Trace& trace, const AttentionMap& map, const MapRegion& region,
                              const HeadMapOptions& options, const HeadMapAnnotations& annotations,
                              const Style& style) {
  const double scale = style.theme.text_scale;
  HeadMapLayout out;
  const auto cells_of = [&](Index most) {
    if (options.cells) return options.cells(region, most);
    return options.region ? map_cells(map, region, most) : map_cells(map, most);
  };
  const auto add_axes = [&](std::optional<double> longest) {
    const MapCells& cells = out.cells;
    const Index first = map.place().offset + cells.query;
    const std::optional<Index> row = inside(options.query, first, cells.n_query),
                               column = inside(options.key, cells.key, cells.n_key);
    out.side = plan_side_axis({trace, first, cells.n_query, cells.bin, out.size.h, row, longest, true}, style);
    out.top = plan_top_axis({trace, cells.key, cells.n_key, cells.bin, out.size.w, column, longest}, style);
    out.left = std::max({out.left, std::ceil(out.side.depth), std::ceil(annotations.corner)});
    out.above = std::max({out.above, out.top.depth, std::round(28 * scale) + 14});
  };
  if (!options.room) {
    const double plot = std::clamp(options.plot, 64.0, 8192.0);
    out.size = cell_size(region.n_query, region.n_key, plot);
    out.cells = cells_of(out.size.max_cells);
    if (out.cells.bin > 1) out.size = cell_size(out.cells.rows(), out.cells.columns(), plot);
    if (options.region) out.column = out.minimap = 96 * scale;
    add_axes({});
    return out;
  }

  const double width = std::clamp(options.room->width, 160.0, 8192.0) - 2 * slim_margin,
               height = std::clamp(options.room->height, 160.0, 8192.0) - 2 * slim_margin - 2;
  const double longest = std::clamp(0.26 * std::min(width, height), 36.0, max_label_width * scale);
  const auto frame = [&](double right, double below) {
    return frame_of(trace, map, width, height - below, right, longest, annotations.corner, options.cells != nullptr,
                    style);
  };
  // The colour bar goes where it costs the map less: beside it or below it.
  Frame chosen = frame(0, annotations.bar_below);
  const Frame beside = frame(HeadMapLayout::gap + bar_column * scale, annotations.below);
  out.bar_beside = beside.area() >= chosen.area();
  if (out.bar_beside) {
    chosen = beside;
    out.column = bar_column * scale;
  } else if (options.region) {
    out.column = out.minimap = std::round(std::clamp(0.22 * std::min(width, height), 56.0, 120.0));
    chosen = frame(HeadMapLayout::gap + out.column, annotations.bar_below);
  }
  out.left = chosen.left;
  out.above = chosen.above;
  out.cells = cells_of(static_cast<Index>(std::max(24.0, std::min(chosen.width, chosen.height))));
  // A part lies where the whole lay: what is under the pointer while the wheel turns stays there.
  out.size = {chosen.size.w * static_cast<double>(chosen.columns) / static_cast<double>(out.cells.columns()),
              chosen.size.h * static_cast<double>(chosen.rows) / static_cast<double>(out.cells.rows()), 0};
  add_axes(longest);
  if (out.bar_beside) {
    out.column = std::max(out.column, std::min(width - out.left - out.width() - HeadMapLayout::gap, 256 * scale));
    constexpr double button_room = 46;  // a panel sets a button below the small map
    if (options.region)
      out.minimap = std::round(std::clamp(chosen.height - annotations.bar_beside - button_room, 40.0, 120.0));
  }
  return out;
}

}  // namespace headscope
