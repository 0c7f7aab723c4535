#include "app/workspaces/explore/head_map_view.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <utility>

#include "app/widgets/controls.h"
#include "app/workspaces/explore/evidence_popup.h"
#include "core/base/words.h"
#include "viz/scene/head_map.h"
#include "viz/scene/token_axis.h"

namespace headscope {

namespace {

/// Any label of an axis, and whether all of its positions have one.
struct AxisFound {
  const Text* like = nullptr;
  Index labels = 0;
};
AxisFound axis_of(const Scene& scene, LabelOf::Axis axis) {
  AxisFound found;
  for (const Mark& mark : scene.marks)
    if (const auto* label = meaning<LabelOf>(&mark); label && label->axis == axis) {
      found.like = &std::get<Text>(mark.shape);
      ++found.labels;
    }
  return found;
}

void paint_label(const PageContext& c, const SceneTouch& touch, const PointedLabel& label, const char* id) {
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto& g = label.ground;
  draw.AddQuadFilled(touch.window(g[0]), touch.window(g[1]), touch.window(g[2]), touch.window(g[3]),
                     col(c.ui.theme.background));
  draw_text(c.ui, draw, label.text, touch.origin, static_cast<double>(touch.pixels / c.ui.scale));
  const auto [left, right] = std::minmax({g[0].x, g[1].x, g[2].x, g[3].x});
  const auto [top, bottom] = std::minmax({g[0].y, g[1].y, g[2].y, g[3].y});
  c.ui.name(fmt::format("{} {}", id, label.text.text), touch.window({left, top}), touch.window({right, bottom}));
}

/// A row and a column of the map, by token, and the labels that name them, whether the axes write them or not.
struct Cross {
  std::optional<Index> row, column;  ///< of the picture's cells
  std::optional<PointedLabel> query, key;
};
Cross cross_of(const PageContext& c, const SceneTouch& touch, const Scene& scene, const Heatmap& heat, ImVec2 from,
               ImVec2 to, std::optional<Index> query_token, std::optional<Index> key_token) {
  const auto shown = [&](std::optional<Index> token) { return token ? std::optional(c.shown(*token)) : std::nullopt; };
  const std::optional<Index> query = shown(query_token), key = shown(key_token);
  Cross out{query ? heat.row_of(*query) : std::nullopt, key ? heat.column_of(*key) : std::nullopt, {}, {}};
  const auto label = [&](const AxisFound& axis, Index cells, Index position, bool number_first) {
    const std::string name = number_first ? token_label(c.positions(), position) : query_label(c.positions(), position);
    if (axis.labels >= cells) return name;
    return number_first ? fmt::format("{} {}", position, name) : fmt::format("{} {}", name, position);
  };
  const Style style = c.ui.style();
  const double pixels = static_cast<double>(touch.pixels);
  if (const AxisFound axis = axis_of(scene, LabelOf::column); out.column && axis.like) {
    const Rect first = heat.cell(0, *out.column);
    const Point edge{first.x + first.w / 2, heat.rect.y};
    const double angle = -axis.like->degrees * std::numbers::pi / 180;
    double room = 1e6;
    if (angle > 0) room = (edge.y + static_cast<double>(touch.origin.y - from.y) / pixels) / std::sin(angle) - 14;
    if (angle > 0 && angle < 1.5)
      room = std::min(room, (static_cast<double>(to.x - touch.origin.x) / pixels - edge.x) / std::cos(angle) - 10);
    out.key = point_above(*axis.like, edge, label(axis, heat.columns(), *key, true), std::max(room, 20.0),
                          c.ui.theme.key, style);
  }
  if (const AxisFound axis = axis_of(scene, LabelOf::row); out.row && axis.like) {
    const Rect first = heat.cell(*out.row, 0);
    const Point edge{heat.rect.x, first.y + first.h / 2};
    const double room = edge.x + static_cast<double>(touch.origin.x - from.x) / pixels - 10;
    out.query = point_beside(*axis.like, edge, label(axis, heat.rows(), *query, false), std::max(room, 20.0),
                             c.ui.theme.query, style);
  }
  return out;
}

/// Row and column pointed at: a frame round each, inside the map, and their labels.
void paint_cross(const PageContext& c, const SceneTouch& touch, const Scene& scene, const Heatmap& heat,
                 const ImVec2& from, const ImVec2& to) {
  const Cross cross = cross_of(c, touch, scene, heat, from, to, c.state().hover.query, c.state().hover.key);
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto frame = [&](const Rect& r, Color color) {
    draw.AddRect(touch.window({r.x, r.y}), touch.window({r.right(), r.bottom()}), col(color), 0, 0, c.ui.px(1));
  };
  if (cross.column) {
    const Rect first = heat.cell(0, *cross.column);
    frame({first.x, heat.rect.y, first.w, heat.rect.h}, with_opacity(c.ui.theme.key, 0.55));
    if (cross.key) paint_label(c, touch, *cross.key, "pointed key");
  }
  if (cross.row) {
    const Rect first = heat.cell(*cross.row, 0);
    frame({heat.rect.x, first.y, heat.rect.w, first.h}, with_opacity(c.ui.theme.query, 0.7));
    if (cross.query) paint_label(c, touch, *cross.query, "pointed query");
  }
}

/// For the spotlight: the row that is pointed at, else the pinned one, with its label; and the column down to that row,
/// where there is one.
void frame_pinned(const PageContext& c, const SceneTouch& touch, const Scene& scene, const Heatmap& heat, ImVec2 from,
                  ImVec2 to) {
  const Hover& hover = c.state().hover;
  const Document& document = c.state().document;
  const Cross cross = cross_of(c, touch, scene, heat, from, to, hover.query ? hover.query : document.query,
                               hover.query ? hover.key : document.key);
  const float rim = c.ui.px(2);
  const auto light = [&](const Rect& r) {
    const ImVec2 min = touch.window({r.x, r.y}), max = touch.window({r.right(), r.bottom()});
    c.ui.framed.add({std::max(min.x - rim, from.x), std::max(min.y - rim, from.y)},
                    {std::min(max.x + rim, to.x), std::min(max.y + rim, to.y)});
  };
  const auto light_label = [&](const std::optional<PointedLabel>& label) {
    if (!label) return;
    const auto& g = label->ground;
    const auto [left, right] = std::minmax({g[0].x, g[1].x, g[2].x, g[3].x});
    const auto [top, bottom] = std::minmax({g[0].y, g[1].y, g[2].y, g[3].y});
    light({left, top, right - left, bottom - top});
  };
  if (cross.row) {
    const Rect first = heat.cell(*cross.row, 0);
    light({heat.rect.x, first.y, heat.rect.w, first.h});
    light_label(cross.query);
  }
  if (cross.column) {
    const Rect cell = heat.cell(cross.row.value_or(heat.rows() - 1), *cross.column);
    light({cell.x, heat.rect.y, cell.w, cell.bottom() - heat.rect.y});
    light_label(cross.key);
  }
}

/// A cell that was jumped to is shown among so many, where numbers and labels have room; unless cells are this large.
constexpr Index shown_round_goal = 9;
constexpr double large_enough = 11;

/// For how long a picture of the map may compute tiles before it is shown as far as it is …
constexpr std::chrono::milliseconds at_first{16};
/// … and each time after that.
constexpr std::chrono::milliseconds at_a_time{60};

}  // namespace

/// Another text, or words for tokens: its map is another one, and is seen whole first.
void HeadMapView::keep_to_text(const PageContext& c) {
  const auto of = c.words() ? c.results().run->word_tokens : c.results().run->trace;
  if (text_of_ == of) return;
  text_of_ = of;
  std::vector<std::int32_t> ids;
  for (const Token& token : c.positions().tokens) ids.push_back(token.id);
  for (const Token& token : c.positions().query_tokens) ids.push_back(token.id);
  if (ids == text_) return;
  text_ = std::move(ids);
  part_.reset();
}

/// A row or a cell that was pinned outside the part comes into it.
void HeadMapView::follow_pin(const PageContext& c) {
  const Document& document = c.state().document;
  const auto shown = [&](std::optional<Index> token) { return token ? std::optional(c.shown(*token)) : std::nullopt; };
  const auto query = shown(document.query), key = shown(document.key);
  if (query != std::exchange(pinned_, query) && query) part_.reveal(*query);
  if (key != std::exchange(pinned_key_, key) && key) part_.reveal_key(*key);
}

void HeadMapView::want_scene(const PageContext& c, const ShownRun& run, double width, double height) {
  const HeadId head = c.state().document.selected;
  const View& view = c.state().view;
  const std::optional<MapRegion> shown = region();
  const auto pinned = [&](std::optional<Index> token) { return token ? std::optional(c.shown(*token)) : std::nullopt; };
  const std::optional<Index> query = pinned(c.state().document.query), key = pinned(c.state().document.key);
  const FirstToken first = view.first_token;
  const Scale scale = run.minus ? Scale::linear : view.scale;  // signed: the other scales have no place for it
  std::string wanted =
      fmt::format("{} {} {} {} {} {} {} {} {} {}", head.layer, head.head, name(scale), name(first), width, height,
                  run.words != nullptr, run.minus ? "difference" : "", query.value_or(-1), key.value_or(-1));
  const bool moved_alone = wanted == whole_;
  whole_ = wanted;
  if (shown) wanted += fmt::format(" {} {} {} {}", shown->query, shown->n_query, shown->key, shown->n_key);
  if (wanted != wanted_) refined_ = 0;
  wanted_ = wanted;
  if (refined_ > 0) wanted += fmt::format(" refined {}", refined_);
  const auto picture = [=, maps = maps_](const Style& style, const Ctx* ctx, std::chrono::milliseconds most) {
    const std::shared_ptr<ShownMap> map = maps->of(run, head, first);
    const auto begin = std::chrono::steady_clock::now();
    HeadMapOptions o;
    o.head = head;
    o.scaling.scale = scale;
    o.query = query;
    o.key = key;
    o.bare = true;
    o.room = {width, height};
    o.region = shown;
    o.cells = [&](const MapRegion& part, Index max_cells) {
      const auto go_on = [&] {
        return !ctx || (!ctx->stop.stop_requested() && std::chrono::steady_clock::now() - begin < most);
      };
      return map_cells(map->pyramid, part, max_cells, go_on, ctx ? &ctx->backend.pool() : nullptr);
    };
    return head_map_scene(*map->trace, o, style);
  };
  slot_.want(
      c.jobs, c.ui, run.trace, wanted, [=](const Style& style) { return picture(style, nullptr, {}); },
      [=, most = refined_ > 0 ? at_a_time : at_first](const Style& style, const Ctx& ctx) {
        return picture(style, &ctx, most);
      },
      moved_alone);
}

void HeadMapView::draw(const PageContext& c, const AttentionMap& map, CellTools& tools, double width, double height) {
  const View& view = c.state().view;
  const ShownRun run = shown_run(c);
  keep_to_text(c);
  const Index words = c.words() ? c.words()->words() : 0;
  part_.of(c.words() ? words : map.n_query(), c.words() ? words : map.n_key());
  if (const double bar = walk_.height(c, map); bar > 0) {
    walk_.bar(c, map, width);
    height -= bar;
  }
  walk_.go(c, map);
  if (const auto goal = walk_.take_goal()) {
    part_.show(goal->query, goal->key, cell_ < large_enough ? std::optional(shown_round_goal) : std::nullopt);
    *c.ui.animate = true;
  }
  follow_pin(c);
  if (view.follow_row && pinned_) part_.reveal(*pinned_);
  want_scene(c, run, width, height);

  const bool tool = view.map_tool != MapTool::style && !c.words() && !c.captured();
  SceneViewOptions how = MapPart::view();
  how.centered = true;
  const ImVec2 from = ImGui::GetCursorScreenPos(), to{from.x + c.ui.px(width), from.y + c.ui.px(height)};
  ImGui::SetNextItemAllowOverlap();  // the button beside the map
  const SceneTouch touch = slot_.draw(c.ui, "head", how, width, height);
  if (!part_.whole()) c.ui.pictures.pass("head", MapPart::in_words);
  const Scene* scene = slot_.scene();
  const Mark* drawn = scene ? find(*scene, "map") : nullptr;
  if (!drawn) return;
  const auto& heat = std::get<Heatmap>(drawn->shape);
  const Index bin = heat.row_bin;
  cell_ = std::min(heat.rect.w / static_cast<double>(heat.columns()), heat.rect.h / static_cast<double>(heat.rows())) /
          static_cast<double>(bin);
  if (heat.unfinished && slot_.current()) {
    ++refined_;
    *c.ui.animate = true;
  }
  const bool moving = part_.use_minimap(touch, *scene);
  if (part_.follow(touch, heat.rect, !moving && !tool)) *c.ui.animate = true;

  if (touch.mark == drawn && touch.cell && !moving) {
    Index q = heat.first_row + touch.cell->row * bin - map.place().offset,
          k = heat.first_column + touch.cell->column * bin;
    if (const WordGroups* groups = c.words(); groups && q < groups->words() && k < groups->words()) {
      q = groups->tokens_of(q).end - 1;  // where the model has read the whole word
      k = groups->tokens_of(k).begin;
    } else if (bin > 1 && !tool) {
      const auto best = map.strongest({q, std::min(q + bin, map.n_query())}, {k, std::min(k + bin, map.n_key())});
      if (best) q = best->query, k = best->key;
    }
    c.hovered.query = q;
    c.hovered.key = k;
    if (touch.clicked && !tool) c.editor.pin(q, k);
    if (const auto says = cell_words(c, q, k); says && !tool && !touch.held) {
      std::vector<std::string> lines{says->words};
      if (bin > 1) lines.push_back(say("the strongest of the {} × {} weights in this cell", bin, bin));
      lines.push_back(says->provenance);
      if (!says->source.empty()) lines.push_back(says->source);
      tooltip(c.ui, lines);
    }
  } else if (touch.hovered && touch.mark && touch.mark->id == "minimap" && !touch.held) {
    tooltip(c.ui, {said("The whole map"), said("click or drag to move the part that is shown")});
  }
  if (tool && !moving) tools.on_map(c, touch, map, heat);
  paint_evidence(c, touch, heat);
  paint_cross(c, touch, *scene, heat, from, to);
  if (c.ui.framed.asked) frame_pinned(c, touch, *scene, heat, from, to);
  part_.reset_button(c.ui, touch, *scene);
}

}  // namespace headscope
