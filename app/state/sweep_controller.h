#pragma once
// Runs one Sweep at a time beside everything else: a slice of a twentieth of a second as a job of the worker, then
// whatever else waits there, then the next slice. What is known so far is handed over after each slice. Thread rule:
// the UI thread.

#include <functional>
#include <memory>
#include <string>

#include "app/state/job_runner.h"
#include "core/analysis/sweep.h"
#include "core/base/words.h"

namespace headscope {

class SweepController {
 public:
  enum class Phase { idle, running, finished, cancelled, failed };

  /// `name` tells its jobs from other controllers'. The runner outlives the controller.
  SweepController(JobRunner& jobs, const std::string& name, std::string words = to_say("sweeping"));
  ~SweepController();
  SweepController(const SweepController&) = delete;
  SweepController& operator=(const SweepController&) = delete;

  /// Begins `sweep`; the one before it is dropped. `take` is given what is known after each slice, on the UI thread,
  /// the last time when all of it is.
  template <class S>
  void start(std::shared_ptr<S> sweep, std::function<void(std::shared_ptr<const typename S::Result>)> take) {
    begin(sweep, [known = sweep.get(), take = std::move(take)]() -> std::function<void()> {
      return [result = known->result(), take] {
        if (result) take(result);
      };
    });
  }
  /// What was handed over stays.
  void cancel();
  /// Once per frame: takes the next slice. JobRunner::stop() cancels the sweep, too.
  void frame();

  Phase phase() const { return phase_; }
  bool running() const { return phase_ == Phase::running; }
  int done() const { return done_; }
  int total() const { return total_; }
  double share() const { return share_; }
  double seconds() const { return seconds_; }          ///< of the worker's time, in this sweep since it was started
  double seconds_left() const;                         ///< NaN until there is something to go by
  const std::string& error() const { return error_; }  ///< of a failed sweep

 private:
  using Snapshot = std::function<std::function<void()>()>;
  void begin(std::shared_ptr<Sweep> sweep, Snapshot snapshot);
  void submit();
  void forget();

  JobRunner& jobs_;
  JobName job_;
  Phase phase_ = Phase::idle;
  std::shared_ptr<Sweep> sweep_;
  std::shared_ptr<Backend> backend_;  // that computed when it began: whose form its model has
  Snapshot snapshot_;
  bool in_flight_ = false;
  int done_ = 0, total_ = 0;
  double share_ = 0, seconds_ = 0;
  std::uint64_t stops_ = 0;  // of the runner, when the sweep began
  std::string error_;
};

}  // namespace headscope
