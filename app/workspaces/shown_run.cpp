#include "app/workspaces/shown_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/words.h"
#include "core/edits/ablate_edit.h"
#include "core/metrics/next_token.h"
#include "core/trace/first_key.h"
#include "core/trace/map_difference.h"
#include "viz/scene/map_cells.h"

namespace headscope {

ShownRun shown_run(const PageContext& c) {
  const EditEffect* effect = compared(c);
  ShownRun run{c.results().run->trace, nullptr, c.words() ? c.results().run : nullptr};
  if (!effect || c.state().view.shown == Shown::after) return run;
  run.trace = c.state().view.shown == Shown::before ? effect->before : effect->after;
  if (c.state().view.shown == Shown::difference) run.minus = effect->before;
  return run;
}

std::shared_ptr<const Trace> shown_whole(const PageContext& c) {
  const EditEffect* effect = compared(c);
  return effect && c.state().view.shown == Shown::before ? effect->whole_before : c.results().run->whole;
}

std::shared_ptr<const Trace> as_viewed(const ShownRun& run, HeadId head, FirstToken mode) {
  if (mode == FirstToken::show && !run.minus && !run.words) return run.trace;
  const auto this_head = [&](HeadId each) { return each == head; };
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
      map = run.minus ? map_difference(viewed(map), viewed(minus->map(head))) : viewed(map);
  return changed;
}

const AttentionMap* selected_map(const PageContext& c) {
  if (!c.trace()) return nullptr;
  const HeadId head = c.state().document.selected;
  for (const AttentionMap& map : c.trace()->maps)
    if (map.layer() == head.layer && map.head() == head.head) return &map;
  return nullptr;
}

Index shown_query(const PageContext& c, const AttentionMap& map) {
  const Index last = map.n_query() - 1;
  return std::min(c.state().document.query.value_or(c.state().hover.query.value_or(usual_query(*c.trace(), map))),
                  last);
}

std::optional<CellWords> cell_words(const PageContext& c, Index query, Index key) {
  const AttentionMap* map = selected_map(c);
  if (!map || query < 0 || key < 0 || query >= map->n_query() || key >= map->n_key()) return std::nullopt;
  // Scores are between tokens, also where the other views are in words.
  const HeadView view = c.state().view.head_view;
  const WordGroups* words = view == HeadView::steps || view == HeadView::qk ? nullptr : c.words();
  const Trace& axis = words ? c.positions() : *c.trace();
  const Index from = words ? words->word_of(query) : query, to = words ? words->word_of(key) : key;
  const auto weight_of = [&](const AttentionMap& of) -> double {
    if (words) return static_cast<double>(weight_in_words(of, *words, from, to));
    return of.masked(query, key) ? std::numeric_limits<double>::quiet_NaN()
                                 : static_cast<double>(of.weight(query, key));
  };
  std::optional<double> before;
  if (const EditEffect* effect = compared(c)) {
    const AttentionMap& old = effect->before->map(map->id());
    if (query < old.n_query() && key < old.n_key()) before = weight_of(old);
  }
  const double weight = weight_of(*map);
  const std::string number = std::isnan(weight) ? said("masked") : short_number(weight, 4);
  return CellWords{looks_at(axis, from, to, weight, before),
                   words ? say("words {} and {} · {}, mean of rows, sum of keys = {}", from, to,
                               map_name(*c.trace(), map->id()), number)
                         : say("query {}, key {} · {}[{}, {}] = {}", query, key, map_name(*c.trace(), map->id()), query,
                               key, number),
                   c.trace()->source};
}

std::string taken_out(const std::vector<Intervention>& edits, HeadId head) {
  std::string some;
  for (const Intervention& edit : edits) {
    if (!edit.enabled || !edit.action.as<Ablate>() || !edit.target.reaches(head)) continue;
    if (!edit.target.positions) return said("taken out");
    const auto& [first, last] = *edit.target.positions;
    if (!some.empty()) some += ", ";
    some += first == last ? fmt::format("{}", first) : fmt::format("{} … {}", first, last);
  }
  return some.empty() ? some : say("taken out at {}", some);
}

}  // namespace headscope
