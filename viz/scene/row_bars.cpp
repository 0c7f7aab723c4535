#include "viz/scene/row_bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "viz/scene/head_map.h"
#include "viz/scene/text.h"
#include "viz/scene/token_axis.h"

namespace headscope {

namespace {

/// The row as a map of one query, pooled when it is longer than the plot is wide.
MapCells row_cells(const AttentionMap& map, Index query, Index max_cells) {
  std::vector<float> row(static_cast<std::size_t>(map.n_key()));
  map.row(query, row);
  MapCells out;
  out.n_query = 1;
  out.n_key = map.n_key();
  out.bin = std::max<Index>(1, (map.n_key() + max_cells - 1) / max_cells);
  const Index bins = (map.n_key() + out.bin - 1) / out.bin;
  out.values = Tensor::zeros({1, bins});
  out.masked.assign(static_cast<std::size_t>(bins), 1);
  out.with_signs = map.stats().any_negative();
  for (Index k = 0; k < map.n_key(); ++k) {
    pool_weight(out.values.ref(0, k / out.bin), nth(row, k));
    if (!map.masked(query, k)) nth(out.masked, k / out.bin) = 0;
  }
  return out;
}

/// 1, 2, 2.5 or 5 times a power of ten, not below `value`.
double round_up(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0})
    if (factor * power >= value * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

ColorNorm axis_norm(const MapCells& cells, MapKind kind, const Scaling& scaling) {
  ColorNorm norm = norm_for(std::span(&cells, 1), kind, scaling);
  const double largest = std::max<double>(cells.highest(), -cells.lowest());
  if (scaling.scale == Scale::linear && !scaling.high && largest > 0) {
    norm.high = round_up(largest);
    if (norm.low < 0 && !scaling.low) norm.low = -norm.high;
  }
  if (scaling.scale == Scale::per_row) norm = {Scale::linear, 0, largest > 0 ? largest : 1};
  return norm;
}

/// The map's colour for the value; the faint end moves on until a bar can be told from the ground.
Color visible(const Heatmap& map, Index column, Color ground) {
  const double away = map.colormap->diverging && map.unit(0, column) < 0.5 ? -0.02 : 0.02;
  for (double t = map.unit(0, column); t >= 0 && t <= 1; t += away)
    if (const Color color = map.colormap->at(t); contrast(color, ground) >= 1.6) return color;
  return map.color(0, column);
}

struct Plot {
  double x, y, cell, height;
  Index columns;
  double width() const { return cell * static_cast<double>(columns); }
  double level(const ColorNorm& norm, double value) const { return y + height * (1 - norm(value)); }
};

std::string bar_text(float value, double high) {
  if (high <= 0.02 || std::abs(value) >= 1.05f) return short_number(value, 2);
  return (value < 0 ? "−" : "") + fmt::format("{:.2f}", std::abs(value));
}

/// Values over the bars: over all when the bars are wide enough, else over the strongest that leave one another room.
void add_values(Scene& scene, const MapCells& cells, const ColorNorm& norm, const Plot& plot, const Style& style) {
  const Font font = style.theme.number();
  std::vector<Index> order(static_cast<std::size_t>(plot.columns));
  std::iota(order.begin(), order.end(), 0);
  const auto strength = [&](Index c) {
    const float v = cells.values.at(0, c);
    return nth(cells.masked, c) || !std::isfinite(v) ? -1.f : std::abs(v);
  };
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return strength(a) > strength(b); });
  const bool all_fit = plot.cell >= style.measure.width("0.00", font) + 6;
  std::vector<Rect> taken;
  for (std::size_t i = 0; i < order.size() && (all_fit || i < 8); ++i) {
    const Index c = order[i];
    const float value = cells.values.at(0, c);
    if (strength(c) < 0.005f * static_cast<float>(norm.high)) continue;  // a bar of no height needs no number
    const std::string text = bar_text(value, norm.high);
    const double zero = plot.level(norm, 0), tip = plot.level(norm, value);
    // A bar that hangs down carries its number at its lower end, or, where that would reach the labels, over the line.
    const double under = tip + 4 + 2 * half_capital(font);
    const bool below = value < 0 && under <= plot.y + plot.height;
    const double w = style.measure.width(text, font), baseline = below ? under : std::min(tip, zero) - 5;
    const double middle = std::clamp(plot.x + plot.cell * (static_cast<double>(c) + 0.5), plot.x + w / 2,
                                     std::max(plot.x + w / 2, plot.x + plot.width() - w / 2));
    const Rect box{middle - w / 2 - 3, baseline - font.size, w + 6, font.size + 4};
    const bool free = std::none_of(taken.begin(), taken.end(), [&](const Rect& t) {
      return t.x < box.right() && box.x < t.right() && t.y < box.bottom() && box.y < t.bottom();
    });
    if (!free) continue;
    // A number must not stand on a neighbour's longer bar.
    bool clear = true;
    for (Index n = std::max<Index>(0, static_cast<Index>((box.x - plot.x) / plot.cell));
         clear && n < plot.columns && plot.x + plot.cell * static_cast<double>(n) < box.right(); ++n) {
      if (n == c || strength(n) < 0) continue;
      const double other = plot.level(norm, cells.values.at(0, n));
      clear = below ? other <= box.y + 2 : other >= box.bottom() - 2;
    }
    if (!clear) continue;
    taken.push_back(box);
    scene.add({Text{{middle, baseline}, text, font, style.theme.text, Anchor::middle, 0},
               fmt::format("value.{}", c * cells.bin), ""});
  }
}

