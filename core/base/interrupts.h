#pragma once
// Signals that ask a process to end, as a stop token.

#include <signal.h>

#include <functional>
#include <stop_token>
#include <thread>

namespace headscope {

/// What a process that was interrupted ends with, as a shell would say it of Ctrl-C.
inline constexpr int interrupted_exit_code = 130;

/// While it lives, SIGINT, SIGTERM and SIGHUP (unless nohup has it ignored) ask for a stop rather than end the process;
/// a second one ends it at once. No handler is involved: the signals are blocked in this thread and in all that it
/// starts later, and one thread waits for them. Make it before other threads. One at a time in a process.
class Interrupts {
 public:
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
