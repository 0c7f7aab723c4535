#include "core/run/worker.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <list>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "core/base/error.h"

namespace headscope {

namespace {
using Clock = std::chrono::steady_clock;

struct Queued {
  std::uint64_t id = 0;
  std::string tag;
  Worker::Work work;
  Worker::Failed failed;
};

struct Ready {
  std::uint64_t id = 0;
  std::string tag;
  Worker::Deliver deliver;
};
}  // namespace

// Closures of jobs and deliveries own models and traces. They are always destroyed outside the lock, because freeing
// one can take long or call back into the worker.
struct Worker::State {
  mutable std::mutex lock;
  std::condition_variable changed;
  bool quit = false;
  std::uint64_t last_id = 0;
  std::list<Queued> queue;
  std::deque<Ready> ready;

  std::uint64_t running = 0;  // id, 0 = idle
  std::string running_tag;
  Clock::time_point started;
  std::stop_source stop;  // of the running job; asked to stop = its result is dropped
  std::atomic<float> progress{0};

  std::function<void()> wake;
  std::jthread thread;  // declared last: it is joined before anything it uses goes away

  void loop();
  Deliver perform(Queued& job, std::stop_token token);
  /// Under the lock: moves what this tag has made but nobody has drained to `dropped`, and stops its running job.
  void retire(const std::string& tag, std::deque<Ready>& dropped);
};

void Worker::State::retire(const std::string& tag, std::deque<Ready>& dropped) {
  if (running != 0 && running_tag == tag) stop.request_stop();
  std::deque<Ready> kept;
  for (Ready& item : ready) (item.tag == tag ? dropped : kept).push_back(std::move(item));
  ready.swap(kept);
}

Worker::Deliver Worker::State::perform(Queued& job, std::stop_token token) {
  std::string message;
  try {
    Job view{std::move(token), progress};
    return job.work(view);
  } catch (const Cancelled&) {
    return {};
  } catch (const std::bad_alloc&) {
    message = "out of memory";
  } catch (const std::exception& error) {
    message = error.what();
  } catch (...) {
    message = "a job ended with an exception of unknown type";
  }
  if (!job.failed) return {};
  return [failed = std::move(job.failed), message] { failed(message); };
}

void Worker::State::loop() {
  std::unique_lock hold(lock);
  for (;;) {
    changed.wait(hold, [this] { return quit || !queue.empty(); });
    if (quit) return;
    Queued job = std::move(queue.front());
    queue.pop_front();
    stop = std::stop_source();
    running = job.id;
    running_tag = job.tag;
    started = Clock::now();
    progress.store(0);
    const std::stop_token token = stop.get_token();
    hold.unlock();

    Deliver deliver = perform(job, token);
    job.work = nullptr;

    hold.lock();
    running = 0;
    running_tag.clear();
    if (deliver && !stop.stop_requested()) ready.push_back({job.id, std::move(job.tag), std::move(deliver)});
    hold.unlock();
    deliver = nullptr;
    if (wake) wake();
    hold.lock();
  }
}

Worker::Worker(std::function<void()> wake) : state_(std::make_unique<State>()) {
  state_->wake = std::move(wake);
  state_->thread = std::jthread([state = state_.get()] { state->loop(); });
}

Worker::~Worker() {
  {
    const std::lock_guard hold(state_->lock);
    state_->quit = true;
    state_->stop.request_stop();
  }
  state_->changed.notify_all();
  state_->thread.join();
}

std::uint64_t Worker::submit(std::string tag, Work work, Failed failed) {
  std::deque<Ready> dropped;
  Queued job{0, std::move(tag), std::move(work), std::move(failed)};
  std::uint64_t id = 0;
  {
    const std::lock_guard hold(state_->lock);
    id = job.id = ++state_->last_id;
    state_->retire(job.tag, dropped);
    auto same = state_->queue.begin();
    while (same != state_->queue.end() && same->tag != job.tag) ++same;
    // A replacement keeps the place of what it replaces, so that typing fast never pushes a job behind all others.
    if (same != state_->queue.end()) {
      std::swap(*same, job);
    } else {
      state_->queue.push_back(std::move(job));
    }
  }
  state_->changed.notify_one();
  return id;
}

void Worker::cancel(const std::string& tag) {
  std::deque<Ready> dropped;
  std::list<Queued> removed;
  const std::lock_guard hold(state_->lock);
  state_->retire(tag, dropped);
  for (auto it = state_->queue.begin(); it != state_->queue.end();) {
    const auto item = it++;
    if (item->tag == tag) removed.splice(removed.end(), state_->queue, item);
  }
}

int Worker::drain() {
  int ran = 0;
  std::uint64_t last = 0;
  std::unique_lock hold(state_->lock);
  for (const Ready& item : state_->ready) last = item.id > last ? item.id : last;
  // One at a time: a delivery may submit or cancel, which drops deliveries that wait behind it. What is submitted
  // meanwhile has a larger id and waits for the next call, so that this one always ends.
  while (!state_->ready.empty() && state_->ready.front().id <= last) {
    Deliver deliver = std::move(state_->ready.front().deliver);
    state_->ready.pop_front();
    hold.unlock();
    deliver();
    deliver = nullptr;
    ++ran;
    hold.lock();
  }
  return ran;
}

Worker::Status Worker::status() const {
  const std::lock_guard hold(state_->lock);
  Status status;
  status.queued = static_cast<int>(state_->queue.size());
  status.undelivered = static_cast<int>(state_->ready.size());
  if (state_->running != 0) {
    status.tag = state_->running_tag;
    status.progress = state_->progress.load();
    status.seconds = std::chrono::duration<double>(Clock::now() - state_->started).count();
  }
  return status;
}

}  // namespace headscope
