#include "viz/scene/head_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/trace/hook_names.h"
#include "core/trace/model_heads.h"
#include "viz/scene/head_map.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double group_gap = 5;

/// Rows of one layer, or of a list.
struct Group {
  std::string id;     ///< of the mark
  std::string title;  ///< "L3"; "" for a list
  Index first = 0, count = 0;
};

/// A list of some heads, or of all in another order than layer by layer.
bool is_list(const HeadRowsOptions& options, const ModelDims& dims) {
  return !options.listed.empty() && options.listed != every_head(dims);
}

std::vector<Group> groups_of(const Tensor& rows, const HeadRowsOptions& options, const ModelDims& dims) {
  std::vector<Group> out;
  if (is_list(options, dims)) {
    // Heads that attend before those of states: their weights are not of a kind.
    const auto attends = [&](const HeadId& head) { return dims.attends(head.layer); };
    const auto states = std::ranges::find_if_not(options.listed, attends);
    const Index count = rows.dim(0), attending = states - options.listed.begin();
    const bool apart = attending > 0 && attending < count && std::none_of(states, options.listed.end(), attends);
    out.push_back({"rows", "", 0, apart ? attending : count});
    if (apart) out.push_back({"rows.states", "", attending, count - attending});
    return out;
  }
  if (!options.listed.empty()) {
    for (int layer = 0; layer < dims.layers; ++layer)
      out.push_back({fmt::format("rows.{}", layer), fmt::format("L{}", layer), head_index(dims, {layer, 0}),
                     dims.heads_of(layer)});
    return out;
  }
  for (Index layer = 0; layer * options.heads < rows.dim(0); ++layer)
    out.push_back({fmt::format("rows.{}", layer), fmt::format("L{}", layer), layer * options.heads, options.heads});
  return out;
}

/// Some of the rows, `bin` positions in a cell by their largest weight; masked where all of them are hidden.
MapCells cells_of(const Tensor& rows, const Group& group, Index bin) {
  MapCells out;
  out.bin = bin;
  out.n_query = group.count;
  out.n_key = rows.dim(1);
  const Index columns = (rows.dim(1) + bin - 1) / bin;
  out.values = Tensor::zeros({group.count, columns});
  out.masked.assign(static_cast<std::size_t>(group.count * columns), 1);
  for (Index r = 0; r < group.count; ++r)
    for (Index k = 0; k < rows.dim(1); ++k) {
      const float weight = rows.at(group.first + r, k);
      if (std::isnan(weight)) continue;
      pool_weight(out.values.ref(r, k / bin), weight);
      nth(out.masked, r * columns + k / bin) = 0;
    }
  if (!out.any_masked()) out.masked.clear();
  return out;
}

void check(const Tensor& rows, const HeadRowsOptions& options) {
  const bool list = !options.listed.empty();
  const bool whole = rows.rank() == 2 && rows.dim(0) > 0 &&
                     (list ? static_cast<Index>(options.listed.size()) == rows.dim(0)
                           : options.heads >= 1 && rows.dim(0) % options.heads == 0);
  if (!whole)
    throw Error(
        "rows of the heads",
        list ? fmt::format("{} rows", options.listed.size()) : fmt::format("whole layers of {} heads", options.heads),
        rows.shape().str());
  if (options.scale == Scale::per_row)
    throw Error("rows of the heads", "one scale for all rows, linear or log", "a scale for each row");
}

}  // namespace

