#include "app/cli/shell.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <thread>

#include "core/base/error.h"
#include "core/cuda/cuda_backend.h"

namespace headscope::cli {

/// Signals as a stop token, without a handler: they are blocked in every thread (threads started later inherit that)
/// and one thread waits for them.
class Shell::Interrupts {
 public:
  Interrupts() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, leave}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
    thread_ = std::thread([this] { wait(); });
  }
  ~Interrupts() {
    pthread_kill(thread_.native_handle(), leave);
    thread_.join();
  }
  std::stop_token token() const { return stop_.get_token(); }

 private:
  static constexpr int leave = SIGUSR2;

  void wait() {
    for (;;) {
      int signal = 0;
      if (sigwait(&signals_, &signal) != 0) continue;
      if (signal == leave) return;
      if (stop_.stop_requested()) _exit(exit_interrupted);
      stop_.request_stop();
    }
  }

  sigset_t signals_;
  std::stop_source stop_;
  std::thread thread_;
};

Shell::Shell() = default;
Shell::~Shell() = default;

void Shell::print(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

void Shell::print_line(std::string_view text) {
  print(text);
  print("\n");
}

void Shell::flush() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout))
    throw Error("standard output", "room for all of the result", std::strerror(errno));
}

void Shell::say(std::string_view text) {
  fmt::print(stderr, "{}\n", text);
}

std::stop_token Shell::stop() {
  if (!interrupts_) interrupts_ = std::make_unique<Interrupts>();
  return interrupts_->token();
}

Backend& Shell::backend() {
  stop();  // before the pool starts its threads, which then leave the signals to the thread that waits for them
  if (!backend_) backend_ = cuda ? make_cuda_backend(threads) : std::make_unique<Backend>(threads);
  return *backend_;
}

void Shell::with_progress(std::string_view what, const std::function<void(const Ctx&)>& work) {
  std::atomic<float> progress{0};
  const Ctx ctx{backend(), nullptr, stop(), &progress};
  if (!isatty(STDERR_FILENO)) return work(ctx);

  // Short work shows nothing: a line that flashes up tells nobody anything.
  constexpr auto before_first = std::chrono::milliseconds(400), between = std::chrono::milliseconds(100);
  std::mutex lock;
  std::condition_variable_any ended;
  std::jthread shows([&](std::stop_token stop) {
    std::unique_lock hold(lock);
    bool shown = false;
    while (!ended.wait_for(hold, stop, shown ? between : before_first, [] { return false; }) &&
           !stop.stop_requested()) {
      const int percent = static_cast<int>(progress.load() * 100);
      fmt::print(stderr, "\r{} {:3d} % ", what, percent < 0 ? 0 : percent > 100 ? 100 : percent);
      std::fflush(stderr);
      shown = true;
    }
    if (shown) fmt::print(stderr, "\r\033[K");
  });
  work(ctx);
}

}  // namespace headscope::cli
