#pragma once
// The one thread pool of the process. The caller works too; idle workers spin briefly, then block, because the window
// and the operating system want the same few cores (tests/bench shows what endless spinning costs a competing thread).

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <type_traits>
#include <vector>

namespace headscope {

class ThreadPool {
 public:
  /// `threads` counts the caller; 0 = one per hardware thread.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// While this lives, its thread's calls of parallel() end early when `stop` is asked for: tasks not begun are left
  /// out, and Cancelled is thrown. For work whose halves nobody keeps. `stop` must outlive this.
  class Stopping {
   public:
    explicit Stopping(const std::stop_token& stop);
    ~Stopping();
    Stopping(const Stopping&) = delete;
    Stopping& operator=(const Stopping&) = delete;

   private:
    const std::stop_token* before_;
  };

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(task, thread) for every task in [0, tasks). Each thread first takes tasks of its own share, in order
  /// (thread 0 the first ones), then of whoever is behind: so ops that split the same rows find them in the cache of
  /// the core that made them, and a thread that was held up is not waited for. `thread` is in [0, threads()). Returns
  /// when all are done. The first exception thrown by a body is rethrown here. One caller at a time (others wait); a
  /// call from inside a body runs inline on that thread.
  template <class Body>
  void parallel(int tasks, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(
        tasks, [](void* context, int task, int thread) { (*static_cast<Plain*>(context))(task, thread); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void*, int, int);
  void run(int tasks, Call call, void* context);
  void work(std::stop_token stop, int thread);
  void drain(int thread);

  std::mutex caller_;  // serialises callers of run()
  // The published job. Written only while no worker is inside (active_ == 0) and the job is closed.
  Call call_ = nullptr;
  void* context_ = nullptr;
  const std::stop_token* stop_ = nullptr;  // of the caller's Stopping
  /// Tasks [next, end) of one thread's share; alone on its cache line.
  struct alignas(64) Share {
    std::atomic<int> next{0};
    int end = 0;
  };
  std::vector<Share> shares_;                 // one per thread
  std::atomic<bool> open_{false};             // workers may still enter the job
  std::atomic<int> active_{0};                // workers inside the job
  std::atomic<std::uint32_t> generation_{0};  // bumped by every publication; what idle workers wait on
  std::mutex failure_lock_;
  std::exception_ptr failure_;
  std::vector<std::jthread> workers_;  // last: joined before anything above is destroyed
};

}  // namespace headscope
