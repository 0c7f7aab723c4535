#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <span>

#include "core/base/nth.h"

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "app/workspaces/explore/evidence_popup.h"
#include "app/workspaces/explore/head_map_view.h"
#include "app/workspaces/explore/heads_view.h"
#include "app/workspaces/explore/panels.h"
#include "app/workspaces/head_cells.h"
#include "app/workspaces/no_run.h"
#include "app/workspaces/shown_run.h"
#include "core/base/words.h"
#include "viz/scene/arcs.h"
#include "viz/scene/patch_map.h"
#include "viz/scene/row_bars.h"
#include "viz/scene/score_split.h"
#include "viz/scene/sound_map.h"
#include "viz/scene/text.h"

namespace headscope {

namespace {

/// How many times chance a weak one is, is left out where it would take just the `room`, in pixels of the design, that
/// the rest leaves to what stands beside it.
Badge badge_of(const PageContext& c, double room) {
  const std::vector<HeadVerdict>& verdicts = verdicts_of(c);
  if (verdicts.empty()) return {};
  const HeadVerdict& first = verdicts.front();
  const std::string score = fmt::format("{} {:.2f}", said(first.rule->title), first.score);
  if (!first.weak) return {score, class_color(*first.rule)};
  const std::string part = say("weak: {}", score),
                    whole = say("{} · {:.1f} × chance", part, first.score / first.chance);
  const auto fits = [&](const std::string& text) { return c.ui.fonts.width(text, c.ui.small()) <= room; };
  return {fits(part) && !fits(whole) ? part : whole, c.ui.theme.faint};
}

std::string at(const Trace& trace, Index query) {
  return fmt::format("{} {}", query_label(trace, query), query);
}

/// What is drawn: the picture only where there is one.
HeadView shown_view(const PageContext& c) {
  const HeadView view = c.state().view.head_view;
  return view == HeadView::picture && !c.trace()->picture && !c.trace()->sound ? HeadView::map : view;
}

/// Of an encoder-decoder: "Encoder · ".
std::string stack_prefix(const PageContext& c) {
  if (!c.results().translates()) return "";
  std::string word(stack_word(c.state().document.stack));
  word.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(word.front())));
  return word + " · ";
}

std::span<const char* const> views(const PageContext& c) {
  static constexpr const char* all[] = {to_say("Map"), to_say("Arcs"),  to_say("Row"),    to_say("Steps"),
                                        "q·k",         to_say("Heads"), to_say("Picture")};
  static constexpr const char* heard[] = {to_say("Map"), to_say("Arcs"),  to_say("Row"),  to_say("Steps"),
                                          "q·k",         to_say("Heads"), to_say("Sound")};
  if (c.trace()->sound) return heard;
  return std::span(all).first(c.trace()->picture ? 7 : 6);
}

/// Below this a short text's cells have no labels of their own any more: what stands below the view is scrolled to.
constexpr double least_view_height = 300;

}  // namespace

void HeadPanel::header(const PageContext& c) {
  const HeadId head = c.state().document.selected;
  const float top = ImGui::GetCursorPosY();
  {
    const UseFont font(c.ui, c.ui.heading());
    ImGui::AlignTextToFramePadding();
    text_line(c.ui, stack_prefix(c) + head_title(head));
  }
  if (!verdicts_of(c).empty()) {
    ImGui::SameLine(0, c.ui.px(12));
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() + c.ui.px(5));  // the title's line is higher than the label
    const double tabs = static_cast<double>(segmented_width(c.ui, views(c)) / c.ui.scale);
    const Badge mark = badge_of(c, static_cast<double>(ImGui::GetContentRegionAvail().x / c.ui.scale) - tabs - 24);
    badge(c.ui, mark.text, mark.color);
    evidence_popup(c);
  }
  if (const std::string out = taken_out(c.edits(), head); !out.empty()) {
    ImGui::SameLine(0, c.ui.px(8));
    ImGui::SetCursorPosY(top + c.ui.px(5));
    badge(c.ui, out, c.ui.theme.key);
    c.ui.name(out, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    if (ImGui::IsItemHovered())
      tooltip(c.ui, {said("An edit takes this head out"),
                     said("its map is still computed; what it reads does not reach the next "
                          "layer (X brings it back)")});
  }
  const std::span<const char* const> labels = views(c);
  int view = static_cast<int>(shown_view(c));
  const float width = c.ui.px(segmented_width(c.ui, labels) / c.ui.scale);
  if (ImGui::GetItemRectMax().x + width + c.ui.px(12) <
      ImGui::GetCursorScreenPos().x + ImGui::GetContentRegionAvail().x) {
    ImGui::SameLine();
    ImGui::SetCursorPosY(top);
  }
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, ImGui::GetContentRegionAvail().x - width));
  if (segmented(c.ui, "head view", labels, view)) c.editor.view().head_view = static_cast<HeadView>(view);
}

