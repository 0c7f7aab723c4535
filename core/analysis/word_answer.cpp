#include "core/analysis/word_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "core/analysis/finding_words.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/ablate_edit.h"
#include "core/edits/weight_edit.h"
#include "core/metrics/even_head.h"
#include "core/metrics/metric.h"
#include "core/trace/token_links.h"

namespace headscope {

namespace {
constexpr double least_special = 0.1;  // more than the usual: a tenth of what a row has to give
constexpr double times_even = 1.5;
constexpr std::size_t most_told = 3;

double probability_of(const Trace& trace, Index row, std::int32_t token) {
  return std::exp(-next_token_loss(trace.logits.select(0, std::min(row, trace.logits.dim(0) - 1)), token));
}
}  // namespace

Intervention without_look(const WordRequest& request, const WordLook& look) {
  return {{look.head.layer, look.head.head}, SetWeight{static_cast<int>(request.row), static_cast<int>(look.key), 0}};
}

WordSweep::WordSweep(LoadedModel loaded, WordRequest request)
    : loaded_(std::move(loaded)), request_(std::move(request)) {}

EditProbe WordSweep::prepare(std::vector<std::vector<Intervention>>& cells, const Ctx& ctx) {
  const Objective objective = loaded_.model->config().objective();
  // An encoder's answer is not told by its last row.
  EditProbe probe(loaded_, request_.run, objective != Objective::next_token, ctx);
  std::set<int> layers;
  for (int layer = 0; layer < probe.layers(); ++layer) layers.insert(layer);
  trace_ = probe.run({}, ctx, layers);
  const auto rows = static_cast<Index>(trace_->queries().size());
  if (request_.row < 0 || request_.row >= rows)
    throw Error("word", fmt::format("a position from 0 to {}", rows - 1), std::to_string(request_.row));
  const auto answers_at = answer_position(*trace_);
  if (objective != Objective::nothing && answers_at && trace_->logits.defined()) answer_ = most_probable(*trace_);
  for (const AttentionMap& map : trace_->maps) {
    if (ctx.stop.stop_requested()) throw Cancelled();
    if (!has_probabilities(map)) continue;
    weighs_ = true;
    sees_others_ |= visible_count(map, request_.row) > 1;
    if (const auto look = look_of(map); look && !taken_out(look->head)) looks_.push_back(*look);
  }
  std::ranges::stable_sort(looks_, std::greater(), &WordLook::special);
  for (std::size_t i = 0; answer_ && i < looks_.size() && static_cast<int>(i) < request_.most_looks; ++i) {
    // Behind the last layer nothing carries what a row got to another one.
    if (looks_[i].head.layer + 1 == probe.layers() && request_.row != *answers_at) continue;
    tried_.push_back(i);
    cells.push_back({without_look(request_, looks_[i])});
  }
  return probe;
}

/// By an edit in force: its weights are there, but nobody reads what they fetch.
bool WordSweep::taken_out(HeadId head) const {
  return std::ranges::any_of(request_.run.edits, [&](const Intervention& edit) {
    return edit.enabled && edit.action.as<Ablate>() && !edit.target.positions && edit.target.reaches(head);
  });
}

/// Where this head looks from the word as it does from nowhere else; nullopt where that is not much.
std::optional<WordLook> WordSweep::look_of(const AttentionMap& map) const {
  const Index row = request_.row, offset = map.place().offset, n = map.n_query();
  std::vector<float> weights(static_cast<std::size_t>(map.n_key()));
  map.row(row, weights);
  Index key = -1;
  for (Index k = 0; k < map.n_key(); ++k)
    if (k != row + offset && !map.masked(row, k) && !is_separator(nth(trace_->tokens, k)) &&
        (key < 0 || nth(weights, k) > nth(weights, key)))
      key = k;
  if (key < 0) return std::nullopt;
  WordLook look{.head = map.id(), .key = key, .weight = static_cast<double>(nth(weights, key))};
  look.even = 1 / static_cast<double>(visible_count(map, row));
  look.effect = std::numeric_limits<double>::quiet_NaN();
  if (look.weight < std::max(least_special, times_even * look.even)) return std::nullopt;
  const Tensor column = map.tile({0, n}, {key, key + 1});
  double sum = 0, diagonal = 0;
  int others = 0, as_far = 0;
  for (Index query = 0; query < n; ++query) {
    if (query == row) continue;
    if (query + offset != key && !map.masked(query, key)) sum += static_cast<double>(column.at(query, 0)), ++others;
    const Index there = query + key - row;
    if (there >= 0 && there < map.n_key() && !map.masked(query, there))
      diagonal += static_cast<double>(map.weight(query, there)), ++as_far;
  }
  if (others > 0) look.usual = sum / others;
  if (as_far > 0) look.as_far = diagonal / as_far;
  return look.special() >= least_special ? std::optional(look) : std::nullopt;
}

void WordSweep::measure(const EditProbe& probe, int index, const std::vector<Intervention>& edits, const Ctx& ctx) {
  const std::shared_ptr<const Trace> after = probe.run(edits, ctx);
  const Index row = *answer_position(*trace_);
  const AnswerChange change{answer_->id, answer_->probability, probability_of(*after, row, answer_->id),
                            most_probable(*after)};
  nth(looks_, nth(tried_, index)).effect = std::log(change.was) - std::log(change.is);
  changes_.push_back(change);
}

/// With its position where the text has several of them.
Worded WordSweep::called(Index position) const {
  const auto alike = std::ranges::count(trace_->tokens, nth(trace_->tokens, position).label, &Token::label);
  return alike > 1 ? place_in_words(loaded_, *trace_, position) : name_in_words(loaded_, *trace_, position);
}

std::shared_ptr<const WordAnswer> WordSweep::result() const {
  if (!trace_) return nullptr;
  auto out = std::make_shared<WordAnswer>();
  out->request = request_, out->looks = looks_;
  const Worded word = called(request_.row);
  out->provenance = say_later(
      "row {} of every pattern{}; told is its largest weight on another word, if at least {} above the mean of that "
      "column, and of that diagonal, and {} times an even head's",
      request_.row, request_.run.edits.empty() ? "" : to_say(", edits in force"), least_special, times_even);
  if (looks_.empty()) {
    out->sentence =
        !weighs_
            ? Worded(to_say("The weights of this model are no probabilities: they do not say what a word looks at."))
        : !sees_others_ ? say_later("{} sees only itself.", word)
                        : say_later("From {} no head looks at another word as it does from nowhere else.", word);
    return out;
  }
  // The first of the list, unless the answer needs another one.
  std::size_t measured = changes_.size();  // whose numbers are told; none
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const double effect = looks_[tried_[i]].effect;
    if (effect >= little_effect && (measured == changes_.size() || effect > looks_[tried_[measured]].effect))
      measured = i;
  }
  if (measured == changes_.size() && !changes_.empty() && tried_.front() == 0) measured = 0;
  const std::size_t first = measured < changes_.size() ? tried_[measured] : 0;
  std::rotate(out->looks.begin(), out->looks.begin() + static_cast<std::ptrdiff_t>(first),
              out->looks.begin() + static_cast<std::ptrdiff_t>(first) + 1);
  const WordLook& look = out->looks.front();
  out->sentence = say_later("{} looks at {}: {} in head {}, where an even head gives {}.", word, called(look.key),
                            portion(look.weight), to_string(look.head), portion(look.even));
  if (measured < changes_.size())
    out->sentence += say_later(" When it may not look there, {} {}.", prediction_words(trace_->model.objective).where,
                               in_words(loaded_, changes_[measured]));
  Worded others;
  int listed = 0;
  std::vector<Index> told{look.key};
  for (const WordLook& other : out->looks) {
    if (listed + 1 == most_told) break;
    if (std::ranges::find(told, other.key) != told.end()) continue;
    told.push_back(other.key);
    if (listed++ > 0) others += to_say(" and ");
    others += say_later("{} ({} in head {})", called(other.key), portion(other.weight), to_string(other.head));
  }
  if (!others.empty()) out->sentence += say_later(" Other heads look at {}.", others);
  if (!changes_.empty())
    out->provenance += say_later(
        "; the weight of each of {} such cells in turn set to 0, its row sharing the rest; softmax of the logits at "
        "position {}",
        changes_.size(), *answer_position(*trace_));
  return out;
}

}  // namespace headscope
