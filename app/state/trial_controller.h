#pragma once
// A trial without its window: small models that learn side by side on the worker, a slice of a few steps at a time, so
// that everything else stays responsive. One at a time; a trial that was stopped goes on where it stood. Thread rule:
// the UI thread.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/state/job_runner.h"
#include "core/train/trial.h"

namespace headscope {

class TrialController {
 public:
  enum class Phase { idle, running, stopped, finished };
  /// What is known of a trial.
  struct View {
    Phase phase = Phase::idle;
    std::vector<TrialStanding> standings;
    double done = 0;  ///< share, 0 … 1
  };

  explicit TrialController(JobRunner& jobs) : jobs_(jobs) {}
  ~TrialController();

  /// Once per frame, after JobRunner::frame(): lets the trial go on.
  void frame();
  /// Begins a plan, or goes on with it; another that runs is stopped. A finished one begins anew.
  void start(const TrialPlan& plan);
  void stop();
  /// Of a plan, by its id.
  const View& view(const std::string& plan) const;

 private:
  struct Run;
  struct Known {
    std::shared_ptr<Run> run;
    View view;
  };
  void submit(const std::string& plan);

  JobRunner& jobs_;
  std::map<std::string, Known> known_;
  std::string running_;  // a plan's id; "" = none
  bool in_flight_ = false;
  std::uint64_t stops_ = 0;  // of the runner
};

}  // namespace headscope
