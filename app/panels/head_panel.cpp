#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/panels/panels.h"
#include "app/widgets/controls.h"
#include "core/trace/first_key.h"
#include "core/trace/map_difference.h"
#include "viz/scene/arcs.h"
#include "viz/scene/head_map.h"
#include "viz/scene/row_bars.h"
#include "viz/scene/score_split.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

const HeadVerdict* verdict_of(const PanelContext& c) {
  const HeadFacts* facts = c.facts();
  const int row = facts ? facts->row(c.state().document.selected) : -1;
  if (row < 0 || facts->verdicts[static_cast<std::size_t>(row)].empty()) return nullptr;
  return &facts->verdicts[static_cast<std::size_t>(row)].front();
}

Badge badge_of(const PanelContext& c) {
  const HeadVerdict* verdict = verdict_of(c);
  if (!verdict) return {};
  return {fmt::format("{} {:.2f}", verdict->rule->title, verdict->score), class_color(*verdict->rule)};
}

/// The run whose maps are shown, what they are subtracted from (null: nothing is), and whose words the axes are
/// (null: tokens).
struct ShownRun {
  std::shared_ptr<const Trace> trace, minus;
  std::shared_ptr<const TracedRun> words;
};
ShownRun shown_run(const PanelContext& c) {
  const EditEffect* effect = compared(c);
  ShownRun run{c.results().run->trace, nullptr, c.words() ? c.results().run : nullptr};
  if (!effect || c.state().view.shown == Shown::after) return run;
  run.trace = c.state().view.shown == Shown::before ? effect->before : effect->after;
  if (c.state().view.shown == Shown::difference) run.minus = effect->before;
  return run;
}

/// The run with the selected head's map as the view wants it; the trace itself when it is shown as it is.
std::shared_ptr<const Trace> as_viewed(const ShownRun& run, HeadRef head, FirstToken mode) {
  if (mode == FirstToken::show && !run.minus && !run.words) return run.trace;
  const auto this_head = [&](int layer, int number) { return HeadRef{layer, number} == head; };
  const auto in_unit = [&](const Trace& trace) {
    return run.words ? in_words(trace, run.words->words, this_head) : trace;
  };
  const auto viewed = [&](const AttentionMap& map) {
    return mode == FirstToken::show ? map : without_first_key(map, mode == FirstToken::renormalize);
  };
  auto changed = std::make_shared<Trace>(in_unit(*run.trace));
  std::optional<Trace> minus;
  if (run.minus) minus = in_unit(*run.minus);
  for (AttentionMap& map : changed->maps)
    if (map.layer() == head.layer && map.head() == head.head)
      map = run.minus ? map_difference(viewed(map), viewed(minus->map(head.layer, head.head))) : viewed(map);
  return changed;
}

const AttentionMap* selected_map(const PanelContext& c) {
  if (!c.trace()) return nullptr;
  const HeadRef head = c.state().document.selected;
  for (const AttentionMap& map : c.trace()->maps)
    if (map.layer() == head.layer && map.head() == head.head) return &map;
  return nullptr;
}

std::string at(const Trace& trace, Index position) {
  return fmt::format("{} {}", token_label(trace, position), position);
}

