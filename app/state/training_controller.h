#pragma once
// The training workspace without its window: a recipe that is being edited, a run of it, and the moments of that run
// that can be gone back to. Training takes turns with everything else on the worker, a slice of a few steps
// at a time, so that exploring stays responsive. Thread rule: the UI thread.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/state/document_editor.h"
#include "app/state/job_runner.h"
#include "app/state/kept_work.h"
#include "app/state/run_controller.h"
#include "core/base/words.h"
#include "core/train/trainer.h"

namespace headscope {

/// The model at one step, looked at: a fixed text traced, its heads measured, a text of its own written.
struct TrainingView {
  std::int64_t step = 0;
  std::shared_ptr<const HeadFacts> facts;  ///< of the probe text; facts->trace is the trace (of a translator: that of
                                           ///< cross-attention)
  HeadTable scores;                        ///< of its maps; of those of a state space as shares (as_shares)
  std::vector<double> alignment_errors;    ///< of a translator's heads there, against the known alignment; else empty
  Worded sample;                           ///< what the model wrote then, or last time before
  std::int64_t sample_step = 0;
};

/// A step that can be shown again, forked from, saved.
struct TrainingMoment {
  std::shared_ptr<const TrainingView> view;
  std::shared_ptr<const Checkpoint> checkpoint;
};

/// All views' numbers, also of moments that went: one for each head and metric.
struct HeadHistory {
  static constexpr const char* alignment = "alignment_error";
  std::string metric;                      ///< id, or `alignment`: the alignment error rate, of translators
  std::vector<double> steps;               ///< ascending
  std::vector<std::vector<double>> heads;  ///< [head, layer-major][step]
};

/// A way that training went: the one that is going on, or one that was left, at a fork or for another beginning, and
/// can be gone back to.
struct TrainingBranch {
  int id = 0, parent = -1;  ///< −1: from the first step
  std::int64_t from = 0;    ///< the step it shares with its parent last
  Recipe recipe;
  TrainingProgress progress;
  std::vector<TrainingPoint> curve;
  std::vector<TrainingMoment> moments;  ///< ascending steps
  std::vector<HeadHistory> history;
};

class TrainingController : public KeptWork {
 public:
  using HeadHistory = headscope::HeadHistory;
  enum class Phase { idle, preparing, running, paused, finished };

  /// The others must outlive the controller. Moments take at most `most_bytes` together; when there are more, the ones
  /// that lie closest together go.
  TrainingController(JobRunner& jobs, DocumentEditor& editor, RunController& run,
                     std::size_t most_bytes = std::size_t{512} << 20);
  ~TrainingController();

  /// Once per frame, after JobRunner::frame(): lets the training go on.
  void frame();

  // ---- the recipe
  /// Recipes that come with the program, by name, and where they lie.
  const std::vector<std::pair<std::string, std::filesystem::path>>& recipes() const { return recipes_; }
  Recipe& draft() { return draft_; }
  /// The draft becomes that recipe, a file or a bundled one's name; a file that is none becomes the message.
  void choose(const std::filesystem::path& recipe);
  /// What is wrong with the draft; "" = nothing.
  std::string complaint() const;

  // ---- the run
  /// Begins the draft anew; the run before it is kept as a branch.
  void start();
  void pause();
  void resume();
  void step();  ///< one step, then pauses
  void stop();  ///< drops the run
  /// From the next step on.
  void set_learning_rate(double rate);
  /// Nats of loss that a unit of balance costs (OptimizerSettings::expert_balance): of the draft and, from the next
  /// step on, of a run with experts. REQUIRES experts of the draft.
  void set_expert_balance(double price);
  /// Pauses by itself after that step; 0 = never.
  void pause_at(std::int64_t step) { pause_at_ = step; }

