#include "core/analysis/findings.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "core/analysis/finding_words.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/drop_first_edit.h"
#include "core/edits/weight_edit.h"
#include "core/metrics/even_head.h"
#include "core/metrics/metric.h"
#include "core/metrics/next_token.h"

namespace headscope {

namespace {

/// The keys of a row that hold a token, and that it may see.
std::vector<Index> keys_with(const Trace& trace, const AttentionMap& map, Index row, std::int32_t token) {
  std::vector<Index> keys;
  for (Index key = 0; key < map.n_key(); ++key)
    if (nth(trace.tokens, key).id == token && !map.masked(row, key)) keys.push_back(key);
  return keys;
}

double sum_of(const AttentionMap& map, Index row, const std::vector<Index>& keys) {
  return std::accumulate(keys.begin(), keys.end(), 0.0,
                         [&](double sum, Index key) { return sum + static_cast<double>(map.weight(row, key)); });
}

void keep_strongest(std::vector<Evidence>& cells) {
  std::ranges::stable_sort(cells, std::greater{}, &Evidence::weight);
  cells.resize(std::min<std::size_t>(cells.size(), 5));
}

/// Nobody but itself sees this token; the others keep the ratios of their weights.
std::vector<Intervention> hide(Index token, Index queries, bool causal) {
  std::vector<Intervention> edits;
  for (Index query = causal ? token + 1 : 0; query < queries; ++query)
    if (query != token) edits.push_back({{}, SetWeight{static_cast<int>(query), static_cast<int>(token), 0}});
  return edits;
}

/// The tokens that all heads together look at most, in the order of the text.
std::vector<Index> most_looked_at(const Trace& trace, Index most) {
  std::vector<double> mass(trace.tokens.size(), 0);
  for (const AttentionMap& map : trace.maps)
    for (std::size_t key = 0; has_probabilities(map) && key < mass.size() && key < map.stats().column_mass.size();
         ++key)
      mass[key] += map.stats().column_mass[key];
  std::vector<Index> order(mass.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::ranges::stable_sort(order, [&](Index a, Index b) { return nth(mass, a) > nth(mass, b); });
  order.resize(std::min<std::size_t>(order.size(), static_cast<std::size_t>(most)));
  std::ranges::sort(order);
  return order;
}

}  // namespace

FindingsSweep::FindingsSweep(LoadedModel loaded, FindingsRequest request)
    : loaded_(std::move(loaded)), request_(std::move(request)) {}

EditProbe FindingsSweep::prepare(std::vector<std::vector<Intervention>>& cells, const Ctx& ctx) {
  EditProbe probe(loaded_, request_.run, true, ctx);
  probe.know_sources({{{}, request_.ablate}}, ctx);
  std::set<int> layers;
  for (int layer = 0; layer < probe.layers(); ++layer) layers.insert(layer);
  trace_ = probe.run({}, ctx, layers);
  text_ = TextMarks::of(trace_->tokens);

  asked_ = targets(*trace_);
  const auto answer = answer_position(*trace_);
  answers_ = answer.has_value();
  if (answer) asked_.push_back({*answer, most_probable(*trace_).id});
  before_ = told_by(*trace_);
  find_strangest(ctx.stop);

  const std::vector<HeadId> heads = every_head(trace_->model.dims);
  heads_ = static_cast<int>(heads.size());
  for (const auto& [layer, head] : heads) cells.push_back({{{layer, head}, request_.ablate}});
  // A row whose weights are no probabilities has none to share among the others.
  const bool shares = std::ranges::any_of(trace_->maps, &has_probabilities);
  if (answers_ && shares)
    for (const Index token : most_looked_at(*trace_, request_.most_tokens))
      if (token != *answer) hidden_.push_back(token);
  const auto queries = static_cast<Index>(trace_->queries().size());
  for (const Index token : hidden_)
    cells.push_back(hide(token, queries, trace_->model.objective == Objective::next_token));
  if (shares && queries > 1) cells.push_back({{{}, DropFirst{1, true}}});
  return probe;
}

void FindingsSweep::measure(const EditProbe& probe, int index, const std::vector<Intervention>& edits, const Ctx& ctx) {
  after_.push_back(told_by(*probe.run(edits, ctx)));
  if (index < heads_) look_for_copy(index);
}

/// Sinks have a sentence of their own, whatever class they are of besides.
void FindingsSweep::find_strangest(const std::stop_token& stop) {
  std::vector<HeadClasses> classes =
      head_classes(*trace_, text_, head_table(*trace_, text_, stop), default_class_rules(), stop);
  for (std::size_t i = 0; i < classes.size(); ++i)
    for (HeadVerdict& verdict : classes[i].met) {
      const bool sink = std::ranges::all_of(verdict.evidence, [](const Evidence& cell) { return cell.key == 0; });
      if (sink || std::isnan(verdict.p)) continue;
      // The lowest p; of equals, as where it is too small for a number, the largest margin.
      if (strangest_ &&
          std::tie(verdict.p, strangest_->verdict.margin) >= std::tie(strangest_->verdict.p, verdict.margin))
        continue;
      strangest_ = Strange{trace_->maps[i].id(), std::move(verdict)};
    }
}

/// Whether this head looked at a token that is told worse without it than any so far.
void FindingsSweep::look_for_copy(int head) {
  if (trace_->picture || trace_->maps.empty() || !has_probabilities(map(head))) return;
  constexpr double least_weight = 0.2, times_even = 2, least_fall = 0.05;  // a copy is looked at, and told
  const AttentionMap& looks = map(head);
  for (std::size_t t = 0; t < asked_.size(); ++t) {
    const double fall = std::exp(-before_.losses[t]) - std::exp(-nth(after_, head).losses[t]);
    if (!(fall > (copy_ ? copy_->fall : least_fall))) continue;
    const auto keys = keys_with(*trace_, looks, asked_[t].row, asked_[t].token);
    const double even = static_cast<double>(keys.size()) / static_cast<double>(visible_count(looks, asked_[t].row));
    if (sum_of(looks, asked_[t].row, keys) >= std::max(least_weight, times_even * even)) copy_ = Copy{head, t, fall};
  }
}

FindingsSweep::Said FindingsSweep::told_by(const Trace& trace) const {
  Said out;
  for (const Target& each : asked_)
    out.losses.push_back(
        next_token_loss(trace.logits.select(0, std::min(each.row, trace.logits.dim(0) - 1)), each.token));
  const std::span<const double> of_text(out.losses.data(), out.losses.size() - (answers_ ? 1 : 0));
  out.loss = mean_loss(of_text);
  if (answers_) out.best = most_probable(trace);
  return out;
}

// ---- what is told

const AttentionMap& FindingsSweep::map(int i) const {
  return trace_->map(head_of(i));
}

Worded FindingsSweep::in_quotes(std::int32_t id) const {
  return token_in_words(loaded_, id);
}

Worded FindingsSweep::place(Index position) const {
  return place_in_words(loaded_, *trace_, position);
}

Worded FindingsSweep::fall(const Said& after) const {
  return in_words(loaded_, AnswerChange{asked_.back().token, std::exp(-before_.losses.back()),
                                        std::exp(-after.losses.back()), after.best});
}

void FindingsSweep::add_cause(Findings& out) const {
  const int known = std::min(heads_, static_cast<int>(after_.size()));
  if (!answers_ || known == 0) return;
  const auto cost = [&](int i) { return nth(after_, i).losses.back() - before_.losses.back(); };
  int worst = 0;
  for (int i = 1; i < known; ++i)
    if (cost(i) > cost(worst)) worst = i;
  const Said& after = nth(after_, worst);
  Finding found{.kind = Finding::Kind::cause, .title = to_say("Which head the answer needs")};
  found.head = head_of(worst);
  found.effect = cost(worst);
  found.sentence =
      found.effect < little_effect
          ? say_later("No single head decides the answer. The one that matters most is head {}: without it {}.",
                      to_string(*found.head), fall(after))
          : say_later("Without head {} {}.", to_string(*found.head), fall(after));
  if (!trace_->maps.empty() && has_probabilities(map(worst))) {
    const AttentionMap& looks = map(worst);
    const Index row = std::min(asked_.back().row, looks.n_query() - 1);
    const Evidence most = strongest_cell(looks, row);
    found.cells = {most};
    found.looks = say_later("Where the answer is told it looks at {} most: {}, where an even head gives {}.",
                            place(most.key), portion(static_cast<double>(most.weight)),
                            portion(1 / static_cast<double>(visible_count(looks, row))));
  }
  found.provenance = say_later(
      "softmax of the logits at position {}; z of each head in turn: {}; the largest rise of −ln p({}) of {} heads",
      asked_.back().row, text_of(EditAction(request_.ablate)), in_quotes(asked_.back().token), known);
  out.all.push_back(std::move(found));
}

void FindingsSweep::add_pattern(Findings& out) const {
  if (!strangest_ || cell_of(strangest_->head) >= static_cast<int>(after_.size())) return;
  const Said& without = nth(after_, cell_of(strangest_->head));
  const HeadVerdict* const best = &strangest_->verdict;
  const double cost = without.loss - before_.loss;
  Finding found{.kind = Finding::Kind::pattern, .title = to_say("The head that chance would do least")};
  found.head = strangest_->head;
  found.cells = best->evidence;
  found.effect = cost;
  found.sentence =
      say_later("Head {} is a “{}” head: it scores {}, where an even head scores {} ({}).", to_string(*found.head),
                Worded::entry(best->rule->title), portion(best->score), portion(best->chance), sureness(*best));
  if (!std::isnan(cost))
    found.sentence +=
        std::abs(cost) < little_effect / 10
            ? say_later(
                  " Without it the text costs as much as before ({:.3f} nats per token): here nothing hangs on it.",
                  before_.loss)
            : say_later(" Without it the text costs {:.3f} nats per token in place of {:.3f}.", without.loss,
                        before_.loss);
  found.provenance = say_later("{}: {}; p bounds how often chance scores as much", best->rule->metric,
                               Worded::entry(std::string(metric(best->rule->metric).formula)));
  out.all.push_back(std::move(found));
}

void FindingsSweep::add_copy(Findings& out) const {
  if (!copy_) return;
  const int best = copy_->head;
  const std::size_t at = copy_->asked;
  const AttentionMap& looks = map(best);
  const Index row = asked_[at].row;
  const auto keys = keys_with(*trace_, looks, row, asked_[at].token);
  Finding found{.kind = Finding::Kind::copy, .title = to_say("What is copied, and from where")};
  found.head = looks.id();
  found.effect = nth(after_, best).losses[at] - before_.losses[at];
  for (const Index key : keys) found.cells.push_back({row, key, looks.weight(row, key)});
  keep_strongest(found.cells);
  const bool answer = answers_ && at + 1 == asked_.size();
  found.sentence = say_later(
      "At {} head {} looks at {} with {}, and {} is what {}. Without the head its probability falls from {} to {}.",
      place(row), to_string(*found.head), place(found.cells.front().key), portion(sum_of(looks, row, keys)),
      in_quotes(asked_[at].token),
      answer                                             ? to_say("the model answers")
      : trace_->model.objective == Objective::next_token ? to_say("follows")
                                                         : to_say("stands there"),
      portion(std::exp(-before_.losses[at])), portion(std::exp(-nth(after_, best).losses[at])));
  found.provenance = say_later(
      "Σ of weights on the keys that hold the token ({} of them); −ln p of every token that is known, each head in "
      "turn: {}",
      keys.size(), text_of(EditAction(request_.ablate)));
  out.all.push_back(std::move(found));
}

void FindingsSweep::add_sink(Findings& out) const {
  const std::size_t cells = static_cast<std::size_t>(heads_) + hidden_.size();
  if (after_.size() <= cells || asked_.empty()) return;  // the cell that hides the first token is the last
  const Metric& sink = metric("sink");
  int resting = 0;
  std::optional<HeadId> most;
  double mass = -1, even = 0;
  for (const AttentionMap& looks : trace_->maps) {
    const double here = sink.value({looks, text_});
    if (here >= 0.5) ++resting;
    if (here > mass) most = looks.id(), mass = here, even = sink.chance({looks, text_});
  }
  if (!most) return;
  const Said& after = after_.back();
  const bool text = !std::isnan(before_.loss);
  Finding found{.kind = Finding::Kind::sink, .title = to_say("Where heads rest")};
  found.head = most;
  found.token = 0;
  found.effect = text ? after.loss - before_.loss : after.losses.back() - before_.losses.back();
  if (resting > 0) {
    const AttentionMap& looks = trace_->map(*most);
    for (Index row = 1; row < looks.n_query(); ++row) found.cells.push_back({row, 0, looks.weight(row, 0)});
    keep_strongest(found.cells);
  }
  const auto total = trace_->maps.size();
  found.sentence =
      resting == 0
          ? say_later("No head rests on the first token, {}: the most is {} of head {}", place(0), portion(mass),
                      to_string(*most))
          : say_later("{} of {} heads {} the first token, {}, half of their attention or more: head {} most, {}",
                      resting, total, resting == 1 ? to_say("gives") : to_say("give"), place(0), to_string(*most),
                      portion(mass));
  found.sentence += say_later(" (an even head {}).", portion(even));
  found.sentence += text
                        ? say_later(" When nobody may see it, the text costs {:.3f} nats per token in place of {:.3f}.",
                                    after.loss, before_.loss)
                        : say_later(" When nobody may see it, {}.", fall(after));
  found.provenance = say_later("{}; then the first key hidden from all rows but its own, the others renormalised",
                               Worded::entry(std::string(sink.formula)));
  out.all.push_back(std::move(found));
}

void FindingsSweep::add_token(Findings& out) const {
  const auto first = static_cast<std::size_t>(heads_);
  const std::size_t known = std::min(hidden_.size(), after_.size() > first ? after_.size() - first : 0);
  if (known == 0) return;
  const auto cost = [&](std::size_t i) { return after_[first + i].losses.back() - before_.losses.back(); };
  std::size_t worst = 0;
  for (std::size_t i = 1; i < known; ++i)
    if (cost(i) > cost(worst)) worst = i;
  Finding found{.kind = Finding::Kind::token, .title = to_say("Which token the answer hangs on")};
  found.token = hidden_[worst];
  found.effect = cost(worst);
  found.sentence = say_later("{} {}: when no other position may see it, {}.",
                             found.effect < little_effect
                                 ? to_say("No single token decides the answer. The one that matters most is")
                                 : to_say("The answer hangs on"),
                             place(*found.token), fall(after_[first + worst]));
  found.provenance = say_later(
      "weight 0 on that key in all rows but its own, in all heads, the others renormalised; the largest rise of −ln "
      "p({}) of {} {}",
      in_quotes(asked_.back().token), known, known == 1 ? to_say("token") : to_say("tokens"));
  out.all.push_back(std::move(found));
}

std::shared_ptr<const Findings> FindingsSweep::result() const {
  if (!prepared()) return nullptr;
  Findings out{request_, trace_, {}};
  add_cause(out);
  add_pattern(out);
  add_copy(out);
  add_sink(out);
  add_token(out);
  return std::make_shared<const Findings>(std::move(out));
}

}  // namespace headscope