/// A highlighted row and column over the map's heatmap.
void paint_cross(const PanelContext& c, const SceneTouch& touch, const Heatmap& map, Index bin) {
  const auto shown = [&](std::optional<Index> token) { return token ? std::optional(c.shown(*token)) : std::nullopt; };
  const struct {
    std::optional<Index> query, key;
  } hover{shown(c.state().hover.query), shown(c.state().hover.key)}, document{shown(c.state().document.query), {}};
  ImDrawList& draw = *ImGui::GetWindowDrawList();
  const auto frame = [&](const Rect& r, Color color, double width) {
    draw.AddRect(touch.window({r.x, r.y}), touch.window({r.right(), r.bottom()}), col(color), 0, 0, c.ui.px(width));
  };
  const auto row = [&](Index query) {
    const Rect first = map.cell(std::min(query / bin, map.rows() - 1), 0);
    return Rect{map.rect.x, first.y, map.rect.w, first.h};
  };
  if (hover.key && *hover.key / bin < map.columns()) {
    const Rect first = map.cell(0, *hover.key / bin);
    frame({first.x, map.rect.y, first.w, map.rect.h}, with_opacity(c.ui.theme.key, 0.55), 1);
  }
  if (hover.query && *hover.query / bin < map.rows()) frame(row(*hover.query), with_opacity(c.ui.theme.query, 0.7), 1);
  if (document.query && *document.query / bin < map.rows()) frame(row(*document.query), c.ui.theme.accent, 2);
}

}  // namespace

void HeadPanel::header(const PanelContext& c) {
  const HeadRef head = c.state().document.selected;
  const float top = ImGui::GetCursorPosY();
  {
    const UseFont font(c.ui, c.ui.heading());
    ImGui::AlignTextToFramePadding();
    ImGui::TextUnformatted(fmt::format("Layer {} · Head {}", head.layer, head.head).c_str());
  }
  if (const HeadVerdict* verdict = verdict_of(c)) {
    ImGui::SameLine(0, c.ui.px(12));
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + c.ui.px(5));  // the title's line is higher than the label
    const Badge mark = badge_of(c);
    badge(c.ui, mark.text, mark.color);
    if (ImGui::IsItemHovered()) {
      std::vector<std::string> lines{
          fmt::format("{}: {:.3f}, chance {:.3f}", verdict->rule->title, verdict->score, verdict->chance),
          std::string(metric(verdict->rule->metric).formula), "strongest cells:"};
      for (const Evidence& cell : verdict->evidence)
        lines.push_back(
            fmt::format("{} → {}  {:.3f}", at(*c.trace(), cell.query), at(*c.trace(), cell.key), cell.weight));
      tooltip(c.ui, lines);
    }
  }
  static constexpr const char* labels[] = {"Map", "Arcs", "Row", "Steps", "q·k"};
  int view = static_cast<int>(c.state().view.head_view);
  const float width = c.ui.px(segmented_width(c.ui, labels) / c.ui.scale);
  if (ImGui::GetItemRectMax().x + width + c.ui.px(12) <
      ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x) {
    ImGui::SameLine();
    ImGui::SetCursorPosY(top);
  }
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, ImGui::GetContentRegionAvail().x - width));
  if (segmented(c.ui, "head view", labels, view)) {
    c.explorer.view().head_view = static_cast<HeadView>(view);
    slot_.camera = {};
  }
}

