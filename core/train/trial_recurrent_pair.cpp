// A recurrent encoder-decoder in a trial.

#include <map>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/io/imported_maps.h"
#include "core/train/seq2seq.h"
#include "core/train/translate_task.h"
#include "core/train/trial_model.h"

namespace headscope {

namespace {
constexpr int scored_texts = 32;
constexpr int shown_words = 14;  // of the source on which alignment is shown: of two sentences, and every word legible

class RecurrentPair final : public TrialModel {
 public:
  RecurrentPair(const Recipe& recipe, SourceReading how, std::shared_ptr<const TranslateTask> task, Backend& backend)
      : task_(std::move(task)),
        context_(recipe.model.context),
        course_(recipe, task_),
        // Its ops are written for the processor.
        own_(backend.asynchronous() ? std::make_unique<Backend>(backend.pool().threads()) : nullptr),
        model_({.vocabulary = std::ssize(task_->vocabulary().tokens),
                .end = task_->vocabulary().end_of_text_id(),
                .width = recipe.model.width,
                .attends = how == SourceReading::attention,
                .backwards = how == SourceReading::one_vector_backwards},
               recipe.optimizer, recipe.seed, own_ ? *own_ : backend) {}

  void learn(std::int64_t steps, std::stop_token stop) override { course_.run(model_, steps, stop); }
  const TrainingProgress& progress() const override { return course_.progress(); }
  const std::vector<TrainingPoint>& curve() const override { return course_.curve(); }
  std::int64_t parameters() const override { return model_.parameters().count(); }
  std::int64_t state() const override {
    return std::int64_t{model_.settings().width} * (model_.settings().attends ? context_ : 1);
  }
  double score(int size, std::stop_token stop) override {
    // Drawn once: few of all texts have just this length.
    Batch& texts = scored_[size];
    if (texts.sequences == 0) texts = task_->batch_of(task_->held_out_of_length(size, scored_texts), context_);
    const auto written = model_.write(texts, texts.length, stop);
    std::int64_t right = 0, all = 0;
    for (std::size_t i = 0; i < texts.targets.size(); ++i) {
      if (texts.targets[i] < 0) continue;
      const std::size_t length = as_size(texts.length);
      right += written[i / length][i % length] == texts.targets[i];
      ++all;
    }
    return static_cast<double>(right) / static_cast<double>(all);
  }
  std::shared_ptr<const Trace> alignment(std::stop_token stop) override {
    if (!model_.settings().attends) return nullptr;
    const Batch text = shown();
    const Tensor weights = model_.alignment(text, stop);
    auto trace = std::make_shared<Trace>();
    trace->model.name = "recurrent encoder-decoder with attention";
    trace->model.dims.layers = trace->model.dims.heads = trace->model.dims.kv_heads = 1;
    trace->tokens = tokens_of(text.source);
    trace->query_tokens = tokens_of(text.targets);
    append_maps(
        trace->maps, {.between_texts = true}, weights.reshape({1, weights.dim(0), weights.dim(1)}), trace->model.dims,
        [](int, const Tensor&) { return nullptr; }, nullptr);
    return trace;
  }
  std::vector<std::string> written(std::stop_token stop) override {
    std::vector<std::string> words;
    for (const Token& token : tokens_of(model_.write(shown(), context_, stop).front())) {
      if (token.id == model_.settings().end) break;
      words.push_back(token.label);
    }
    return words;
  }

 private:
  Batch shown() const { return task_->batch_of(task_->held_out_of_length(shown_words, 1), context_); }
  /// Labelled as words, without the space before them.
  std::vector<Token> tokens_of(const std::vector<std::int32_t>& ids) const {
    std::vector<Token> out;
    for (const std::int32_t id : ids) {
      Token& token = out.emplace_back(task_->tokenizer()->token(id));
      const std::string text = task_->tokenizer()->decode(std::span(&id, 1));
      token.label = id == model_.settings().end ? "end" : text.starts_with(' ') ? text.substr(1) : text;
    }
    return out;
  }

  std::shared_ptr<const TranslateTask> task_;
  int context_;
  TrainingCourse course_;
  std::unique_ptr<Backend> own_;
  Seq2Seq model_;
  std::map<int, Batch> scored_;
};
}  // namespace

MakeTrialModel recurrent_pair(SourceReading how) {
  return [how](const Recipe& recipe, Backend& backend) -> std::unique_ptr<TrialModel> {
    recipe.check("recipe");
    auto task = std::dynamic_pointer_cast<const TranslateTask>(make_task(recipe.task));
    if (!task) throw Error("recipe: task: kind", "\"translate\"", "\"" + recipe.task.kind + "\"");
    return std::make_unique<RecurrentPair>(recipe, how, std::move(task), backend);
  };
}

}  // namespace headscope
