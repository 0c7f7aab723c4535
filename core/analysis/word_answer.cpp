#include "core/analysis/word_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/analysis/finding_words.h"
#include "core/base/nth.h"
#include "core/metrics/even_head.h"
#include "core/metrics/metric.h"

namespace headscope {

namespace {
constexpr double least_special = 0.1;  // more than the usual: a tenth of what a row has to give
constexpr double times_even = 1.5;
constexpr std::size_t most_told = 3;

double probability_of(const Trace& trace, Index row, std::int32_t token) {
  return std::exp(-next_token_loss(trace.logits.select(0, std::min(row, trace.logits.dim(0) - 1)), token));
}
}  // namespace

Intervention without_look(const WordRequest& request, HeadId head) {
  const int row = static_cast<int>(request.row);
  return {{head.layer, head.head, PositionRange{row, row}}, request.ablate};
}

WordSweep::WordSweep(LoadedModel loaded, WordRequest request)
    : loaded_(std::move(loaded)), request_(std::move(request)) {}

EditProbe WordSweep::prepare(std::vector<std::vector<Intervention>>& cells, const Ctx& ctx) {
  // An encoder's answer is not told by its last row.
  const bool all_logits = loaded_.model->config().objective() != Objective::next_token;
  EditProbe probe(loaded_, request_.run, all_logits, ctx);
  probe.know_sources({without_look(request_, {0, 0})}, ctx);
  std::set<int> layers;
  for (int layer = 0; layer < probe.layers(); ++layer) layers.insert(layer);
  trace_ = probe.run({}, ctx, layers);
  if (request_.row < 0 || request_.row >= static_cast<Index>(trace_->queries().size()))
    throw Error("word", fmt::format("a position from 0 to {}", trace_->queries().size() - 1),
                std::to_string(request_.row));
  if (answer_position(*trace_)) answer_ = most_probable(*trace_);
  for (const AttentionMap& map : trace_->maps)
    if (has_probabilities(map))
      if (const auto look = look_of(map)) looks_.push_back(*look);
  std::ranges::stable_sort(looks_, std::greater(), &WordLook::special);
  if (answer_)
    for (std::size_t i = 0; i < looks_.size() && static_cast<int>(i) < request_.most_heads; ++i)
      cells.push_back({without_look(request_, looks_[i].head)});
  return probe;
}

/// Where this head looks from the word as it does from nowhere else; nullopt where that is not much.
std::optional<WordLook> WordSweep::look_of(const AttentionMap& map) const {
  const Index row = request_.row, offset = map.place().offset;
  const double even = 1 / static_cast<double>(std::max<Index>(1, visible_count(map, row)));
  std::optional<WordLook> best;
  for (Index key = 0; key < map.n_key(); ++key) {
    if (key == row + offset || map.masked(row, key)) continue;
    const auto weight = static_cast<double>(map.weight(row, key));
    if (weight < std::max(least_special, times_even * even) || (best && weight <= best->special())) continue;
    double sum = 0;
    int others = 0;
    for (Index query = 0; query < map.n_query(); ++query) {
      if (query == row || query + offset == key || map.masked(query, key)) continue;
      sum += static_cast<double>(map.weight(query, key));
      ++others;
    }
    WordLook look{map.id(), key, weight, even, others > 0 ? sum / others : 0, std::numeric_limits<double>::quiet_NaN()};
    if (look.special() >= least_special && (!best || look.special() > best->special())) best = look;
  }
  return best;
}

void WordSweep::measure(const EditProbe& probe, int index, const std::vector<Intervention>& edits, const Ctx& ctx) {
  const std::shared_ptr<const Trace> after = probe.run(edits, ctx);
  const Index row = *answer_position(*trace_);
  const AnswerChange change{answer_->id, answer_->probability, probability_of(*after, row, answer_->id),
                            most_probable(*after)};
  nth(looks_, index).effect = std::log(change.was) - std::log(change.is);
  changes_.push_back(change);
}

std::shared_ptr<const WordAnswer> WordSweep::result() const {
  if (!trace_) return nullptr;
  auto out = std::make_shared<WordAnswer>();
  out->request = request_, out->trace = trace_, out->looks = looks_;
  const std::string word = place_in_words(loaded_, *trace_, request_.row);
  if (looks_.empty()) {
    out->sentence =
        fmt::format("From {} no head looks at another token much more than the rest of the text does.", word);
    out->provenance = fmt::format("row {} of every pattern, beside the mean of the other rows", request_.row);
    return out;
  }
  // The first of the list, unless the answer needs another one.
  std::size_t first = 0;
  for (std::size_t i = 0; i < changes_.size(); ++i)
    if (looks_[i].effect >= little_effect && !(looks_[first].effect >= looks_[i].effect)) first = i;
  std::rotate(out->looks.begin(), out->looks.begin() + static_cast<std::ptrdiff_t>(first),
              out->looks.begin() + static_cast<std::ptrdiff_t>(first) + 1);
  const WordLook& look = out->looks.front();
  out->sentence = fmt::format("{} looks at {}: {} in head {}, where an even head gives {}.", word,
                              place_in_words(loaded_, *trace_, look.key), portion(look.weight), to_string(look.head),
                              portion(look.even));
  if (first < changes_.size())
    out->sentence += fmt::format(" Without what that head brings here {}.", in_words(loaded_, changes_[first]));
  std::vector<std::string> others;
  std::vector<Index> told{look.key};
  for (const WordLook& other : out->looks) {
    if (others.size() + 1 == most_told) break;
    if (std::ranges::find(told, other.key) != told.end()) continue;
    told.push_back(other.key);
    others.push_back(fmt::format("{} ({} in head {})", place_in_words(loaded_, *trace_, other.key),
                                 portion(other.weight), to_string(other.head)));
  }
  if (!others.empty()) out->sentence += fmt::format(" Other heads look at {}.", fmt::join(others, " and "));
  out->provenance = fmt::format(
      "row {} of every pattern; told are weights at least {} above the mean of the other rows and {} times an even "
      "head's{}",
      request_.row, least_special, times_even,
      changes_.empty() ? ""
                       : fmt::format("; z of the first {} of these heads in turn, in row {}: {}; softmax of the "
                                     "logits",
                                     changes_.size(), request_.row, text_of(EditAction(request_.ablate))));
  return out;
}

}  // namespace headscope