void HeadPanel::main_view(const PanelContext& c, double height) {
  const HeadRef head = c.state().document.selected;
  const View& view = c.state().view;
  const Document& document = c.state().document;
  const ShownRun run = shown_run(c);
  const AttentionMap* map = selected_map(c);
  if (!map) return empty_state(c.ui, "This head was not recorded", "Choose a head in the atlas.");
  const double width = c.room();
  // Whole pixels for every cell, and rather one too many, drawn a little smaller, than much room left over.
  const auto positions = static_cast<Index>(c.positions().tokens.size());
  const double aim = std::floor(std::min(width - 100, height - 100)), side = static_cast<double>(positions),
               wider = (std::floor(aim / side) + 1) * side, plot = wider <= 1.3 * aim ? wider : aim;
  const Index query = document.query.value_or(c.state().hover.query.value_or(map->n_query() - 1));
  const bool words = run.words != nullptr;
  const std::string place =
      fmt::format("{} {} {} {} {} {} {} {}", head.layer, head.head, static_cast<int>(view.head_view), name(view.scale),
                  name(view.first_token), plot, words, run.minus ? "difference" : "");
  const Badge mark = badge_of(c);
  const FirstToken first = view.first_token;
  const Scale scale = view.scale;
  const auto trace = run.trace;
  SceneViewOptions how;
  const bool tool = view.head_view == HeadView::map && view.map_tool != MapTool::look && !c.words();
  switch (view.head_view) {
    case HeadView::map:
      how.zoomable = how.centered = true;
      how.pannable = !tool;
      how.tooltips = !tool;
      slot_.want(c.explorer, c.ui, trace, place, [=](const Look& look) {
        HeadMapOptions o;
        o.layer = head.layer;
        o.head = head.head;
        o.scaling.scale = scale;
        o.plot = plot;
        o.bare = true;
        if (run.minus) o.scaling.scale = Scale::linear;  // signed: the other scales have no place for it
        return head_map_scene(*as_viewed(run, head, first), o, look);
      });
      break;
    case HeadView::arcs:
      slot_.want(c.explorer, c.ui, trace,
                 place + fmt::format(" {} {}", view.arcs_threshold, document.query.value_or(-1)),
                 [=, threshold = view.arcs_threshold,
                  pinned = document.query ? std::optional(c.shown(*document.query)) : std::nullopt](const Look& look) {
                   ArcsOptions o;
                   o.layer = head.layer;
                   o.head = head.head;
                   o.threshold = threshold;
                   o.query = pinned;
                   o.skip_first = first != FirstToken::show;
                   o.bare = true;
                   return arcs_scene(*as_viewed(run, head, FirstToken::show), o, look);
                 });
      how.fit_height = false;
      how.centered = true;
      break;
    case HeadView::row:
      slot_.want(c.explorer, c.ui, trace, place + fmt::format(" {}", query),
                 [=, row = c.shown(query)](const Look& look) {
                   RowBarsOptions o;
                   o.layer = head.layer;
                   o.head = head.head;
                   o.query = row;
                   o.scaling.scale = scale == Scale::log && !run.minus ? Scale::log : Scale::linear;
                   o.room = {width, height};
                   return row_bars_scene(*as_viewed(run, head, first), o, look);
                 });
      break;
    case HeadView::steps:
    case HeadView::qk: {
      const auto detail = c.results().detail;
      if (!detail || detail->head != head) return empty_state(c.ui, "Reading the scores of this head …", "");
      if (view.head_view == HeadView::steps) {
        slot_.want(c.explorer, c.ui, detail, place, [=](const Look& look) {
          return head_steps_scene(*detail->trace, {head.layer, head.head, width}, look);
        });
      } else {
        const Index key = document.key.value_or(std::max<Index>(
            0, detail->map().stats().max_key[static_cast<std::size_t>(std::min(query, detail->map().n_query() - 1))]));
        const bool rotary =
            c.results().model.model && c.results().model.model->config().position == PositionKind::rotary;
        slot_.want(c.explorer, c.ui, detail, place + fmt::format(" {} {}", query, key), [=](const Look& look) {
          return score_split_scene(
              *detail->trace, {head.layer, head.head, query, key, rotary, width, std::clamp(height - 20, 200.0, 420.0)},
              look);
        });
      }
      break;
    }
  }
  const SceneTouch touch = slot_.draw(c.ui, "head", how, width, height);
  if (view.head_view != HeadView::map || !slot_.scene()) return;
  const Mark* drawn = find(*slot_.scene(), "map");
  if (!drawn) return;
  const auto& heat = std::get<Heatmap>(drawn->shape);
  const Index bin = std::max<Index>(1, (positions + heat.rows() - 1) / heat.rows());
  if (touch.mark == drawn && touch.cell) {
    Index q = touch.cell->row * bin, k = touch.cell->column * bin;
    if (const WordGroups* groups = c.words(); groups && q < groups->words() && k < groups->words()) {
      q = groups->tokens_of(q).end - 1;  // where the model has read the whole word
      k = groups->tokens_of(k).begin;
    }
    c.hovered.query = q;
    c.hovered.key = k;
    if (touch.clicked && !tool) c.explorer.pin(q, k);
  }
  if (tool) tools_.on_map(c, touch, *map, bin);
  paint_cross(c, touch, heat, bin);
}