void HeadPanel::main_view(const PageContext& c, double height) {
  const HeadId head = c.state().document.selected;
  const View& view = c.state().view;
  const Document& document = c.state().document;
  const ShownRun run = shown_run(c);
  const AttentionMap* map = selected_map(c);
  if (!map) return empty_state(c.ui, said("This head was not recorded"), said("Choose a head in the atlas."));
  const double width = c.room();
  const Index query = shown_query(c, *map);
  const HeadView head_view = shown_view(c);
  if (head_view == HeadView::map) return map_->draw(c, *map, tools_, width, height);
  if (head_view == HeadView::heads) return heads_->draw(c, query, width, height);
  if (head_view == HeadView::picture && c.trace()->sound) return over_the_sound(c, *map, width, height);
  if (head_view == HeadView::picture) return over_the_picture(c, *map, width, height);
  const bool words = run.words != nullptr;
  const std::string place =
      fmt::format("{} {} {} {} {} {} {} {} {}", head.layer, head.head, static_cast<int>(view.head_view),
                  name(view.scale), name(view.first_token), width, height, words, run.minus ? "difference" : "");
  const FirstToken first = view.first_token;
  const Scale scale = view.scale;
  const auto trace = run.trace;
  SceneViewOptions how;
  switch (head_view) {
    case HeadView::map:
    case HeadView::heads:
    case HeadView::picture:
      return;  // pictures of their own
    case HeadView::arcs:
      slot_.want(
          c.jobs, c.ui, trace,
          place + fmt::format(" {} {} {}", width, view.arcs_threshold, document.query.value_or(-1)),
          [=, threshold = view.arcs_threshold,
           scroll_bar = static_cast<double>(ImGui::GetStyle().ScrollbarSize / c.ui.scale),
           pinned = document.query ? std::optional(c.shown(*document.query)) : std::nullopt](const Style& style) {
            ArcsOptions o;
            o.head = head;
            o.threshold = threshold;
            o.query = pinned;
            o.skip_first = first != FirstToken::show;
            o.bare = true;
            o.width = o.most_width = width - scroll_bar, o.height = height;
            return arcs_scene(*as_viewed(run, head, FirstToken::show), o, style);
          });
      how.fit_height = false;
      how.centered = true;
      break;
    case HeadView::row:
      slot_.want(c.jobs, c.ui, trace, place + fmt::format(" {}", query), [=, row = c.shown(query)](const Style& style) {
        RowBarsOptions o;
        o.head = head;
        o.query = row;
        o.scaling.scale = scale == Scale::log && !run.minus ? Scale::log : Scale::linear;
        o.room = {width, height};
        return row_bars_scene(*as_viewed(run, head, first), o, style);
      });
      break;
    case HeadView::steps:
    case HeadView::qk: {
      const auto detail = c.results().detail;
      if (c.captured())
        return empty_state(
            c.ui, said("A capture holds no scores"),
            said("Weights after the softmax were captured, not the queries and keys that they come from."));
      if (holds_state(c.results(), head.layer))
        return empty_state(c.ui, said("This layer has no scores"),
                           said("Its weights are what its states amount to: there are no queries and keys that meet."));
      if (!detail || detail->head != head) return empty_state(c.ui, said("Reading the scores of this head …"), "");
      if (view.head_view == HeadView::steps) {
        slot_.want(c.jobs, c.ui, detail, place, [=](const Style& style) {
          return head_steps_scene(*detail->trace, {head, width}, style);
        });
      } else {
        const Index key = document.key.value_or(
            std::max<Index>(0, nth(detail->map().stats().max_key, std::min(query, detail->map().n_query() - 1))));
        const bool rotary = c.results().model.model && c.results().model.model->config().turns_halves();
        slot_.want(c.jobs, c.ui, detail, place + fmt::format(" {} {} {}", query, key, width), [=](const Style& style) {
          return score_split_scene(
              *detail->trace,
              {head.layer, head.head, query, key, rotary, width, std::clamp(height - 20, 200.0, 1400.0)}, style);
        });
      }
      break;
    }
  }
  if (view.head_view != HeadView::arcs) {
    slot_.draw(c.ui, "head", how, width, height);
    return;
  }
  // Threads of many tokens are longer than the panel: they are scrolled, not cut.
  ImGui::BeginChild("arcs", {c.ui.px(width), c.ui.px(height)}, ImGuiChildFlags_NavFlattened);
  slot_.draw(c.ui, "head", how, c.room(), 0);
  c.ui.name("arcs", ImGui::GetWindowPos(),
            {ImGui::GetWindowPos().x + ImGui::GetWindowSize().x, ImGui::GetWindowPos().y + ImGui::GetWindowSize().y});
  ImGui::EndChild();
}

