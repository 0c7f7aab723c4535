// Moments of a training as they come: their heads' numbers over time, and which of them stay in memory.

#include <algorithm>
#include <set>

#include "app/state/training_controller.h"
#include "core/base/nth.h"

namespace headscope {

namespace {
constexpr const char* history_metrics[] = {"prefix_matching", "previous_token", "sink", "entropy_normalized"};
constexpr std::size_t history_points = 4000;
}  // namespace

void TrainingController::add_moment(const TrainingMoment& moment, TrainingBranch& branch) {
  if (!branch.moments.empty() && branch.moments.back().view->step >= moment.view->step) return;  // known at a fork
  const HeadTable& table = moment.view->scores;
  const std::vector<double>& errors = moment.view->alignment_errors;
  const auto begin_history = [&](const char* id) {
    branch.history.push_back({id, {}, std::vector<std::vector<double>>(table.value.size())});
  };
  if (branch.history.empty()) {
    for (const char* id : history_metrics) begin_history(id);
    if (!errors.empty()) begin_history(HeadHistory::alignment);
  }
  for (HeadHistory& history : branch.history) {
    const bool aligns = history.metric == HeadHistory::alignment;
    const auto column = aligns ? 0 : static_cast<std::size_t>(&metric(history.metric) - metrics().data());
    if (history.steps.size() == history_points) {  // halves its resolution
      const auto thin = [](std::vector<double>& values) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < values.size(); i += 2) values[kept++] = values[i];
        values.resize(kept);
      };
      thin(history.steps);
      for (auto& head : history.heads) thin(head);
    }
    history.steps.push_back(static_cast<double>(moment.view->step));
    for (std::size_t head = 0; head < table.value.size(); ++head)
      history.heads[head].push_back(aligns ? nth(errors, head) : table.value[head][column]);
  }
  branch.moments.push_back(moment);
  bound_memory();
}

/// Of all moments of all branches the one whose neighbours are closest goes, until the others fit; never the first or
/// the last of a branch.
void TrainingController::bound_memory() {
  std::vector<TrainingBranch*> all{&now_};
  for (TrainingBranch& branch : others_) all.push_back(&branch);
  const auto bytes = [&] {
    std::set<const Checkpoint*> counted;  // branches share what came before their fork
    std::size_t sum = 0;
    for (const TrainingBranch* branch : all)
      for (const TrainingMoment& m : branch->moments) {
        if (!counted.insert(m.checkpoint.get()).second) continue;
        sum += m.checkpoint->bytes();
        for (const AttentionMap& map : m.view->facts->trace->maps) sum += map.bytes();
      }
    return sum;
  };
  while (bytes() > most_bytes_) {
    TrainingBranch* of = nullptr;
    std::size_t least = 0;
    std::int64_t closest = 0;
    for (TrainingBranch* branch : all)
      for (std::size_t i = 1; i + 1 < branch->moments.size(); ++i) {
        const std::int64_t gap = branch->moments[i + 1].view->step - branch->moments[i - 1].view->step;
        if (!of || gap < closest) of = branch, least = i, closest = gap;
      }
    if (!of) return;
    const auto gone = of->moments[least].checkpoint;
    for (TrainingBranch* branch : all) {
      const auto at = std::ranges::find(branch->moments, gone, &TrainingMoment::checkpoint);
      if (at == branch->moments.end() || at == branch->moments.begin() || at + 1 == branch->moments.end()) continue;
      const auto index = static_cast<std::size_t>(at - branch->moments.begin());
      branch->moments.erase(at);
      if (branch == &now_ && shown_ && *shown_ >= index && *shown_ > 0) --*shown_;
    }
  }
}

}  // namespace headscope
