#pragma once
// Transformer² (Sun, Cetin & Tang, 2025) on small tasks: an expert of singular values is learnt for each, and a prompt
// is then read twice, first to choose an expert, then with it. Three ways of choosing:
//   prompt      whichever of the model and its experts finds the prompt most probable. The paper asks the model in
//               words which task a prompt is of; small models that only continue texts understand no such question, so
//               here each expert is asked how well it knows the prompt: a pass for each of them instead of one.
//   classifier  a further expert, learnt so that of the labels of all tasks, a token each, the model finds that of the
//               prompt's task most probable behind it. As there, but that the loss is over the labels alone.
//   few shots   a mixture z = Σ α_k z_k of the experts and the model, for a task and not for a prompt; α by the
//               cross-entropy method, so that a few of its texts become most probable; as there.
// The prompt is the first half of a text's tokens, and what the second pass is measured on is the rest. Experts learn
// by gradient (core/train/singular_expert.h).

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/analysis/expert_set.h"
#include "core/analysis/sweep.h"
#include "core/run/run_request.h"
#include "core/train/cross_entropy_method.h"
#include "core/train/task_texts.h"

namespace headscope {

/// What an expert is learnt and measured on: the tokens of a task's texts.
struct TaskRows {
  std::vector<TextRow> learn, shots, test;  ///< shots and test are counted behind their prompts
};

/// The first half of a text's tokens, at least one: its prompt. REQUIRES at least two.
int prompt_length(std::size_t tokens);

/// The token that stands for task k when the model is to say it: of the tokens that the tasks' texts are learnt with
/// the k-th most frequent, of equals the lowest. Tokens that no text has would do as well in a model that was taught to
/// answer; in one that continues texts nothing of what they are read as was ever learnt. Throws Error where there are
/// fewer tokens than tasks.
std::vector<std::int32_t> task_labels(const std::vector<TaskRows>& tasks);

/// −ln of the share that the counted target of each row has of what all `labels` have together, mean over the rows.
SingularLearner::LogitLoss label_loss(const Tensor& logits, std::span<const std::int32_t> targets,
                                      std::span<const std::int32_t> labels);

/// −ln p of the shots' counted tokens under mixtures of the experts, mean over all of them, as a search sees it.
class ShotSearch {
 public:
  /// `learner` outlives it.
  ShotSearch(const std::vector<ExpertSet::Expert>& experts, std::span<const TextRow> shots,
             const CrossEntropySearch::Settings& settings, SingularLearner& learner);
  bool finished() const { return search_.finished(); }
  void step(std::stop_token stop = {});  ///< a sample; changes the learner's expert
  const CrossEntropySearch& search() const { return search_; }

 private:
  const std::vector<ExpertSet::Expert>& experts_;
  Batch batch_;
  SingularLearner& learner_;
  CrossEntropySearch search_;
};

struct SelfAdaptationAsked {
  std::filesystem::path model;   ///< folder
  std::vector<TaskTexts> tasks;  ///< empty: drawn_tasks() of the language that the model learnt
  TaskCounts counts;             ///< of those
  std::vector<WeightMatrix> matrices{WeightMatrix::v, WeightMatrix::mlp_out};
  int steps = 60;  ///< of each expert; the classifier has as many for each task; ≥ 1
  int batch = 8;   ///< texts in a step
  double rate = 0.03;
  std::uint64_t seed = 1;
  CrossEntropySearch::Settings search;
  bool operator==(const SelfAdaptationAsked&) const = default;
};

struct SelfAdaptation {
  SelfAdaptationAsked asked;
  std::vector<TaskTexts> tasks;  ///< as they were given or drawn
  ExpertSet set;                 ///< so far; experts as_written(); the classifier comes last
  /// The loss before each step, nats per token of its batch: of each expert, behind them the classifier's (of its
  /// label, label_loss()).
  std::vector<std::vector<double>> curves;
  /// Nats per token of the test texts behind their prompts, [0: the model, 1 + k: expert k][task]; what is not measured
  /// yet is missing.
  std::vector<std::vector<double>> losses;

