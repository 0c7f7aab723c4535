#pragma once
// Signals that ask a process to end, as a stop token.

#include <signal.h>

#include <chrono>
#include <functional>
#include <stop_token>
#include <thread>

namespace headscope {

/// What a process that was interrupted ends with, as a shell would say it of Ctrl-C.
inline constexpr int interrupted_exit_code = 130;

/// While it lives, SIGINT, SIGTERM and SIGHUP (unless nohup has it ignored) ask for a stop rather than end the process;
/// one that comes more than `same_wish` after the first ends it at once. What comes before is the same wish: a session
/// that ends sends SIGTERM and SIGHUP in one breath, a terminal that is closed SIGHUP twice, timeout(1) SIGTERM twice,
/// and what is being kept meanwhile must not be lost to that. No handler is involved: the signals are blocked in this
/// thread and in all that it starts later, and one thread waits for them. Make it before other threads. One at a time
/// in a process.
class Interrupts {
 public:
  static constexpr std::chrono::milliseconds same_wish{1000};

  /// `on_signal`: called once, on the waiting thread, after the stop was asked for.
  explicit Interrupts(std::function<void()> on_signal = {});
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;

  std::stop_token token() const { return stop_.get_token(); }

 private:
  void wait();

  sigset_t signals_;
  std::function<void()> on_signal_;
  std::stop_source stop_;
  std::thread thread_;
};

}  // namespace headscope
