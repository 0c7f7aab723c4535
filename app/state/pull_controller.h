#pragma once
// One model that is fetched beside everything else, on the user's word alone. Thread rule: the UI thread.

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "app/state/job_runner.h"
#include "core/hub/pull.h"

namespace headscope {

class PullController {
 public:
  enum class State { idle, under_way, done, failed, stopped };

  /// Nothing while one is under way.
  void start(JobRunner& jobs, const HubSettings& settings, const PullRequest& request);
  /// What has come stays in the cache, and the next start() goes on from there.
  void stop(JobRunner& jobs);
  /// As if nothing had been asked for; not while one is under way.
  void clear();

  State state() const { return shared_->state; }
  const PullRequest& request() const { return shared_->request; }
  PullProgress progress() const;
  /// "3 of 7 · 231 MB of 548 MB · 12 MB/s · 26 s left"
  std::string progress_text() const;
  /// Of one that failed; its hint stands on a line of its own.
  const std::string& error() const { return shared_->error; }
  /// What came, once.
  std::optional<Pulled> take_done() { return std::exchange(shared_->pulled, std::nullopt); }

 private:
  struct Shared {  // with the job, which may outlive this
    State state = State::idle;
    PullRequest request;
    std::string error;
    std::optional<Pulled> pulled;
    std::mutex lock;  // of what follows, which the job writes
    PullProgress progress;
  };
  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace headscope