  Phase phase() const { return phase_; }
  bool has_run() const { return run_ != nullptr; }
  const Recipe& running() const { return now_.recipe; }  ///< the recipe of the run
  const TrainingProgress& progress() const { return now_.progress; }
  const std::vector<TrainingPoint>& curve() const { return now_.curve; }
  /// Ascending steps.
  const std::vector<TrainingMoment>& moments() const { return now_.moments; }
  const std::vector<HeadHistory>& head_history() const { return now_.history; }
  /// The one that goes on, and those that were left at forks, by their numbers.
  const TrainingBranch& branch() const { return now_; }
  const std::vector<TrainingBranch>& other_branches() const { return others_; }

  // ---- looking back
  /// The moment on screen; nullopt = the newest.
  std::optional<std::size_t> shown() const { return shown_; }
  void show(std::optional<std::size_t> moment) { shown_ = moment; }
  /// What is on screen; nullptr before the first view.
  const TrainingMoment* moment() const;
  /// Goes on from the shown moment, with the draft's learning rate and price of balance; what came after it is kept as
  /// a branch.
  void fork();
  /// Goes back to the end of a branch that was left, and pauses there; the one that went on is kept in its place.
  void go_back_to(int branch);
  /// Writes the shown moment as a model folder; then opens it with the probe text, when asked. A model
  /// that lies there is replaced only with `overwrite`; without, that is the message.
  void save(const std::filesystem::path& folder, bool open, bool overwrite = false);
  /// Where save() would put the shown moment if nobody says otherwise.
  std::filesystem::path usual_folder() const;

  // ---- nothing lost
  /// The run that would be lost with the controller, in words: "the training of small, at step 120 of 1000"; "" = none.
  std::string unsaved() const override;
  /// Writes the run as it is, beside the UI thread; keeping() until it is on the disk, and meanwhile asking again does
  /// nothing. What fails becomes the message.
  void keep(const std::filesystem::path& checkpoint) override;
  bool keeping() const override { return keeping_ > 0; }
  std::string not_kept() const override { return not_kept_; }
  /// Goes on, bit for bit, where keep() (or `headscope-cli train`) wrote that file: paused.
  void take_up(const std::filesystem::path& checkpoint) override;

 private:
  struct Run;
  struct Slice;
  /// The run goes on from `from`, or begins with now_.recipe; now_ holds what is known of it.
  void begin(std::shared_ptr<const Checkpoint> from, bool paused);
  /// State spaces are written for the processor: a card would wait for it in every layer.
  std::shared_ptr<Backend> trains_on() const {
    return now_.recipe.model.state_space() ? jobs_.processor() : jobs_.backend();
  }
  void change_run(const char* tag, std::function<void(OptimizerSettings&)> change);
  void leave_branch();
  void bound_memory();
  void submit(const std::string& tag, std::int64_t most_steps);
  void deliver(const std::shared_ptr<Run>& run, const Slice& slice);
  void take(const Slice& slice, TrainingBranch& branch);
  void add_moment(const TrainingMoment& moment, TrainingBranch& branch);

  JobRunner& jobs_;
  DocumentEditor& editor_;
  RunController& open_;
  std::size_t most_bytes_;
  std::filesystem::path documents_;  // of the person
  std::vector<std::pair<std::string, std::filesystem::path>> recipes_;
  Recipe draft_;
  TrainingBranch now_;
  std::vector<TrainingBranch> others_;
  int next_branch_ = 0, keeping_ = 0;
  std::string not_kept_;
  bool pause_first_ = false;     // when the run has begun
  std::int64_t saved_step_ = 0;  // of the model that was saved last
  Phase phase_ = Phase::idle;
  std::shared_ptr<Run> run_;
  int in_flight_ = 0;
  std::uint64_t slices_ = 0;
  bool single_ = false;  // pause after the next step
  std::int64_t pause_at_ = 0;
  std::uint64_t stops_ = 0;  // of the runner
  std::optional<std::size_t> shown_;
};

}  // namespace headscope