  /// One of the two ways that choose for each prompt.
  struct Way {
    /// [task][0: the model, 1 + k: expert k]: how many of its prompts chose that. Empty until measured.
    std::vector<std::vector<int>> chosen;
    std::vector<double> loss;  ///< by task: of the second pass, as `losses`
    int right() const;         ///< prompts whose task's own expert was chosen
    int prompts() const;
  } prompt, classifier;
  double said = 0;  ///< probability that all labels have together behind the prompts, mean, with the classifier
  struct FewShot {
    std::vector<double> weights;  ///< α by expert; the model has model_weight()
    std::vector<double> best;     ///< on the shots, least mean nats so far behind each round
    double before = 0;            ///< on the shots, of the model itself
    double loss = 0;              ///< of the test texts behind their prompts
    std::size_t largest() const;  ///< whose weight is: 0 the model, 1 + k expert k
  };
  std::vector<FewShot> few_shot;  ///< by task
  bool whole = false;             ///< nothing is missing any more

  /// What choosing blindly among the experts gives: 1 / experts.
  double chance() const { return 1.0 / static_cast<double>(tasks.size()); }
};

/// The tasks of what is asked, and their tokens; the longest text. Throws Error as SelfAdaptationRun. `least` tasks at
/// the fewest.
struct PreparedTasks {
  std::vector<TaskTexts> tasks;
  std::vector<TaskRows> rows;
  int longest = 0;
};
PreparedTasks prepare_tasks(const LoadedModel& loaded, const SelfAdaptationAsked& asked, int least,
                            const std::stop_token& stop = {});
/// The texts of a step of what learns task `which`: they follow from the seed, the task and the step, nothing else.
std::vector<TextRow> drawn_rows(const std::vector<TextRow>& texts, const SelfAdaptationAsked& asked, std::size_t which,
                                std::size_t step);

/// Nats per counted token of these texts, of the nats of each.
double mean_nats(std::span<const double> nats, std::span<const TextRow> rows);

class SelfAdaptationRun final : public Sweep {
 public:
  using Result = SelfAdaptation;
  /// Nothing is read before the first step, which throws Error as singular_learner(), task_labels(), drawn_tasks(), on
  /// fewer than two tasks or two of one name, on a model without a known language where no tasks are given, and on a
  /// text of fewer than two tokens or more than the model reads, with its task.
  SelfAdaptationRun(LoadedModel loaded, SelfAdaptationAsked asked);
  ~SelfAdaptationRun() override;
  void step(const Ctx& ctx) override;
  int done() const override { return done_; }
  int total() const override;
  bool finished() const override { return known_.whole; }
  double share() const override { return total() ? static_cast<double>(done_) / total() : 0; }
  std::shared_ptr<const SelfAdaptation> result() const;

 private:
  void prepare(const Ctx& ctx);
  void learn(std::size_t which, const Ctx& ctx);
  void measure(std::size_t expert, std::size_t task, const Ctx& ctx);
  void classify(std::size_t task, const Ctx& ctx);
  void search(std::size_t task, const Ctx& ctx);
  std::size_t count() const { return known_.tasks.size(); }

  LoadedModel loaded_;
  SelfAdaptation known_;
  std::unique_ptr<Backend> backend_;  // the processor: weights that change are in its memory
  std::unique_ptr<SingularLearner> learner_;
  std::unique_ptr<ShotSearch> search_;
  std::vector<TaskRows> rows_;
  std::vector<TextRow> labelled_;
  // Σ nats of every test text, [0: the model, 1 + k][task][text]: of its prompt, and of what comes behind it.
  std::vector<std::vector<std::vector<double>>> prompts_, rests_;
  int done_ = 0;
};

/// α of the model itself in a mixture of experts with these weights: 1 − Σ α.
double model_weight(std::span<const double> weights);

/// The tokens of a task's texts. Throws Error with the task's name as SelfAdaptationRun.
TaskRows task_rows(const LoadedModel& loaded, const std::filesystem::path& folder, const TaskTexts& task,
                   const std::stop_token& stop = {});

}  // namespace headscope
