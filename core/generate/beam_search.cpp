#include "core/generate/beam_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>
#include <utility>

#include "core/base/error.h"
#include "core/metrics/next_token.h"

namespace headscope {

void check(const BeamSettings& settings, const std::string& where) {
  if (settings.width < 1 || settings.width > most_beams)
    throw Error(where + ": beams", fmt::format("1 to {}", most_beams), std::to_string(settings.width));
  // A text of 2²⁰ tokens to the power of 50 still is a double.
  if (!(std::abs(settings.length_penalty) <= most_length_penalty))
    throw Error(where + ": length penalty", fmt::format("a number from −{0} to {0}", most_length_penalty),
                fmt::format("{}", settings.length_penalty));
  if (settings.tokens < 1) throw Error(where + ": tokens", "at least one", std::to_string(settings.tokens));
}

std::vector<std::size_t> BeamTree::path(std::size_t node) const {
  std::vector<std::size_t> nodes_of{node};
  while (const auto parent = nodes[nodes_of.back()].parent) nodes_of.push_back(*parent);
  std::ranges::reverse(nodes_of);
  return nodes_of;
}

std::vector<std::int32_t> BeamTree::tokens(std::size_t node) const {
  std::vector<std::int32_t> ids;
  for (const std::size_t each : path(node)) ids.push_back(nodes[each].token);
  return ids;
}

BeamSearch::BeamSearch(std::vector<std::int32_t> prompt, BeamSettings settings) : settings_(settings) {
  tree_.prompt = std::move(prompt);
}

void BeamSearch::advance(std::span<const Tensor> logits) {
  assert(logits.size() == live_.size());
  ++step_;
  const auto width = static_cast<std::size_t>(settings_.width);
  std::vector<BeamNode> found;
  for (std::size_t i = 0; i < live_.size(); ++i) {
    const double total = log_sum_exp(logits[i]), before = live_[i] ? tree_.nodes[*live_[i]].sum : 0;
    for (const NextToken& next : top_next(logits[i], 2 * settings_.width)) {
      const double own = static_cast<double>(next.logit) - total;
      found.push_back({live_[i], step_, next.id, own, before + own});
    }
  }
  std::ranges::stable_sort(found, std::ranges::greater{}, &BeamNode::sum);
  found.resize(std::min(found.size(), 2 * width));

  live_.clear();
  const bool last = step_ == settings_.tokens;
  for (std::size_t rank = 0; rank < found.size(); ++rank) {
    BeamNode& node = found[rank];
    const bool ended = node.token == settings_.end;
    if (ended || last) {
      if (rank >= width) continue;  // only there so that enough are left to go on with
      node.fate = BeamNode::Fate::finished;
      tree_.beams.push_back({tree_.nodes.size() + rank, node.sum / std::pow(step_, settings_.length_penalty), ended});
    } else if (live_.size() < width) {
      node.fate = BeamNode::Fate::kept;
      live_.emplace_back(tree_.nodes.size() + rank);
    }
  }
  tree_.nodes.insert(tree_.nodes.end(), found.begin(), found.end());
  std::ranges::stable_sort(tree_.beams, std::ranges::greater{}, &Beam::score);
  tree_.beams.resize(std::min(tree_.beams.size(), width));
  if (!live_.empty() && !goes_on(tree_.nodes[*live_.front()].sum)) live_.clear();
}

/// Whether the kept texts, the best of which sums to `best_sum`, may still change what is finished.
bool BeamSearch::goes_on(double best_sum) const {
  if (tree_.beams.size() < static_cast<std::size_t>(settings_.width)) return true;
  if (settings_.stopping == BeamSettings::Stopping::full) return false;
  // A sum of logarithms only falls; above 0 the penalty divides it by most where the text is longest.
  const bool longest = settings_.stopping == BeamSettings::Stopping::never && settings_.length_penalty > 0;
  const int length = longest ? settings_.tokens : step_;
  return best_sum / std::pow(length, settings_.length_penalty) > tree_.beams.back().score;
}

BeamSettings inside_context(BeamSettings settings, const Model& model, std::size_t prompt) {
  settings.tokens = std::clamp(model.config().context - static_cast<int>(prompt) + 1, 1, settings.tokens);
  return settings;
}

BeamTree beam_search(const LoadedModel& model, std::span<const std::int32_t> prompt, const BeamSettings& settings,
                     const RunRequest& like, const Ctx& ctx) {
  check(settings, "beam search");
  const BeamSettings own = inside_context(settings, *model.model, prompt.size());
  BeamSearch search({prompt.begin(), prompt.end()}, own);
  const Ctx quiet{ctx.backend, ctx.tap, ctx.stop, nullptr};
  std::vector<Generator> readers;  // of live()
  readers.emplace_back(model, like, false, static_cast<int>(prompt.size()) + own.tokens - 1);
  for (int step = 1; !search.done(); ++step) {
    std::vector<Tensor> logits;
    const auto before = search.live();
    for (std::size_t i = 0; i < before.size(); ++i) {
      std::vector<std::int32_t> ids = search.tree().prompt;
      if (before[i]) std::ranges::copy(search.tree().tokens(*before[i]), std::back_inserter(ids));
      logits.push_back(readers[i].read(quiet, ids)->logits);
    }
    search.advance(logits);
    std::vector<Generator> next;
    for (const auto& each : search.live()) {
      const auto parent = std::ranges::find(before, search.tree().nodes[*each].parent) - before.begin();
      next.push_back(readers[static_cast<std::size_t>(parent)].fork());
    }
    readers = std::move(next);
    if (ctx.progress) *ctx.progress = static_cast<float>(step) / static_cast<float>(own.tokens);
  }
  return search.tree();
}

}  // namespace headscope
