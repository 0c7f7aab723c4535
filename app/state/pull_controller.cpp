#include "app/state/pull_controller.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <new>
#include <utility>
#include <vector>

#include "core/base/duration.h"
#include "core/base/error.h"
#include "core/base/memory.h"
#include "core/base/words.h"

namespace headscope {

namespace {
constexpr const char* tag = "pull";
}

void PullController::start(JobRunner& jobs, const HubSettings& settings, const PullRequest& request) {
  if (state() == State::under_way) return;
  shared_ = std::make_shared<Shared>();
  shared_->state = State::under_way;
  shared_->request = request;
  jobs.on_network(tag, [shared = shared_, settings, request](Worker::Job& job) -> Worker::Deliver {
    PullOptions options;
    options.progress = [&](const PullProgress& at) {
      const std::lock_guard hold(shared->lock);
      shared->progress = at;
    };
    std::optional<Pulled> pulled;
    std::string error;
    try {
      pulled = pull(settings, request, options, job.stop);
    } catch (const Cancelled&) {
      throw;
    } catch (const std::bad_alloc&) {
      error = "out of memory";
    } catch (const std::exception& failed) {
      error = failed.what();
    }
    return [shared, pulled, error] {
      shared->state = pulled ? State::done : State::failed;
      shared->pulled = pulled;
      shared->error = error;
    };
  });
}

void PullController::stop(JobRunner& jobs) {
  if (state() != State::under_way) return;
  jobs.stop_network(tag);
  shared_->state = State::stopped;
}

void PullController::clear() {
  if (state() != State::under_way) shared_ = std::make_shared<Shared>();
}

PullProgress PullController::progress() const {
  const std::lock_guard hold(shared_->lock);
  return shared_->progress;
}

std::string PullController::progress_text() const {
  const PullProgress at = progress();
  if (at.phase == PullProgress::Phase::waiting) return at.remark;
  if (at.number == 0) return said("asking for its files");
  std::vector<std::string> parts{say("file {} of {}", at.number, at.of)};
  if (at.phase == PullProgress::Phase::checking) parts.emplace_back(said("checking"));
  parts.push_back(at.total > 0 ? say("{} of {}", memory_text(static_cast<double>(at.done)),
                                     memory_text(static_cast<double>(at.total)))
                               : memory_text(static_cast<double>(at.done)));
  if (at.phase == PullProgress::Phase::fetching && at.rate > 0) {
    parts.push_back(memory_text(at.rate) + "/s");
    if (at.total > at.done)
      parts.push_back(say("{} left", duration_text(static_cast<double>(at.total - at.done) / at.rate)));
  }
  return fmt::format("{}", fmt::join(parts, " · "));
}

}  // namespace headscope
