// A transformer in a trial.

#include "core/train/batches.h"
#include "core/train/recurrent_layers.h"
#include "core/train/trainer.h"
#include "core/train/trial_model.h"

namespace headscope {

namespace {
constexpr int scored_rows = 24;

/// Rows of `size` characters that are said twice. Only those of the second time count: they are certain.
Batch rows_of_size(const Task& task, int size) {
  Random random(task.settings().seed + 0x73697a65u + static_cast<std::uint64_t>(size));
  std::vector<std::vector<std::int32_t>> rows;
  for (int i = 0; i < scored_rows; ++i)
    rows.push_back(ids_of(*task.tokenizer(), repeated_text(random, size, 2 * size)));
  Batch batch = batches_of(rows, scored_rows, task.vocabulary().end_of_text_id(), false).front();
  for (std::size_t i = 0; i < batch.targets.size(); ++i)
    if (static_cast<int>(i) % (2 * size) < size) batch.targets[i] = -1;
  return batch;
}

class TransformerModel final : public TrialModel {
 public:
  TransformerModel(const Recipe& recipe, std::set<int> recurrent, Backend& backend)
      : recurrent_(std::move(recurrent)),
        backend_(backend),
        trainer_(recipe, backend),
        parameters_(trainer_.learner().parameters().count()) {}

  void learn(std::int64_t steps, std::stop_token stop) override {
    length(0);  // scoring, which may have been stopped, leaves that of its rows
    trainer_.run(steps, stop);
  }
  const TrainingProgress& progress() const override { return trainer_.progress(); }
  const std::vector<TrainingPoint>& curve() const override { return trainer_.curve(); }
  std::int64_t parameters() const override { return parameters_; }
  std::int64_t state() const override {
    const ModelShape& m = trainer_.recipe().model;
    const std::int64_t width = std::int64_t{m.heads} * m.head_width(), recurrent = std::ssize(recurrent_);
    return recurrent * width * m.head_width() + (m.layers - recurrent) * 2 * width * m.context;
  }
  double score(int size, std::stop_token stop) override {
    const Batch rows = rows_of_size(trainer_.task(), size);
    length(rows.length);
    return trainer_.learner().accuracy(rows, stop);
  }

 private:
  /// The texts of the passes to come have so many tokens; 0 = the context.
  void length(int tokens) {
    if (recurrent_.empty()) return;
    Learner& learner = trainer_.learner();
    learner.set_tap(recurrent_layers(learner.config(), recurrent_,
                                     tokens > 0 ? tokens : trainer_.recipe().model.context, backend_));
  }

  std::set<int> recurrent_;
  Backend& backend_;
  Trainer trainer_;
  std::int64_t parameters_;
};
}  // namespace

MakeTrialModel transformer(std::set<int> recurrent) {
  return [recurrent = std::move(recurrent)](const Recipe& recipe, Backend& backend) -> std::unique_ptr<TrialModel> {
    return std::make_unique<TransformerModel>(recipe, recurrent, backend);
  };
}

}  // namespace headscope