namespace {
/// Choices side by side, on a new line where the old one has no room left.
bool choice(const Ui& ui, const char* id, std::span<const char* const> labels, int& chosen, bool& first) {
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  if (!std::exchange(first, false) &&
      ImGui::GetItemRectMax().x + ui.px(12) + ui.px(segmented_width(ui, labels) / ui.scale) <= right)
    ImGui::SameLine(0, ui.px(12));
  return segmented(ui, id, labels, chosen);
}
constexpr const char* scales[] = {"linear", "log", "row-max"};
constexpr const char* first_tokens[] = {"first token", "hidden", "renormalised"};
constexpr const char* units[] = {"tokens", "words"};
constexpr const char* map_tools[] = {"look", "weights", "mask"};
constexpr const char* showns[] = {"after", "before", "Δ"};
}  // namespace

double HeadPanel::footer_height(const PanelContext& c) const {
  // The same arithmetic as choice(), so that the map takes exactly what is left.
  const double room = c.room();
  double x = 0;
  int lines = 1;
  const auto take = [&](std::span<const char* const> labels) {
    const double width = static_cast<double>(segmented_width(c.ui, labels) / c.ui.scale);
    if (x > 0 && x + 12 + width > room) ++lines, x = 0;
    x += (x > 0 ? 12 : 0) + width;
  };
  take(scales);
  take(first_tokens);
  take(units);
  if (c.state().view.head_view == HeadView::map && !c.words()) take(map_tools);
  take(showns);  // also before there is an edit: the map must not move under the hand that makes one
  return 44 + 38 * (lines - 1);
}

void HeadPanel::footer(const PanelContext& c) {
  View& view = c.explorer.view();
  bool first = true;
  int scale = static_cast<int>(view.scale);
  if (choice(c.ui, "scale", scales, scale, first)) view.scale = static_cast<Scale>(scale);
  int mode = static_cast<int>(view.first_token);
  if (choice(c.ui, "first token mode", first_tokens, mode, first)) view.first_token = static_cast<FirstToken>(mode);
  int unit = static_cast<int>(view.text_unit);
  if (choice(c.ui, "text unit", units, unit, first)) view.text_unit = static_cast<TextUnit>(unit);
  if (ImGui::IsItemHovered())
    tooltip(c.ui, {"Tokens, or words (W)", "to a word: the sum over its tokens; from a word: the mean over its tokens",
                   "a word begins at a space, at punctuation and at a line break",
                   "scores (Steps, q·k) and the head's numbers are those of tokens"});
  if (view.head_view == HeadView::map && !c.words()) {
    int tool = static_cast<int>(view.map_tool);
    if (choice(c.ui, "map tool", map_tools, tool, first)) view.map_tool = static_cast<MapTool>(tool);
  }
  if (compared(c)) {
    int shown = static_cast<int>(view.shown);
    if (choice(c.ui, "shown run", showns, shown, first)) view.shown = static_cast<Shown>(shown);
    if (ImGui::IsItemHovered()) tooltip(c.ui, {"The edited run, the run before the edits, or after − before (D)"});
  }
  read_out(c);
}

