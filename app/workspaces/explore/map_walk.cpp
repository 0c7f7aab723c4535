#include "app/workspaces/explore/map_walk.h"

#include <fmt/format.h>
#include <imgui.h>

#include <algorithm>
#include <array>
#include <utility>

#include "app/widgets/controls.h"
#include "app/widgets/paragraph.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/trace/token_search.h"

namespace headscope {

namespace {

constexpr Index long_map = 192;  // tokens: the bar is there unasked beyond them, where cells are small
constexpr double bar_height = 35, control_height = 27;  // as segmented()
constexpr const char* scopes[] = {to_say("all rows"), to_say("pinned row")};

/// "2nd strongest cell", "strongest cell of the row".
std::string rank_words(Index rank, bool of_row) {
  const Index number = rank + 1, last = number % 10;
  const bool teens = number % 100 / 10 == 1;
  if (number == 1) return of_row ? said("strongest cell of the row") : said("strongest cell");
  const std::string place = teens || last == 0 || last > 3 ? say("{}th", number)
                            : last == 1                    ? say("{}st", number)
                            : last == 2                    ? say("{}nd", number)
                                                           : say("{}rd", number);
  return of_row ? say("{} strongest cell of the row", place) : say("{} strongest cell", place);
}

}  // namespace

/// The row that search and jumps stay in; along the axis.
std::optional<Index> MapWalk::row(const PageContext& c) {
  if (!c.state().view.follow_row || !c.state().document.query) return std::nullopt;
  return c.shown(*c.state().document.query);
}

double MapWalk::height(const PageContext& c, const AttentionMap& map) {
  if (std::exchange(c.app.ui.find_on_map, false)) open_ = focus_ = true;
  const Index longest = c.words() ? c.words()->words() : std::max(map.n_query(), map.n_key());
  return open_ || longest > long_map ? bar_height : 0;
}

void MapWalk::bar(const PageContext& c, const AttentionMap& map, double width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float high = c.ui.px(control_height), gap = c.ui.px(6), between = c.ui.px(16);
  const std::string count = matches_.empty() ? (text_.empty() ? "" : said("none"))
                            : match_         ? say("{} of {}", *match_ + 1, matches_.size())
                                             : fmt::format("{}", matches_.size());
  const UseFont font(c.ui, c.ui.body());
  const std::string longest = say("{0} of {0}", std::max<std::size_t>(matches_.size(), 10));
  const float arrows = 2 * button_width(c.ui, "<") + gap, counted = ImGui::CalcTextSize(longest.c_str()).x,
              strong = button_width(c.ui, "<") + gap + button_width(c.ui, "Next strongest"),
              scope = segmented_width(c.ui, scopes);
  const float field =
      std::clamp(c.ui.px(width) - arrows - counted - strong - scope - 2 * gap - 2 * between, c.ui.px(96), c.ui.px(260));
  ImGui::PushID("map walk");
  ImGui::SetNextItemWidth(field);
  if (std::exchange(focus_, false)) ImGui::SetKeyboardFocusHere();
  const float pad = (high - ImGui::GetFontSize()) / 2;
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, {c.ui.px(8), pad});
  const bool entered = input_line(c.ui, "##find", said("Find a word"), text_, ImGuiInputTextFlags_EnterReturnsTrue);
  ImGui::PopStyleVar();
  c.ui.name("find on the map", ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
  if (ImGui::IsItemHovered())
    tooltip(c.ui, {said("Find in the text (Ctrl+F)"), said("Enter: the next place · Shift+Enter: the one before"),
                   said("in all rows: as a query, with its row pinned; in the pinned row: as a key of it")});
  search(c);
  if (entered) {
    to_match(c, ImGui::GetIO().KeyShift ? -1 : 1);
    focus_ = true;  // to go on with Enter
  } else if (ImGui::IsItemDeactivated() && ImGui::IsKeyPressed(ImGuiKey_Escape)) {
    open_ = false;
    text_.clear();
  }
  const auto step = [&](const char* id, const char* label, const std::vector<std::string>& tip) {
    ImGui::PushID(id);
    const bool pressed = button(c.ui, label, high);
    c.ui.name(id, ImGui::GetItemRectMin(), ImGui::GetItemRectMax());
    if (ImGui::IsItemHovered()) tooltip(c.ui, tip);
    ImGui::PopID();
    return pressed;
  };
  ImGui::BeginDisabled(matches_.empty());
  ImGui::SameLine(0, gap);
  if (step("previous match", "<", {said("The place before (Shift+Enter)")})) to_match(c, -1);
  ImGui::SameLine(0, gap);
  if (step("next match", ">", {said("The next place (Enter)")})) to_match(c, 1);
  ImGui::EndDisabled();
  ImGui::SameLine(0, gap);
  const ImVec2 beside = ImGui::GetCursorScreenPos();
  ImGui::SetCursorScreenPos({beside.x, at.y + (high - ImGui::GetTextLineHeight()) / 2});
  text_line(c.ui, count, c.ui.theme.muted);
  if (!count.empty()) c.ui.name("matches " + count, beside, {beside.x + counted, at.y + high});
  ImGui::SetCursorScreenPos({at.x + c.ui.px(width) - strong - scope - between, at.y});
  const bool of_row = row(c).has_value();
  if (step("previous strong cell", "<",
           {of_row ? said("The next stronger cell of the pinned row (Shift+N)")
                   : said("The next stronger cell of the map (Shift+N)")}))
    to_strong(c, -1);
  ImGui::SameLine(0, gap);
  if (step("next strong cell", to_say("Next strongest"),
           {of_row ? said("Cell by cell from the strongest on, of the pinned row (N)")
                   : said("Cell by cell from the strongest on, of the map (N)"),
            said("pinned, and brought into view")}))
    to_strong(c, 1);
  ImGui::SetCursorScreenPos({at.x + c.ui.px(width) - scope, at.y});
  int chosen = c.state().view.follow_row ? 1 : 0;
  if (segmented(c.ui, "walk over", scopes, chosen)) {
    c.editor.view().follow_row = chosen == 1;
    if (chosen == 1 && !c.state().document.query) c.editor.pin(shown_query(c, map));
  }
  if (ImGui::IsItemHovered())
    tooltip(c.ui, {said("Follow the pinned row (F)"),
                   said("it stays in sight while the map is moved; search and strongest cells stay in it")});
  ImGui::PopID();
  ImGui::SetCursorScreenPos({at.x, at.y + c.ui.px(bar_height)});
}

void MapWalk::go(const PageContext& c, const AttentionMap& map) {
  if (c.state().view.follow_row && !c.state().document.query && c.app.ui.strong_cell != 0)
    c.editor.pin(shown_query(c, map));
  if (const int step = std::exchange(c.app.ui.strong_cell, 0)) to_strong(c, step);
  strong_came(c);
}

/// Pins what stands there along the axes, and has it shown.
void MapWalk::reach(const PageContext& c, Index query, Index key) {
  goal_ = Goal{query, key};
  if (const WordGroups* words = c.words())
    reached_at_ = Goal{words->tokens_of(query).end - 1, words->tokens_of(key).begin};
  else
    reached_at_ = goal_;
}

void MapWalk::search(const PageContext& c) {
  const bool keys = row(c).has_value();
  const std::shared_ptr<const Trace> in = c.words() ? c.results().run->word_tokens : c.results().run->trace;
  if (searched_ == text_ && searched_in_ == in && searched_keys_ == keys) return;
  searched_ = text_;
  searched_in_ = in;
  searched_keys_ = keys;
  matches_ = find_tokens(keys ? in->tokens : in->queries(), text_);
  match_.reset();
}

void MapWalk::to_match(const PageContext& c, int step) {
  if (matches_.empty()) return;
  const std::size_t count = matches_.size();
  if (match_) {
    match_ = (*match_ + count + static_cast<std::size_t>(step + static_cast<int>(count))) % count;
  } else {
    // From what is pinned on, round the end.
    const auto pinned = searched_keys_ ? c.state().document.key : c.state().document.query;
    const auto next = std::ranges::lower_bound(matches_, pinned ? c.shown(*pinned) : 0);
    const auto ahead = static_cast<std::size_t>(next - matches_.begin());
    match_ = (step < 0 ? ahead + count - 1 : ahead) % count;
  }
  const Index at = matches_[*match_];
  reached_.reset();
  awaited_ = false;
  if (const auto followed = row(c)) {
    reach(c, *followed, at);
    c.editor.pin(c.state().document.query, reached_at_->key);
  } else {
    const AttentionMap* map = selected_map(c);
    // Between two texts a query has no place of its own among the keys.
    const Index key = !c.positions().between_texts() || !map ? at : std::max(nth(map->stats().max_key, at), 0);
    reach(c, at, key);
    c.editor.pin(reached_at_->query);
  }
}

void MapWalk::to_strong(const PageContext& c, int step) {
  const ShownRun run = shown_run(c);
  Asked asked{run.trace, run.minus, run.words, c.state().document.selected, c.state().view.first_token, row(c), 0};
  if (const auto& before = strong_.asked()) {
    Asked same = *before;
    same.rank = 0;
    if (same == asked) asked.rank = std::max<Index>(before->rank + step, 0);
  }
  awaited_ = true;
  strong_.want(c.jobs, asked, [asked, run, maps = maps_](const Ctx& ctx) {
    return Found{maps->of(run, asked.head, asked.first)->strong(asked.row, asked.rank, ctx.stop)};
  });
}

void MapWalk::strong_came(const PageContext& c) {
  const auto found = strong_.current();
  if (!awaited_ || !found) return;
  awaited_ = false;
  const Asked asked = *strong_.asked();
  // Somebody has gone elsewhere meanwhile.
  if (asked.trace != shown_run(c).trace || asked.head != c.state().document.selected) return;
  if (!found->cell) {
    c.jobs.tell(to_say("There is no further cell: all others weigh nothing"));
    return;
  }
  reach(c, found->cell->query, found->cell->key);
  reached_ = asked;
  c.editor.pin(reached_at_->query, reached_at_->key);
}

std::string MapWalk::rank_of(const PageContext& c, Index query, Index key) const {
  if (!reached_ || !reached_at_ || reached_at_->query != query || reached_at_->key != key) return "";
  if (reached_->head != c.state().document.selected || reached_->trace != shown_run(c).trace) return "";
  return rank_words(reached_->rank, reached_->row.has_value());
}

}  // namespace headscope