/// The row of the pinned query over the picture; a click on a patch pins it, where queries are patches too.
void HeadPanel::over_the_picture(const PageContext& c, const AttentionMap& map, double width, double height) {
  const HeadId head = c.state().document.selected;
  const PatchPicture& picture = *c.trace()->picture;
  const bool own = !c.trace()->between_texts();
  // The CLS token is what a picture is read from.
  const Index query = std::min(c.state().document.query.value_or(own && picture.leading > 0 ? 0 : map.n_query() - 1),
                               map.n_query() - 1);
  const bool smooth = c.state().view.smooth_picture;
  const FirstToken first = c.state().view.first_token;
  ShownRun run = shown_run(c);
  run.words = nullptr;
  slot_.want(
      c.jobs, c.ui, run.trace,
      fmt::format("picture {} {} {} {} {} {} {}", head.layer, head.head, query, width, height, smooth, name(first)),
      [=](const Style& style) {
        PatchMapOptions o;
        o.head = head;
        o.query = query;
        o.smooth = smooth;
        o.room = PatchMapOptions::Room{width, height};
        return patch_map_scene(*as_viewed(run, head, first), o, style);
      });
  SceneViewOptions how;
  how.centered = true;
  const SceneTouch touch = slot_.draw(c.ui, "head", how, width, height);
  const TokenAt* patch = meaning<TokenAt>(touch.mark);
  if (!patch) return;
  c.hovered.query = query;
  c.hovered.key = patch->position;
  if (touch.clicked && own) c.editor.pin(patch->position == query ? std::nullopt : std::optional(patch->position));
}