/// The cell under the pointer, or the pinned one, in words.
void HeadPanel::read_out(const PanelContext& c) {
  const AttentionMap* map = selected_map(c);
  const Index query = c.state().hover.query.value_or(c.state().document.query.value_or(-1));
  const Index key = c.state().hover.key.value_or(c.state().document.key.value_or(-1));
  if (!map || query < 0 || key < 0 || query >= map->n_query() || key >= map->n_key()) return;
  const bool scores = c.state().view.head_view == HeadView::steps || c.state().view.head_view == HeadView::qk;
  const WordGroups* words = scores ? nullptr : c.words();
  const auto weight_of = [&](const AttentionMap& of) -> std::string {
    const float weight = words ? weight_in_words(of, *words, words->word_of(query), words->word_of(key))
                         : of.masked(query, key) ? std::numeric_limits<float>::quiet_NaN()
                                                 : of.weight(query, key);
    return std::isnan(weight) ? "masked" : fmt::format("{:.4f}", weight);
  };
  std::string value = weight_of(*map);
  if (const EditEffect* effect = compared(c)) {
    const AttentionMap& before = effect->before->map(map->layer(), map->head());
    if (query < before.n_query() && key < before.n_key()) value = fmt::format("{} → {}", weight_of(before), value);
  }
  const Trace& axis = words ? c.positions() : *c.trace();
  const std::string text = fmt::format("q {}  →  k {}   {}", at(axis, words ? words->word_of(query) : query),
                                       at(axis, words ? words->word_of(key) : key), value);
  const float right = ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x;
  const double room = static_cast<double>((right - ImGui::GetItemRectMax().x - c.ui.px(24)) / c.ui.scale);
  if (room < 60) return;
  ImGui::SameLine();
  const std::string shown = elided(text, c.ui.number(), room, c.ui.fonts);
  c.ui.fonts.need(shown);
  const UseFont font(c.ui, c.ui.number());
  const float width = ImGui::CalcTextSize(shown.c_str()).x;
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX() + c.ui.px(12),
                                ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - width - c.ui.px(4)));
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted(shown.c_str());
}

void HeadPanel::draw(const PanelContext& c) {
  if (!c.trace())
    return empty_state(c.ui, "Nothing to show yet", "Open a model and write a text: every head appears at once.");
  header(c);
  const bool with_row = c.state().view.row_open && c.state().view.head_view == HeadView::map;
  const double room = ImGui::GetContentRegionAvail().y / c.ui.scale;
  const double row_height = with_row ? std::clamp(0.25 * room, 152.0, 208.0) : 0;
  main_view(c, std::max(160.0, room - row_height - footer_height(c)));
  footer(c);
  if (!with_row) return;
  const AttentionMap* map = selected_map(c);
  if (!map) return;
  const Document& document = c.state().document;
  const Index query =
      std::min(document.query.value_or(c.state().hover.query.value_or(map->n_query() - 1)), map->n_query() - 1);
  section(c.ui, "ROW",
          fmt::format("where {} looks{}", at(c.positions(), c.shown(query)),
                      c.words() ? "" : " · drag a bar to change its weight"));
  const ShownRun run = shown_run(c);
  const HeadRef head = document.selected;
  const RowBarsOptions::Room size{c.room(), row_height - 30};
  const FirstToken first = c.state().view.first_token;
  const bool dragging = tools_.dragging_bar();
  row_.want(c.explorer, c.ui, run.trace,
            fmt::format("{} {} {} {} {} {} {} {}{}", head.layer, head.head, query, size.width, size.height, name(first),
                        run.words != nullptr, run.minus ? "difference" : "", dragging ? " drag" : ""),
            [=, row = c.shown(query)](const Look& look) {
              RowBarsOptions o;
              o.layer = head.layer;
              o.head = head.head;
              o.query = row;
              o.room = size;
              if (dragging) o.scaling.high = 1;
              return row_bars_scene(*as_viewed(run, head, first), o, look);
            });
  SceneViewOptions how;
  how.tooltips = !dragging;
  const SceneTouch touch = row_.draw(c.ui, "row", how, size.width, size.height);
  if (row_.scene() && !run.minus && !run.words && first == FirstToken::show &&
      map->n_key() <= static_cast<Index>(size.width - 2 * slim_margin))  // a bar for every key
    tools_.on_row(c, touch, *row_.scene(), *map, query);
}

}  // namespace headscope