Scene head_rows_scene(const Trace& tokens, const Tensor& rows, const HeadRowsOptions& options, const Style& style) {
  check(rows, options);
  const Theme& theme = style.theme;
  const ModelDims& dims = tokens.model.dims;
  const std::vector<Group> groups = groups_of(rows, options, dims);
  const Index positions = rows.dim(1), query = options.query.value_or(positions - 1);
  const bool list = is_list(options, dims);
  const auto head_of = [&](const Group& group, Index row) {
    const auto at = static_cast<int>(group.first + row);
    return options.listed.empty() ? HeadId{at / options.heads, at % options.heads} : nth(options.listed, at);
  };
  const auto label_of = [&](const Group& group, Index row) {
    return list ? to_string(head_of(group, row)) : std::to_string(row);
  };
  const Font number = theme.small_token();
  Font layer_font = theme.caption();
  layer_font.weight = 600;
  double labels = 0, titles = 0;
  for (const Group& group : groups) {
    if (!group.title.empty()) titles = std::max(titles, style.measure.width(group.title, layer_font) + 10);
    for (Index r = 0; r < group.count; ++r) labels = std::max(labels, style.measure.width(label_of(group, r), number));
  }
  const double edge = options.titled ? margin : 0;
  double left = std::ceil(titles + labels + 6), cell = 0;
  Index bin = 1, columns = positions;
  AxisPlan axis;
  // Labels below lean to the left and reach beyond the map: that makes cells smaller, and so perhaps labels fewer.
  for (int round = 0; round < 3; ++round) {
    const double room = std::max(options.width - 2 * edge - left - 4, 40.0);
    bin = std::max<Index>(1, static_cast<Index>(std::ceil(static_cast<double>(positions) / room)));
    columns = (positions + bin - 1) / bin;
    cell = std::clamp(std::floor(4 * room / static_cast<double>(columns)) / 4, 1.0, 44.0);
    axis = plan_bottom_axis({tokens, 0, positions, bin, cell, options.key.value_or(query)}, style);
    if (axis.overhang <= left) break;
    left = std::ceil(axis.overhang);
  }
  const double annotations = axis.depth + (tokens.model.dims.hybrid() ? 108 : 54) * theme.text_scale;
  const double row_height =
      std::clamp(std::floor((options.height - annotations - group_gap * static_cast<double>(groups.size())) /
                            static_cast<double>(rows.dim(0))),
                 options.least_row, options.largest_row);

  std::vector<MapCells> cells;
  for (const Group& group : groups) cells.push_back(cells_of(rows, group, bin));
  // Layers that mix tokens by a state have a scale of their own, beside those that attend.
  const bool mixed = dims.hybrid() && static_cast<int>(groups.size()) == (list ? 2 : dims.layers);
  const auto by_state = [&](std::size_t group) { return mixed && !dims.attends(head_of(groups[group], 0).layer); };
  const MapKind state_kind = options.kind == MapKind::difference ? options.kind : MapKind::effective;
  std::vector<MapCells> of_states, others;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    // What a state makes of tokens has signs, whether or not these rows show one.
    bool states = true;
    for (Index row = 0; row < groups[g].count; ++row) states &= !dims.attends(head_of(groups[g], row).layer);
    cells[g].with_signs = states;
    (by_state(g) ? of_states : others).push_back(cells[g]);
  }
  const ColorNorm norm = norm_for(others, options.kind, {options.scale, {}, {}}),
                  of_state = mixed ? norm_for(of_states, state_kind, {Scale::linear, {}, {}}) : norm;

  Scene scene;
  scene.background = theme.background;
  scene.width = options.width;
  const std::string asked = say("query {} “{}”", query, query_label(tokens, query));
  scene.title = say("rows of all heads, {}", asked);
  double y = edge + 1;
  if (options.titled)
    y = add_header(scene, {say("All heads · {}", asked), {}, describe_run(tokens), {}}, edge, y,
                   options.width - 2 * edge, style) +
        12;
  const double x = edge + left, width = cell * static_cast<double>(columns);
  float highest = 0, highest_of_state = 0;
  bool masked = false;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    const Rect rect{x, y, width, row_height * static_cast<double>(group.count)};
    float& most = by_state(g) ? highest_of_state : highest;
    most = std::max(most, cells[g].highest());
    masked |= cells[g].any_masked();
    Heatmap drawn = heatmap_of(cells[g], rect, by_state(g) ? of_state : norm, theme);
    drawn.row_bin = 1;  // a row is a head
    drawn.gap = row_height >= 8 && cell >= 8 ? 1 : 0;
    HeadRows heads;
    for (Index r = 0; r < group.count; ++r) heads.heads.push_back(head_of(group, r));
    scene.add({drawn, group.id,
               list ? fmt::format("blocks.[layer].attn.hook_pattern[head, {}, :]", query)
                    : fmt::format("{}[head, {}, :]",
                                  name(Site{SiteKind::pattern, static_cast<int>(g)}, tokens.model.stack,
                                       HookNames::transformer_lens),
                                  query),
               std::move(heads)});
    if (options.values && bin == 1)
      add_cell_values(scene, drawn, by_state(g) ? state_kind : options.kind, "value." + group.id, style);
    if (!group.title.empty())
      scene.add({Text{{edge, rect.y + rect.h / 2 + half_capital(layer_font)},
                      group.title,
                      layer_font,
                      theme.muted,
                      Anchor::start,
                      0},
                 "", ""});
    for (Index r = 0; r < group.count; ++r) {
      const double middle = rect.y + row_height * (static_cast<double>(r) + 0.5);
      if (row_height >= number.size)
        scene.add(
            {Text{{x - 6, middle + half_capital(number)}, label_of(group, r), number, theme.faint, Anchor::end, 0},
             list ? fmt::format("label.row.{}", group.first + r) : fmt::format("label.{}.row.{}", g, r), "",
             LabelOf{LabelOf::row, r, group.id}});
      if (options.selected == head_of(group, r))
        scene.add({Box{{rect.x - 1, rect.y + row_height * static_cast<double>(r) - 1, width + 2, row_height + 2},
                       {0, 0, 0, 0},
                       theme.accent,
                       1.5,
                       0},
                   "selected", ""});
    }
    y = rect.bottom() + group_gap;
  }
  add_bottom_axis(scene, axis, x, y - group_gap + 2, "key", theme.accent, style);
  y += axis.depth + 4;
  const bool with_signs = std::ranges::any_of(others, [](const MapCells& each) { return each.any_negative(); });
  const std::string pooled = bin > 1 ? fmt::format(", {} {} → {}", pooled_how(with_signs), positions, columns) : "";
  y = add_color_bar(scene,
                    {describe_weights(options.kind, norm.scale) + pooled, norm,
                     is_signed(norm) ? theme.diverging : theme.sequential, highest, masked, false},
                    x, y, std::max(options.width - 2 * edge - left, 200.0), style);
  if (mixed)
    y = add_color_bar(scene,
                      {describe_weights(state_kind, Scale::linear), of_state,
                       is_signed(of_state) ? theme.diverging : theme.sequential, highest_of_state, masked, false},
                      x, y, std::max(options.width - 2 * edge - left, 200.0), style);
  scene.description = say("row {} of every head's pattern", query) + pooled +
                      (options.titled && !tokens.source.empty() ? " · " + tokens.source : "");
  if (options.titled) y = add_caption(scene, scene.description, edge, y + 8, options.width - 2 * edge, style);
  scene.height = std::ceil(y + edge + 2);
  return scene;
}

}  // namespace headscope
