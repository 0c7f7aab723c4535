#include "core/base/interrupts.h"

#include <pthread.h>
#include <unistd.h>

#include <system_error>

#include "core/base/error.h"

namespace headscope {

namespace {
constexpr int leave = SIGUSR2;
}

Interrupts::Interrupts(std::function<void()> on_signal) : on_signal_(std::move(on_signal)) {
  sigemptyset(&signals_);
  for (const int signal : {SIGINT, SIGTERM, leave}) sigaddset(&signals_, signal);
  struct sigaction hang_up {};
  // A blocked signal is kept even where it is ignored, so nohup's wish has to be asked for.
  if (sigaction(SIGHUP, nullptr, &hang_up) == 0 && hang_up.sa_handler != SIG_IGN) sigaddset(&signals_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  try {
    thread_ = std::thread([this] { wait(); });
  } catch (const std::system_error& refused) {
    throw Error("threads", "one more, that waits for Ctrl-C", refused.code().message(),
                "ulimit -u says how many processes there may be, ulimit -v how much memory");
  }
}

Interrupts::~Interrupts() {
  pthread_kill(thread_.native_handle(), leave);
  thread_.join();
}

void Interrupts::wait() {
  std::chrono::steady_clock::time_point first;
  for (;;) {
    int signal = 0;
    if (sigwait(&signals_, &signal) != 0) continue;
    if (signal == leave) return;
    const auto now = std::chrono::steady_clock::now();
    if (stop_.stop_requested()) {
      if (now - first > same_wish) _exit(interrupted_exit_code);
      continue;
    }
    first = now;
    stop_.request_stop();
    if (on_signal_) on_signal_();
  }
}

}  // namespace headscope
