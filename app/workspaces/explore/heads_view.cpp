#include "app/workspaces/explore/heads_view.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/shown_run.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/trace/query_rows.h"
#include "viz/scene/head_rows.h"
#include "viz/scene/map_cells.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

constexpr double toolbar = 36, listed_row = 15;

QueryRows rows_of(const ShownRun& run, Index query, FirstToken first) {
  const WordGroups* words = run.words ? &run.words->words : nullptr;
  const auto viewed = [&](const Trace& trace) {
    QueryRows rows = query_rows(trace, query, words);
    if (first != FirstToken::show) hide_first_key(rows, first == FirstToken::renormalize);
    return rows;
  };
  return run.minus ? difference(viewed(*run.trace), viewed(*run.minus)) : viewed(*run.trace);
}

/// Strongest first: by the weight on `key`, or, without one, by the largest of the row; heads that attend before those
/// of states, whose weights are of another kind.
void sort(QueryRows& rows, std::optional<Index> key, const ModelDims& dims) {
  const Tensor& weights = rows.weights;
  const auto strength = [&](Index r) {
    float most = -1;
    for (Index k = key.value_or(0); k < (key ? *key + 1 : weights.dim(1)); ++k)
      if (!std::isnan(weights.at(r, k))) most = std::max(most, std::abs(weights.at(r, k)));
    return most;
  };
  std::vector<Index> order(rows.heads.size());
  std::iota(order.begin(), order.end(), Index{0});
  const auto attends = [&](Index r) { return dims.attends(nth(rows.heads, r).layer); };
  std::ranges::stable_sort(
      order, [&](Index a, Index b) { return attends(a) != attends(b) ? attends(a) : strength(a) > strength(b); });
  QueryRows sorted{Tensor::zeros({weights.dim(0), weights.dim(1)}), {}, rows.kind};
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted.heads.push_back(nth(rows.heads, order[i]));
    for (Index k = 0; k < weights.dim(1); ++k) sorted.weights.ref(static_cast<Index>(i), k) = weights.at(order[i], k);
  }
  rows = std::move(sorted);
}

}  // namespace

void HeadsView::order_choice(const PageContext& c, Index query) {
  static constexpr const char* orders[] = {to_say("by layer"), to_say("strongest first")};
  const float top = ImGui::GetCursorPosY(), width = segmented_width(c.ui, orders);
  {
    const UseFont font(c.ui, c.ui.body());
    ImGui::AlignTextToFramePadding();
    const double room = c.room() - static_cast<double>(width / c.ui.scale) - 16;
    const std::string says = say("Where {} looks, in every head", token_word(c.positions(), c.shown(query)));
    text_line(c.ui, elided(says, c.ui.body(), std::max(room, 40.0), c.ui.fonts));
  }
  ImGui::SameLine();
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, ImGui::GetContentRegionAvail().x - width));
  ImGui::SetCursorPosY(top);
  int order = strongest_first_ ? 1 : 0;
  if (segmented(c.ui, "order of heads", orders, order)) strongest_first_ = order == 1;
  if (ImGui::IsItemHovered())
    tooltip(c.ui, {said("Order of the heads"),
                   said("strongest first: by the weight on the pinned key, else by the row's largest")});
  ImGui::SetCursorPosY(top + c.ui.px(toolbar));
}

void HeadsView::draw(const PageContext& c, Index query, double width, double height) {
  order_choice(c, query);
  const ShownRun run = shown_run(c);
  const View& view = c.state().view;
  const Document& document = c.state().document;
  const Index at = c.shown(query);
  const auto key = document.key ? std::optional(c.shown(*document.key)) : std::nullopt;
  HeadRowsOptions options;
  options.query = at;
  options.key = key;
  options.scale = view.scale == Scale::log && !run.minus ? Scale::log : Scale::linear;
  options.selected = {document.selected.layer, document.selected.head};
  options.width = std::floor(width);
  options.height = std::floor(height - toolbar - 6);
  options.largest_row = 26;
  options.least_row = strongest_first_ ? listed_row : 4;
  options.values = true;
  const std::string wanted =
      fmt::format("{} {} {} {} {} {} {} {} {} {}.{}", at, key.value_or(-1), options.width, options.height,
                  name(options.scale), name(view.first_token), run.words != nullptr, run.minus ? "difference" : "",
                  strongest_first_, document.selected.layer, document.selected.head);
  slot_.want(c.jobs, c.ui, run.trace, wanted,
             [=, first = view.first_token, sorted = strongest_first_,
              tokens = run.words ? run.words->word_tokens : run.trace](const Style& style) {
               HeadRowsOptions o = options;
               QueryRows rows = rows_of(run, at, first);
               if (sorted) sort(rows, key, run.trace->model.dims);
               if (sorted || run.trace->model.dims.state_heads > 0) {
                 o.listed = rows.heads;
               } else {
                 o.heads = run.trace->model.dims.heads;
               }
               o.kind = rows.kind;
               return head_rows_scene(*tokens, rows.weights, o, style);
             });
  if (ImGui::BeginChild("heads of one token", {c.ui.px(width), c.ui.px(height - toolbar)},
                        ImGuiChildFlags_NavFlattened)) {
    const Scene* scene = slot_.scene();
    if (scene) {
      SceneViewOptions how;
      how.fit_height = false;
      how.tooltips = false;
      const SceneTouch touch = slot_.draw(c.ui, "heads", how, options.width, scene->height);
      if (const auto* rows = meaning<HeadRows>(touch.mark); rows && touch.cell) {
        const HeadId head = nth(rows->heads, touch.cell->row);
        const auto& heat = std::get<Heatmap>(touch.mark->shape);
        const Index to = touch.cell->column * heat.column_bin;
        const bool masked = heat.is_masked(touch.cell->row, touch.cell->column);
        const double weight = masked ? std::numeric_limits<double>::quiet_NaN()
                                     : static_cast<double>(heat.values.at(touch.cell->row, touch.cell->column));
        c.hovered.head = head;
        c.hovered.query = query;
        c.hovered.key = c.words() ? c.words()->tokens_of(to).begin : to;
        tooltip(
            c.ui,
            {say("Layer {} Head {}: {}", head.layer, head.head,
                 weight_says(c.positions(), run.minus ? MapKind::difference : MapKind::probability, at, to, weight)),
             say("query {}, key {} · {}[{}, {}]", at, to, map_name(*c.trace(), head), at, to),
             said("click to select the head")});
        if (touch.clicked) c.editor.select(head);
      }
    }
  }
  ImGui::EndChild();
}

}  // namespace headscope
