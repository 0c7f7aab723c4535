#include "core/base/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "core/base/error.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace headscope {
namespace {

// The pool whose body runs on this thread, and the thread's index there: a nested call runs inline under the same
// index.
thread_local const ThreadPool* inside_pool = nullptr;
thread_local int inside_thread = 0;
thread_local const std::stop_token* stop_of_calls = nullptr;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Long enough to bridge the gap between two ops of a pass, short enough that an idle program costs nothing.
constexpr auto spin_time = std::chrono::microseconds(40);

/// Spins until `done` holds or the spin time is over. Returns done().
template <class Done>
bool spin_until(Done done) {
  const auto begin = std::chrono::steady_clock::now();
  do {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      relax();
    }
  } while (std::chrono::steady_clock::now() - begin < spin_time);
  return done();
}

}  // namespace

ThreadPool::Stopping::Stopping(const std::stop_token& stop) : before_(std::exchange(stop_of_calls, &stop)) {}

ThreadPool::Stopping::~Stopping() {
  stop_of_calls = before_;
}

ThreadPool::ThreadPool(int threads) {
  if (threads <= 0) threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  try {
    for (int i = 1; i < threads; ++i)
      workers_.emplace_back([this, i](std::stop_token stop) { work(std::move(stop), i); });
  } catch (const std::exception&) {
    // A limit on processes or memory: those that there are do the work of all. (An exception that left the constructor
    // would wait for them for ever: they sleep until there is work.)
  }
  shares_ = std::vector<Share>(workers_.size() + 1);
}

ThreadPool::~ThreadPool() {
  for (std::jthread& worker : workers_) worker.request_stop();
  generation_.fetch_add(1);
  generation_.notify_all();
}

void ThreadPool::run(int tasks, Call call, void* context) {
  if (tasks <= 0) return;
  if (inside_pool == this) {
    for (int task = 0; task < tasks; ++task) call(context, task, inside_thread);
    return;
  }
  const std::lock_guard lock(caller_);
  call_ = call;
  context_ = context;
  stop_ = stop_of_calls;
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    const auto bound = [&](std::size_t share) {
      return static_cast<int>(share * static_cast<std::size_t>(tasks) / shares_.size());
    };
    shares_[i].next.store(bound(i));
    shares_[i].end = bound(i + 1);
  }
  const bool shared = tasks > 1 && !workers_.empty();
  if (shared) {
    open_.store(true);
    generation_.fetch_add(1);
    generation_.notify_all();
  }
  drain(0);
  if (shared) {
    // Sequentially consistent on both sides: a worker that raised active_ before this store is waited for, one that
    // raises it afterwards sees the job closed. A worker still asleep is not waited for.
    open_.store(false);
    if (!spin_until([this] { return active_.load() == 0; }))
      for (int count = active_.load(); count != 0; count = active_.load()) active_.wait(count);
  }
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::drain(int thread) {
  const ThreadPool* const outer_pool = std::exchange(inside_pool, this);
  const int outer_thread = std::exchange(inside_thread, thread);
  const std::size_t count = shares_.size();
  for (std::size_t i = 0; i < count; ++i) {
    Share& share = shares_[(static_cast<std::size_t>(thread) + i) % count];
    // Looking first keeps a share that is used up on the cores that read it.
    while (share.next.load() < share.end) {
      const int task = share.next.fetch_add(1);
      if (task >= share.end) break;
      try {
        if (stop_ && stop_->stop_requested()) throw Cancelled();
        call_(context_, task, thread);
      } catch (...) {
        const std::lock_guard lock(failure_lock_);
        if (!failure_) failure_ = std::current_exception();
        for (Share& any : shares_) any.next.store(any.end);  // what has not begun need not
      }
    }
  }
  inside_pool = outer_pool;
  inside_thread = outer_thread;
}

void ThreadPool::work(std::stop_token stop, int thread) {
  std::uint32_t seen = 0;
  while (!stop.stop_requested()) {
    if (!spin_until([&] { return generation_.load() != seen; })) generation_.wait(seen);
    seen = generation_.load();
    active_.fetch_add(1);
    if (open_.load()) drain(thread);
    if (active_.fetch_sub(1) == 1) active_.notify_all();
  }
}

}  // namespace headscope