/// The same over a sound, whose stretches are the keys.
void HeadPanel::over_the_sound(const PageContext& c, const AttentionMap& map, double width, double height) {
  const HeadId head = c.state().document.selected;
  const Index query = shown_query(c, map);
  const FirstToken first = c.state().view.first_token;
  ShownRun run = shown_run(c);
  run.words = nullptr;
  const auto spoken = spoken_.of(c, shown_whole(c));
  const auto token = run.trace->between_texts() ? std::optional(query) : std::nullopt;
  slot_.want(c.jobs, c.ui, run.trace,
             fmt::format("sound {} {} {} {} {} {} {}", head.layer, head.head, query, width, height, name(first),
                         static_cast<const void*>(spoken.get())),
             [=](const Style& style) {
               SoundMapOptions o;
               o.spoken = spoken;
               o.token = token;
               o.head = head;
               o.query = query;
               o.room = SoundMapOptions::Room{width, height};
               return sound_map_scene(*as_viewed(run, head, first), o, style);
             });
  SceneViewOptions how;
  how.centered = true;
  const SceneTouch touch = slot_.draw(c.ui, "head", how, width, height);
  const TokenAt* stretch = meaning<TokenAt>(touch.mark);
  if (!stretch) return;
  c.hovered.query = query;
  c.hovered.key = stretch->position;
  if (touch.clicked && !c.trace()->between_texts())
    c.editor.pin(stretch->position == query ? std::nullopt : std::optional(stretch->position));
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
constexpr const char* scales[] = {to_say("linear"), to_say("log"), to_say("row-max")};
constexpr const char* first_tokens[] = {to_say("first token"), to_say("hidden"), to_say("renormalised")};
constexpr const char* units[] = {to_say("tokens"), to_say("words")};
constexpr const char* map_tools[] = {to_say("look"), to_say("weights"), to_say("mask")};
constexpr const char* showns[] = {to_say("after"), to_say("before"), "Δ"};
constexpr const char* picture_ways[] = {to_say("patches"), to_say("smooth")};
constexpr double read_out_height = 34;

bool with_units(const PageContext& c) {
  return c.results().run->word_tokens && shown_view(c) != HeadView::picture;
}
/// A capture is looked at; only what a model computes can be changed.
bool with_tools(const PageContext& c) {
  return shown_view(c) == HeadView::map && !c.words() && !c.captured();
}
}  // namespace

double HeadPanel::footer_height(const PageContext& c) const {
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
  if (with_units(c)) take(units);
  if (with_tools(c)) take(map_tools);
  if (shown_view(c) == HeadView::picture && c.trace()->picture) take(picture_ways);
  if (!c.captured()) take(showns);  // also before there is an edit: the map must not move under the hand that makes one
  return 44 + 38 * (lines - 1) + read_out_height;
}

void HeadPanel::footer(const PageContext& c) {
  View& view = c.editor.view();
  bool first = true;
  int scale = static_cast<int>(view.scale);
  if (choice(c.ui, "scale", scales, scale, first)) view.scale = static_cast<Scale>(scale);
  int mode = static_cast<int>(view.first_token);
  if (choice(c.ui, "first token mode", first_tokens, mode, first)) view.first_token = static_cast<FirstToken>(mode);
  int unit = static_cast<int>(view.text_unit);
  const bool words = with_units(c);
  if (words && choice(c.ui, "text unit", units, unit, first)) view.text_unit = static_cast<TextUnit>(unit);
  if (words && ImGui::IsItemHovered())
    tooltip(c.ui, {said("Tokens, or words (W)"),
                   said("to a word: the sum over its tokens; from a word: the mean over its tokens"),
                   said("a word begins at a space, at punctuation and at a line break"),
                   said("scores (Steps, q·k) and the head's numbers are those of tokens")});
  if (shown_view(c) == HeadView::picture && c.trace()->picture) {
    int how = view.smooth_picture ? 1 : 0;
    if (choice(c.ui, "over the picture", picture_ways, how, first)) view.smooth_picture = how == 1;
  }
  if (with_tools(c)) {
    int tool = static_cast<int>(view.map_tool);
    if (choice(c.ui, "map tool", map_tools, tool, first)) view.map_tool = static_cast<MapTool>(tool);
  }
  if (compared(c)) {
    int shown = static_cast<int>(view.shown);
    if (choice(c.ui, "shown run", showns, shown, first)) view.shown = static_cast<Shown>(shown);
    if (ImGui::IsItemHovered())
      tooltip(c.ui, {said("The edited run, the run before the edits, or after − before (D)")});
  }
  read_out(c);
}

