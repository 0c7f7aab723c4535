#pragma once
// One worker thread that runs tagged jobs. A newer job with the same tag replaces the queued one and stops the running
// one without waiting. Results come back through a queue that the owner drains on its own thread (once per frame in the
// window), so user code never locks. After RenderDoc's replay manager and HDRView's swap of immutable results.

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

namespace headscope {

class Worker {
 public:
  /// What a job sees of the world. The job checks `stop` often and writes `progress` in 0…1.
  struct Job {
    std::stop_token stop;
    std::atomic<float>& progress;
  };
  using Deliver = std::function<void()>;      ///< run on the owner's thread by drain()
  using Work = std::function<Deliver(Job&)>;  ///< run on the worker; returns what to do with the result
  using Failed = std::function<void(const std::string& message)>;

  /// `wake` is called on the worker thread whenever a job has ended, because drain() may have something to do and
  /// status() has changed (glfwPostEmptyEvent in the window). It must not throw.
  explicit Worker(std::function<void()> wake = {});
  ~Worker();  ///< stops the running job, drops the queue, joins

  /// Queues `work`; returns its id (ids rise). A queued job with this tag is replaced in its place, a running one is
  /// asked to stop and its result is dropped, also when it is finished but not drained yet: the newest wins. `failed`
  /// runs on the owner's thread with the error text; a cancelled or replaced job reports nothing. Any thread may call.
  std::uint64_t submit(std::string tag, Work work, Failed failed);
  /// Drops the queued job, stops the running job and drops the waiting result of this tag.
  void cancel(const std::string& tag);
  /// Runs the deliveries that are ready, on the calling thread. Returns how many ran.
  int drain();

  struct Status {
    std::string tag;  ///< of the running job; "" when idle
    float progress = 0;
    double seconds = 0;  ///< since the running job started
    int queued = 0;
    int undelivered = 0;  ///< results that wait for drain()
  };
  Status status() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace headscope
