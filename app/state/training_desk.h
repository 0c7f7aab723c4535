#pragma once
// The training workspace without its window: a recipe that is being edited, a run of it, and the moments of that run
// that can be gone back to. Training takes turns with everything else on the explorer's worker, a slice of a few steps
// at a time, so that exploring stays responsive. Thread rule: the UI thread.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/state/explorer.h"
#include "core/train/trainer.h"

namespace headscope {

/// The model at one step, looked at: a fixed text traced, its heads measured, a text of its own written.
struct TrainingView {
  std::int64_t step = 0;
  std::shared_ptr<const HeadFacts> facts;  ///< of the probe text; facts->trace is the trace
  std::string sample;                      ///< what the model wrote then, or last time before
  std::int64_t sample_step = 0;
};

/// A step that can be shown again, forked from, saved.
struct TrainingMoment {
  std::shared_ptr<const TrainingView> view;
  std::shared_ptr<const Checkpoint> checkpoint;
};

class TrainingDesk {
 public:
  enum class Phase { idle, preparing, running, paused, finished };

  /// `explorer` must outlive the desk. Moments take at most `most_bytes` together; when there are more, the ones that
  /// lie closest together go.
  explicit TrainingDesk(Explorer& explorer, std::size_t most_bytes = std::size_t{512} << 20);
  ~TrainingDesk();

  /// Once per frame, after Explorer::frame(): lets the training go on.
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
  /// Begins the draft anew; the run before it is dropped.
  void start();
  void pause();
  void resume();
  void step();  ///< one step, then pauses
  void stop();  ///< drops the run
  /// From the next step on.
  void set_learning_rate(double rate);
  /// Pauses by itself after that step; 0 = never.
  void pause_at(std::int64_t step) { pause_at_ = step; }

  Phase phase() const { return phase_; }
  bool has_run() const { return run_ != nullptr; }
  const Recipe& running() const { return running_; }  ///< the recipe of the run
  const TrainingProgress& progress() const { return progress_; }
  const std::vector<TrainingPoint>& curve() const { return curve_; }
  /// Ascending steps.
  const std::vector<TrainingMoment>& moments() const { return moments_; }
  /// All views' numbers, also of moments that went: one for each head and metric of head_history().
  struct HeadHistory {
    std::string metric;                      ///< id
    std::vector<double> steps;               ///< ascending
    std::vector<std::vector<double>> heads;  ///< [head, layer-major][step]
  };
  const std::vector<HeadHistory>& head_history() const { return history_; }

  // ---- looking back
  /// The moment on screen; nullopt = the newest.
  std::optional<std::size_t> shown() const { return shown_; }
  void show(std::optional<std::size_t> moment) { shown_ = moment; }
  /// What is on screen; nullptr before the first view.
  const TrainingMoment* moment() const;
  /// Goes on from the shown moment, with the draft's learning rate; what came after it is dropped.
  void fork();
  /// Writes the shown moment as a model folder; then opens it in the explorer with the probe text, when asked.
  void save(const std::filesystem::path& folder, bool open);
  /// Where save() would put the shown moment if nobody says otherwise.
  std::filesystem::path usual_folder() const;

 private:
  struct Run;
  struct Slice;
  void begin(std::shared_ptr<const Checkpoint> from);
  void submit(const std::string& tag, std::int64_t most_steps);
  void deliver(const std::shared_ptr<Run>& run, const Slice& slice);
  void add_moment(const TrainingMoment& moment);

  Explorer& explorer_;
  std::size_t most_bytes_;
  std::vector<std::pair<std::string, std::filesystem::path>> recipes_;
  Recipe draft_, running_;
  Phase phase_ = Phase::idle;
  std::shared_ptr<Run> run_;
  int in_flight_ = 0;
  std::uint64_t slices_ = 0;
  bool single_ = false;  // pause after the next step
  std::int64_t pause_at_ = 0;
  std::uint64_t cancels_ = 0;  // of the explorer
  TrainingProgress progress_;
  std::vector<TrainingPoint> curve_;
  std::vector<TrainingMoment> moments_;
  std::vector<HeadHistory> history_;
  std::optional<std::size_t> shown_;
};

}  // namespace headscope
