#include "app/render/self_adaptation_pictures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/words.h"

namespace headscope {

namespace {

/// A loss as it is, in the colour of what it is above `beside` or below it.
void put_loss(Matrix& table, Index row, Index column, double loss, double beside) {
  const auto cell = static_cast<std::size_t>(row * table.values.dim(1) + column);
  table.values.ref(row, column) = static_cast<float>(loss - beside);
  table.texts[cell] = fmt::format("{:.3f}", loss);
  table.pending[cell] = 0;
}

/// A table of losses of which none is known yet.
Matrix loss_table(Index rows, Index columns, const char* pending) {
  Matrix out;
  const auto cells = static_cast<std::size_t>(rows * columns);
  out.values = Tensor::full({rows, columns}, std::numeric_limits<float>::quiet_NaN());
  out.pending.assign(cells, 1);
  out.pending_text = pending;
  out.texts.resize(cells);
  out.diverging = true;
  return out;
}

}  // namespace

Matrix expert_loss_matrix(const SelfAdaptation& found) {
  const auto tasks = static_cast<Index>(found.tasks.size());
  Matrix out = loss_table(tasks + 1, tasks, said("not measured yet"));
  for (std::size_t e = 0; e < found.losses.size(); ++e)
    for (std::size_t t = 0; t < found.losses[e].size(); ++t)
      put_loss(out, static_cast<Index>(e), static_cast<Index>(t), found.losses[e][t], found.losses[0][t]);
  out.rows.emplace_back(said("no expert"));
  for (const TaskTexts& each : found.tasks) {
    out.rows.push_back(each.name);
    out.columns.push_back(each.name);
  }
  out.row_title = said("expert ↓"), out.column_title = said("task →");
  out.unit = said("loss less that of no expert, nats per token");
  out.largest_cell = 120, out.highest_row = 40;
  out.provenance = said("in cells: the loss itself, of the second half of texts that no expert learnt");
  return out;
}

Matrix expert_z_matrix(const ExpertSet& set) {
  Matrix out;
  if (set.experts.empty()) return out;
  const std::vector<SingularExpert::Part>& parts = set.experts.front().z.parts;
  std::size_t longest = 0;
  for (const SingularExpert::Part& part : parts) longest = std::max(longest, part.z.size());
  const std::size_t experts = set.experts.size();
  out.values = Tensor::full({static_cast<Index>(parts.size() * experts), static_cast<Index>(longest)},
                            std::numeric_limits<float>::quiet_NaN());
  out.missing_text = said("this matrix has fewer singular values");
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (std::size_t k = 0; k < experts; ++k) {
      const SingularExpert::Part& part = set.experts[k].z.parts[p];
      const auto row = static_cast<Index>(p * experts + k);
      for (std::size_t i = 0; i < part.z.size(); ++i)
        out.values.ref(row, static_cast<Index>(i)) = static_cast<float>(part.z[i] - 1);
      out.rows.push_back(fmt::format("{} {} {}", part.layer, symbol_of(part.matrix), set.experts[k].name));
    }
  for (std::size_t i = 0; i < longest; ++i) out.columns.push_back(std::to_string(i + 1));
  out.row_title = said("layer, matrix, expert ↓"), out.column_title = said("singular value, largest first →");
  out.unit = "z − 1";
  out.diverging = true;
  out.digits = 0;
  out.provenance = said("0: as the model has it; above: stronger; −1: switched off");
  return out;
}

LineChart few_shot_chart(const SelfAdaptation& found, std::size_t task, const Style& style) {
  LineChart out;
  out.y_title = said("loss of the shots, nats per token");
  out.x_title = said("round");
  const SelfAdaptation::FewShot& search = found.few_shot[task];
  ChartSeries best{said("best mixture"), style.theme.accent, {}, {}},
      model{said("no expert"), style.theme.muted, {}, {}};
  for (std::size_t i = 0; i < search.best.size(); ++i) {
    best.x.push_back(static_cast<double>(i + 1)), best.y.push_back(search.best[i]);
  }
  model.x = {1, static_cast<double>(found.asked.search.rounds)}, model.y = {search.before, search.before};
  model.dashed = true;
  out.series = {best, model};
  out.points = true;
  return out;
}

Matrix reward_matrix(const RewardTuning& found) {
  Matrix out;
  const auto tasks = static_cast<Index>(found.tasks.size());
  out.values = Tensor::full({tasks, 3}, std::numeric_limits<float>::quiet_NaN());
  out.pending.assign(static_cast<std::size_t>(tasks) * 3, 1);
  out.pending_text = said("not learnt yet");
  for (std::size_t t = 0; t < found.found.size(); ++t) {
    const RewardTuning::Task& task = found.found[t];
    const RewardStep* const steps[] = {&task.before, task.rewarded.right > 0 ? &task.rewarded : nullptr,
                                       task.whole ? &task.taught : nullptr};
    for (std::size_t i = 0; i < 3; ++i)
      if (steps[i]) {
        out.values.ref(static_cast<Index>(t), static_cast<Index>(i)) = static_cast<float>(steps[i]->right);
        out.pending[t * 3 + i] = 0;
      }
  }
  for (const TaskTexts& each : found.tasks) out.rows.push_back(each.name);
  out.columns = {said("no expert"), "REINFORCE", said("gradient")};
  out.row_title = said("task ↓"), out.column_title = said("learnt by →");
  out.unit = said("probability of the right token");
  out.low = 0, out.high = 1;
  out.digits = 3;
  out.largest_cell = 130;
  out.provenance = said("mean over the second halves of texts that no expert learnt");
  return out;
}

Matrix composition_matrix(const ExpertComposition& found) {
  const auto pairs = static_cast<Index>(found.tasks.size() * (found.tasks.size() - 1) / 2);
  Matrix out = loss_table(2 * pairs, 6, said("not composed yet"));
  constexpr std::size_t half = 1, whole = 3;  // of composed_weights
  Index row = 0;
  for (std::size_t a = 0; a < found.tasks.size(); ++a)
    for (std::size_t b = a + 1; b < found.tasks.size(); ++b)
      for (const bool adapters : {false, true}) {
        out.rows.push_back(
            fmt::format("{} + {}, {}", found.tasks[a].name, found.tasks[b].name, adapters ? "LoRA" : "z"));
        const auto index = static_cast<std::size_t>(row / 2);
        if (index < found.pairs.size()) {
          const ExpertComposition::Pair& pair = found.pairs[index];
          const auto& mixed = adapters ? pair.adapters : pair.experts;
          const auto& own = adapters ? found.adapters : found.experts;
          const double values[] = {own[a][a], mixed[half][0], mixed[whole][0],
                                   own[b][b], mixed[half][1], mixed[whole][1]};
          for (Index i = 0; i < 6; ++i) put_loss(out, row, i, values[i], values[i - i % 3]);
        }
        ++row;
      }
  out.columns = {said("1st own"), said("1st ½"), said("1st sum"), said("2nd own"), said("2nd ½"), said("2nd sum")};
  out.row_title = said("pair of tasks ↓"), out.column_title = said("on which task, of what →");
  out.unit = said("loss less that of the task's own alone, nats per token");
  out.largest_cell = 110;
  out.provenance = said("in cells: the loss itself, of the second half of texts that neither learnt");
  return out;
}

LineChart reward_chart(const RewardTuning& found, std::size_t task, const Style& style) {
  LineChart out;
  out.y_title = said("mean reward, −1 … 1");
  out.x_title = said("step");
  ChartSeries drawn{said("drawn"), style.theme.muted, {}, {}}, expected{said("expected"), style.theme.accent, {}, {}};
  for (std::size_t i = 0; i < found.found[task].steps.size(); ++i) {
    const RewardStep& step = found.found[task].steps[i];
    drawn.x.push_back(static_cast<double>(i + 1)), drawn.y.push_back(step.reward);
    expected.x.push_back(static_cast<double>(i + 1)), expected.y.push_back(2 * step.right - 1);
  }
  drawn.quiet = true;
  out.series = {drawn, expected};
  return out;
}

}  // namespace headscope
