#include "app/state/trial_controller.h"

#include <chrono>
#include <utility>

#include "core/base/duration.h"
#include "core/base/error.h"
#include "core/base/words.h"

namespace headscope {

namespace {
// As training's slices: long enough that a frame between two costs little.
constexpr double trial_slice_seconds = 0.1;
constexpr const char* trial_tag = "trial";
}  // namespace

/// What only jobs touch, one after another on the worker.
struct TrialController::Run {
  TrialPlan plan;
  std::shared_ptr<Backend> backend;
  std::unique_ptr<Trial> trial;
};

TrialController::~TrialController() {
  jobs_.forget(trial_tag);
}

const TrialController::View& TrialController::view(const std::string& plan) const {
  static const View nothing;
  const auto found = known_.find(plan);
  return found == known_.end() ? nothing : found->second.view;
}

void TrialController::start(const TrialPlan& plan) {
  stop();
  Known& known = known_[plan.id];
  if (!known.run || known.view.phase == Phase::finished) {
    known = {};
    known.run = std::make_shared<Run>();
    known.run->plan = plan;
    known.run->backend = jobs_.processor();  // recurrences are written for it
  }
  known.view.phase = Phase::running;
  running_ = plan.id;
  stops_ = jobs_.stops();
}

void TrialController::stop() {
  if (running_.empty()) return;
  jobs_.forget(trial_tag);
  in_flight_ = false;
  known_[std::exchange(running_, "")].view.phase = Phase::stopped;
}

void TrialController::frame() {
  if (running_.empty()) return;
  if (jobs_.stops() != stops_) return stop();
  if (!in_flight_) submit(running_);
}

void TrialController::submit(const std::string& plan) {
  in_flight_ = true;
  jobs_.submit(
      {trial_tag, to_say("training side by side")},
      [this, plan, run = known_[plan].run](Worker::Job& job) -> Worker::Deliver {
        if (!run->trial) run->trial = std::make_unique<Trial>(run->plan, *run->backend);
        const auto start = std::chrono::steady_clock::now();
        try {
          while (!run->trial->finished() && seconds_since(start) < trial_slice_seconds) run->trial->run(1, job.stop);
        } catch (const Cancelled&) {  // it goes on from here
        }
        View now{run->trial->finished() ? Phase::finished : Phase::running, run->trial->standings(),
                 run->trial->share_done()};
        return [this, plan, run, now = std::move(now)] {
          Known& known = known_[plan];
          if (known.run != run) return;
          const bool goes_on = running_ == plan;
          const Phase phase = known.view.phase;
          known.view = now;
          if (goes_on) in_flight_ = false;
          if (goes_on && now.phase == Phase::finished) running_.clear();
          if (!goes_on && now.phase != Phase::finished) known.view.phase = phase;
        };
      },
      JobRunner::OnStop::own,
      [this, plan] {
        if (running_ == plan) stop();
      },
      known_[plan].run->backend);
}

}  // namespace headscope
