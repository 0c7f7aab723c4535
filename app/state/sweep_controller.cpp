#include "app/state/sweep_controller.h"

#include <fmt/format.h>

#include <chrono>
#include <limits>
#include <new>
#include <utility>

#include "core/base/duration.h"
#include "core/base/error.h"
#include "core/base/words.h"
#include "core/tensor/backend.h"

namespace headscope {

namespace {
using Clock = std::chrono::steady_clock;
constexpr double sweep_slice_seconds = 0.05;

}  // namespace

SweepController::SweepController(JobRunner& jobs, const std::string& name, std::string words)
    : jobs_(jobs), job_{"sweep " + name, std::move(words)} {}

SweepController::~SweepController() {
  forget();
}

void SweepController::forget() {
  jobs_.forget(job_.tag);
  in_flight_ = false;
  sweep_.reset();
  backend_.reset();
  snapshot_ = nullptr;
}

void SweepController::begin(std::shared_ptr<Sweep> sweep, Snapshot snapshot) {
  forget();
  sweep_ = std::move(sweep);
  snapshot_ = std::move(snapshot);
  backend_ = jobs_.backend();
  phase_ = Phase::running;
  done_ = total_ = 0;
  share_ = seconds_ = 0;
  error_.clear();
  stops_ = jobs_.stops();
  submit();
}

void SweepController::cancel() {
  if (phase_ != Phase::running) return;
  forget();
  phase_ = Phase::cancelled;
}

double SweepController::seconds_left() const {
  if (share_ <= 0) return std::numeric_limits<double>::quiet_NaN();
  return seconds_ * (1 - share_) / share_;
}

void SweepController::frame() {
  if (phase_ != Phase::running) return;
  if (jobs_.stops() != stops_) return cancel();
  if (!in_flight_) submit();
}

void SweepController::submit() {
  in_flight_ = true;
  jobs_.submit(
      job_,
      [this, sweep = sweep_, snapshot = snapshot_, backend = backend_](Worker::Job& job) -> Worker::Deliver {
        const auto start = Clock::now();
        std::string failure;
        try {
          do {
            sweep->step(Ctx{*backend, nullptr, job.stop});
            job.progress = static_cast<float>(sweep->share());
          } while (!sweep->finished() && seconds_since(start) < sweep_slice_seconds);
        } catch (const Error& error) {
          failure = error.what();
        } catch (const std::bad_alloc&) {
          failure = "out of memory";
        }
        return [this, sweep, failure, show = snapshot(), seconds = seconds_since(start), done = sweep->done(),
                total = sweep->total(), share = sweep->share(), finished = sweep->finished()] {
          if (sweep != sweep_) return;
          in_flight_ = false;
          done_ = done, total_ = total, share_ = share;
          seconds_ += seconds;
          show();
          if (failure.empty() && !finished) return;
          error_ = failure;
          phase_ = failure.empty() ? Phase::finished : Phase::failed;
          forget();  // its model, which may stand on a device that is wanted no more
        };
      },
      JobRunner::OnStop::again,
      [this, sweep = sweep_] {
        if (sweep != sweep_) return;
        const std::string what = backend_ == jobs_.backend() ? said("It failed.") : said("The card failed.");
        error_ = jobs_.device().cuda
                     ? say("{} What was found stays; started again, the sweep begins anew.", what)
                     : say("{} What was found stays; started again, the sweep begins anew, on the processor.", what);
        phase_ = Phase::failed;
        forget();
      },
      backend_);
}

}  // namespace headscope
