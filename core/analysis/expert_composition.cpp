#include "core/analysis/expert_composition.h"

#include <utility>

#include "core/analysis/singular_tuning.h"

namespace headscope {

HalfAndHalf half_and_half(const ExpertComposition& found) {
  HalfAndHalf out;
  const double count = 2.0 * static_cast<double>(found.pairs.size());
  for (const ExpertComposition::Pair& pair : found.pairs) {
    out.experts += (pair.experts[1][0] + pair.experts[1][1]) / count;
    out.adapters += (pair.adapters[1][0] + pair.adapters[1][1]) / count;
    for (const std::size_t task : {pair.first, pair.second}) {
      out.own_expert += found.experts[task][task] / count;
      out.own_adapter += found.adapters[task][task] / count;
    }
  }
  return out;
}

ExpertCompositionRun::ExpertCompositionRun(LoadedModel loaded, SelfAdaptationAsked asked, int rank, double adapter_rate)
    : loaded_(std::move(loaded)) {
  known_.asked = std::move(asked), known_.rank = rank, known_.adapter_rate = adapter_rate;
}

int ExpertCompositionRun::total() const {
  if (!experts_) return 0;
  const auto tasks = static_cast<int>(known_.tasks.size());
  return 2 * tasks * known_.asked.steps + tasks * (tasks - 1) / 2;
}

void ExpertCompositionRun::learn(std::size_t task, bool adapter, const Ctx& ctx) {
  const auto steps = static_cast<std::size_t>(known_.asked.steps);
  if (taken_ == 0) adapter ? adapters_->restart() : experts_->restart();
  const Batch batch = rows_batch(drawn_rows(rows_[task].learn, known_.asked, task, taken_));
  adapter ? adapters_->step(batch, ctx.stop) : experts_->step(batch, ctx.stop);
  if (++taken_ < steps) return;
  taken_ = 0;
  std::vector<double> losses;
  if (!adapter) {
    experts_->set_expert(as_written(experts_->expert()));
    learnt_.push_back({known_.tasks[task].name, "", experts_->expert()});
  } else {
    adapted_.push_back(adapters_->adapter());
  }
  for (std::size_t t = 0; t < rows_.size(); ++t) {
    const Batch test = rows_batch(rows_[t].test);
    losses.push_back(mean_nats(adapter ? adapters_->matrices().nats(test) : experts_->nats(test), rows_[t].test));
  }
  (adapter ? known_.adapters : known_.experts).push_back(std::move(losses));
}

void ExpertCompositionRun::compose(std::size_t pair, const Ctx& ctx) {
  std::size_t a = 0, b = 1;
  for (std::size_t i = 0; i < pair; ++i)
    if (++b == rows_.size()) b = ++a + 1;
  ExpertComposition::Pair found{a, b, {}, {}};
  const std::vector<TextRow>* const tests[] = {&rows_[a].test, &rows_[b].test};
  const std::vector<ExpertSet::Expert> both{learnt_[a], learnt_[b]};
  const LowRankAdapter* const adapters[] = {&adapted_[a], &adapted_[b]};
  for (const std::array<double, 2>& weights : composed_weights) {
    experts_->set_expert(as_written(mixed_expert(both, weights)));
    adapters_->show(adapters, weights);
    std::array<double, 2> e{}, l{};
    for (std::size_t t = 0; t < 2; ++t) {
      const Batch test = rows_batch(*tests[t]);
      e[t] = mean_nats(experts_->nats(test, ctx.stop), *tests[t]);
      l[t] = mean_nats(adapters_->matrices().nats(test, ctx.stop), *tests[t]);
    }
    found.experts.push_back(e), found.adapters.push_back(l);
  }
  known_.pairs.push_back(std::move(found));
}

void ExpertCompositionRun::step(const Ctx& ctx) {
  const SelfAdaptationAsked& asked = known_.asked;
  if (!experts_) {
    PreparedTasks prepared = prepare_tasks(loaded_, asked, 2, ctx.stop);
    auto backend = std::make_unique<Backend>(ctx.backend.pool().threads());
    auto experts = singular_learner(loaded_, asked.model, asked.matrices, {.rate = asked.rate}, prepared.longest,
                                    *backend, ctx.stop, available_memory() / 2, asked.batch);
    auto adapters = std::make_unique<LowRankLearner>(
        Parameters::load(asked.model), asked.matrices,
        LowRankLearner::Settings{.rate = known_.adapter_rate, .rank = known_.rank, .seed = asked.seed}, *backend);
    std::vector<double> model;
    for (const TaskRows& each : prepared.rows)
      model.push_back(mean_nats(experts->nats(rows_batch(each.test), ctx.stop), each.test));
    known_.model = std::move(model);
    known_.expert_numbers = experts->expert().numbers(), known_.adapter_numbers = adapters->adapter().numbers();
    known_.tasks = std::move(prepared.tasks), rows_ = std::move(prepared.rows);
    backend_ = std::move(backend), adapters_ = std::move(adapters), experts_ = std::move(experts);
    return;
  }
  const auto tasks = static_cast<int>(known_.tasks.size());
  const int learning = 2 * tasks * asked.steps;
  if (done_ < learning) {
    const int which = done_ / asked.steps;
    learn(static_cast<std::size_t>(which % tasks), which >= tasks, ctx);
  } else {
    compose(static_cast<std::size_t>(done_ - learning), ctx);
  }
  ++done_;
}

std::shared_ptr<const ExpertComposition> ExpertCompositionRun::result() const {
  return experts_ ? std::make_shared<const ExpertComposition>(known_) : nullptr;
}

}  // namespace headscope