/// In words, then where the number comes from.
std::string bar_tooltip(const Trace& trace, const AttentionMap& map, Index query, Index key, Index keys, double value) {
  const Index row = query - map.place().offset;
  if (keys > 1)
    return say("{} looks at keys {} to {}: at most {}\n{}[{}, {}:{}]", query_word(trace, query), key, key + keys - 1,
               short_number(value, 2), map_name(trace, map.id()), row, key, key + keys);
  return fmt::format("{}\n{}[{}, {}] = {}", weight_says(trace, map.place().kind, query, key, value),
                     map_name(trace, map.id()), row, key, short_number(value, 4));
}

}  // namespace

Scene row_bars_scene(const Trace& trace, const RowBarsOptions& options, const Style& style) {
  const Theme& theme = style.theme;
  const AttentionMap& map = map_of(trace, options.head);
  const Index offset = map.place().offset;
  if (options.query < offset || options.query >= offset + map.n_query())
    throw Error("query of the row", fmt::format("a position from {} to {}", offset, offset + map.n_query() - 1),
                std::to_string(options.query));
  const bool bare = options.room.has_value();
  const double edge = bare ? slim_margin : margin,
               wanted = std::clamp(bare ? options.room->width - 2 * edge : options.plot, 64.0, 8192.0);
  const MapCells cells = row_cells(map, options.query - offset, static_cast<Index>(bare ? wanted : 1.25 * wanted));
  const ColorNorm shades = axis_norm(cells, map.place().kind, options.scaling);
  ColorNorm norm = shades;  // of heights: nothing below 0 takes no room, though colours go by the whole map
  if (norm.low < 0 && cells.lowest() >= 0 && map.place().kind != MapKind::difference && !options.scaling.low)
    norm.low = 0;
  const Font number = theme.number();
  const std::vector<Tick> marks = ticks(norm);
  double tick_width = 0;
  for (const Tick& tick : marks) tick_width = std::max(tick_width, style.measure.width(tick.text, number));
  const double top = std::round((bare ? 0 : 20) + 15 * theme.text_scale), below = bare ? 0 : 8;
  std::optional<double> longest;
  if (bare) longest = std::min(max_label_width * theme.text_scale, 0.34 * options.room->height);
  double left = std::ceil(tick_width + 8), cell = 0;
  AxisPlan keys;
  // In a room of given width labels that lean out on the left make the cells smaller, and so perhaps the labels fewer.
  for (int round = 0; round < (bare ? 3 : 1); ++round) {
    cell = bare ? std::clamp((wanted - left) / static_cast<double>(cells.columns()), 0.5, 56.0)
                : cell_size(cells.columns(), cells.columns(), wanted).w;
    keys = plan_bottom_axis({trace, 0, map.n_key(), cells.bin, cell, {}, longest}, style);
    left = std::ceil(std::max(tick_width + 8, keys.overhang));
  }
  const double height = bare ? std::max(options.room->height - 2 * edge - top - keys.depth - below, 16.0)
                             : std::clamp(options.height, 40.0, 2000.0);
  const Plot plot{std::round(edge + left), 0, cell, height, cells.columns()};
  const double width = std::max(left + plot.width(), bare ? 0 : narrowest * theme.text_scale);

  Scene scene;
  scene.background = theme.background;
  scene.width = std::ceil(width) + 2 * edge;
  const std::string query = say("query {} “{}”", options.query, query_label(trace, options.query));
  scene.title = say("{} layer {} head {}, {}", trace.model.name, options.head.layer, options.head.head, query);
  double y = edge;
  if (!bare)
    y = add_header(scene,
                   {fmt::format("{} · {}", head_title(options.head), query), options.badge, describe_run(trace), {}},
                   margin, margin, width, style);
  Plot placed = plot;
  placed.y = y = std::round(y + top);
  const double x = placed.x, x1 = x + placed.width();
  int index = 0;
  // Where the numbers would run into one another only the ends are written.
  const bool crowded = height / static_cast<double>(std::max<std::size_t>(marks.size(), 2) - 1) < 1.3 * number.size;
  for (const Tick& tick : marks) {
    if (crowded && tick.unit != 0 && tick.unit != 1) continue;
    const double level = std::round(y + height * (1 - tick.unit));
    scene.add({Line{{{x, level - 0.5}, {x1, level - 0.5}}, theme.line, 1}, tick.unit == 1 ? "axis.high" : "", "",
               AxisLevel{tick.value}});
    scene.add({Text{{x - 8, level + half_capital(number)}, tick.text, number, theme.muted, Anchor::end, 0},
               fmt::format("axis.tick.{}", index++), ""});
  }
  const double zero = placed.level(norm, 0), space = cell >= 12 ? std::round(cell * 0.16) : cell >= 4 ? 1 : 0;
  const Heatmap colors = heatmap_of(cells, {x, y, placed.width(), height}, shades, theme);
  for (Index c = 0; c < cells.columns(); ++c) {
    const double at = x + cell * static_cast<double>(c);
    const float value = cells.values.at(0, c);
    if (nth(cells.masked, c)) {
      Index end = c;
      while (end + 1 < cells.columns() && cells.masked[static_cast<std::size_t>(end) + 1]) ++end;
      scene.add({Box{{at, y, cell * static_cast<double>(end - c + 1), height}, theme.masked, {0, 0, 0, 0}, 0, 0},
                 fmt::format("masked.{}", c * cells.bin), ""});
      c = end;
      continue;
    }
    if (std::isnan(value)) {
      scene.add({Box{{at, y, cell, height}, theme.missing, {0, 0, 0, 0}, 0, 0}, fmt::format("bar.{}", c * cells.bin),
                 said("not a number"), TokenAt{c * cells.bin}});
      continue;
    }
    const double tip = placed.level(norm, value);
    scene.add({Box{{at + space / 2, std::min(tip, zero), cell - space, std::abs(zero - tip)},
                   visible(colors, c, theme.background),
                   {0, 0, 0, 0},
                   0,
                   0},
               fmt::format("bar.{}", c * cells.bin),
               bar_tooltip(trace, map, options.query, c * cells.bin, std::min(cells.bin, map.n_key() - c * cells.bin),
                           static_cast<double>(value)),
               TokenAt{c * cells.bin}});
  }
  scene.add({Line{{{x, std::round(zero) + 0.5}, {x1, std::round(zero) + 0.5}}, theme.faint, 1}, "", ""});
  SceneSeries numbers{fmt::format("{}[{}, :]", map_name(trace, map.id()), options.query - offset), {}, {}, {}};
  for (Index c = 0; c < cells.columns(); ++c) {
    const bool hidden = nth(cells.masked, c) != 0;
    numbers.x.push_back(static_cast<double>(c * cells.bin));
    numbers.y.push_back(hidden ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(cells.values.at(0, c)));
    numbers.labels.push_back(token_label(trace, c * cells.bin));
  }
  scene.series.push_back(std::move(numbers));
  add_values(scene, cells, norm, placed, style);
  add_bottom_axis(scene, keys, x, y + height, "key", theme.text, style);
  y += height + keys.depth + below;

  std::string caption = say("bars: {}", describe_weights(map.place().kind, norm.scale));
  if (std::any_of(cells.masked.begin(), cells.masked.end(), [](std::uint8_t m) { return m != 0; }))
    caption += said("; grey: masked");
  if (cells.bin > 1)
    caption += fmt::format("; {} {} → {}", pooled_how(cells.any_negative()), cells.n_key, cells.columns());
  caption += fmt::format(" · {}[{}, :]", map_name(trace, map.id()), options.query - offset) +
             (trace.source.empty() ? "" : " · " + trace.source);
  scene.description = caption;
  if (!bare) y = add_caption(scene, caption, margin, y, width, style);
  scene.height = std::ceil(y + edge);
  return scene;
}

}  // namespace headscope
