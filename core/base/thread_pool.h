#pragma once
// The one thread pool of the process. The caller works too; idle workers spin briefly, then block, because the window
// and the operating system want the same few cores (tests/bench shows what endless spinning costs a competing thread).

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
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

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls body(task, thread) for every task in [0, tasks), handing tasks out one at a time to whichever thread is free.
  /// `thread` is in [0, threads()). Returns when all are done. The first exception thrown by a body is rethrown here.
  /// One caller at a time (others wait); a call from inside a body runs inline on that thread.
  template <class Body>
  void parallel(int tasks, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(tasks, [](void* context, int task, int thread) { (*static_cast<Plain*>(context))(task, thread); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void*, int, int);
  void run(int tasks, Call call, void* context);
  void worker(int thread);
  void drain(int thread);

  std::vector<std::jthread> workers_;
  std::mutex caller_;                      // serialises callers of run()
  std::atomic<std::uint64_t> generation_{0};  // bumped when a job is published; workers wait on it
  std::atomic<bool> quit_{false};
  std::atomic<int> sleepers_{0};
  Call call_ = nullptr;
  void* context_ = nullptr;
  int tasks_ = 0;
  std::atomic<int> next_{0};
  std::atomic<int> busy_{0};               // workers that have not finished the current generation
  std::mutex failure_lock_;
  std::exception_ptr failure_;
};

}  // namespace headscope