/// The cell under the pointer, or the pinned one: in words, below them where the number comes from. Lines of its own,
/// so that neither is cut; they stay while nothing is pointed at, so that nothing moves.
void HeadPanel::read_out(const PageContext& c) {
  const Hover& hover = c.state().hover;
  const Document& document = c.state().document;
  const Index query = hover.query.value_or(document.query.value_or(-1)),
              key = hover.key.value_or(document.key.value_or(-1));
  auto says = cell_words(c, query, key);
  if (const std::string rank = shown_view(c) == HeadView::map ? map_->rank_of(c, query, key) : "";
      says && !rank.empty())
    says->words = rank + ": " + says->words;
  const double room = c.room();
  const float top = ImGui::GetCursorPosY();
  const auto line = [&](const std::string& text, const Font& font, Color color, double y) {
    const UseFont use(c.ui, font);
    ImGui::SetCursorPosY(top + c.ui.px(y));
    text_line(c.ui, text, color);
    c.ui.name(text, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  };
  if (says) {
    const std::vector<std::string> words = wrapped(says->words, c.ui.strong(), room, c.ui.fonts);
    line(words.front(), c.ui.strong(), c.ui.theme.text, 0);
    if (words.size() > 1)
      line(words[1], c.ui.strong(), c.ui.theme.text, 17);
    else
      line(elided(says->provenance, c.ui.small(), room, c.ui.fonts), c.ui.small(), c.ui.theme.muted, 18);
  } else {
    const std::string hint(said("Point at a weight: its number and where it comes from stand here."));
    line(elided(hint, c.ui.small(), room, c.ui.fonts), c.ui.small(), c.ui.theme.faint, 0);
  }
  ImGui::SetCursorPosY(top + c.ui.px(read_out_height));
  ImGui::Dummy({0, 0});
}

HeadPanel::HeadPanel() : map_(std::make_unique<HeadMapView>()), heads_(std::make_unique<HeadsView>()) {}
HeadPanel::~HeadPanel() = default;

void HeadPanel::reset_zoom() {
  map_->reset();
}

void HeadPanel::draw(const PageContext& c) {
  if (!c.trace()) return no_run(c, said("Every head appears at once."));
  header(c);
  const bool with_row = c.state().view.row_open && shown_view(c) == HeadView::map;
  const double room = ImGui::GetContentRegionAvail().y / c.ui.scale;
  const double row_height = with_row ? std::clamp(0.25 * room, 152.0, 208.0) : 0;
  const ImVec2 corner = ImGui::GetCursorScreenPos();
  const double height = std::max(least_view_height, room - row_height - footer_height(c));
  main_view(c, height);
  if (shown_view(c) != HeadView::map)  // the map frames its row
    c.ui.framed.add(corner, {corner.x + c.ui.px(c.room()), corner.y + c.ui.px(height)});
  footer(c);
  if (!with_row) return;
  const AttentionMap* map = selected_map(c);
  if (!map) return;
  const Document& document = c.state().document;
  const Index query = shown_query(c, *map);
  if (document.query || c.state().hover.query) {
    const ImVec2 from = ImGui::GetCursorScreenPos(), size = ImGui::GetContentRegionAvail();
    c.ui.framed.add(from, {from.x + size.x, from.y + size.y});
  }
  section(c.ui, said("ROW"),
          c.words() || c.captured()
              ? say("of {} · where it looks", at(c.positions(), c.shown(query)))
              : say("of {} · where it looks · drag a bar to change its weight", at(c.positions(), c.shown(query))));
  const ShownRun run = shown_run(c);
  const HeadId head = document.selected;
  const RowBarsOptions::Room size{c.room(), row_height - 30};
  const FirstToken first = c.state().view.first_token;
  const bool dragging = tools_.dragging_bar();
  row_.want(c.jobs, c.ui, run.trace,
            fmt::format("{} {} {} {} {} {} {} {}{}", head.layer, head.head, query, size.width, size.height, name(first),
                        run.words != nullptr, run.minus ? "difference" : "", dragging ? " drag" : ""),
            [=, row = c.shown(query)](const Style& style) {
              RowBarsOptions o;
              o.head = head;
              o.query = row;
              o.room = size;
              if (dragging) o.scaling.high = 1;
              return row_bars_scene(*as_viewed(run, head, first), o, style);
            });
  SceneViewOptions how;
  how.tooltips = !dragging;
  const SceneTouch touch = row_.draw(c.ui, "row", how, size.width, size.height);
  if (row_.scene() && !c.captured() && !run.minus && !run.words && first == FirstToken::show &&
      map->n_key() <= static_cast<Index>(size.width - 2 * slim_margin))  // a bar for every key
    tools_.on_row(c, touch, *row_.scene(), *map, query);
}

}  // namespace headscope
