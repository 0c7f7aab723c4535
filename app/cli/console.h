#pragma once
// What every subcommand shares: data goes to standard output, messages and progress to standard error (write_error() of
// core/base/standard_streams.h, which never fails), Ctrl-C stops the work through a stop token. One Shell per process,
// made by main() and passed down.

#include <atomic>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/interrupts.h"
#include "core/cuda/device_choice.h"
#include "core/model/model.h"

namespace headscope::cli {

/// What a process of the command line ends with; README.md documents them.
enum ExitCode {
  exit_ok = 0,
  exit_error = 1,
  exit_usage = 2,
  exit_interrupted = interrupted_exit_code,
  exit_reader_gone = 141,  ///< as a shell says it of a program that SIGPIPE ended
};

/// Whoever read our standard output has seen enough: the end, without a word.
struct ReaderGone : std::runtime_error {
  ReaderGone() : std::runtime_error("the reader of standard output went away") {}
};

/// Another program did the work and has said itself what it ended with.
struct Ended : std::runtime_error {
  explicit Ended(int with) : std::runtime_error("another program ended"), code(with) {}
  int code;
};

class Console {
 public:
  Console();
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  // Read when the backend is first asked for.
  int threads = 0;             ///< 0 = one per hardware thread
  std::string device = "cpu";  ///< as parse_device() reads it
  std::string precision = "f32";
  Devices devices;

  std::vector<std::string> words;   ///< of the command line, those of the program and of the command
  std::vector<std::string> behind;  ///< those of `animate` that stand behind "--"
  bool plain_pictures = false;      ///< their files do not tell how they were made
  /// Carries out another command line; main() knows how.
  std::function<void(const std::vector<std::string>&)> obey;
  bool quiet = false;          ///< print() drops what it is given
  bool pictures_only = false;  ///< obey() refuses what is none of picture_commands (commands.h) …
  std::string_view but_for;    ///< … and not this one

  /// Buffered; flush() at the end sends the rest. All throw Error when standard output does not take it (a full disk),
  /// ReaderGone when it was a pipe that nobody reads any more.
  void print(std::string_view text);
  void print_line(std::string_view text = "");
  void flush();
  /// One line on standard error. Never fails.
  void say(std::string_view text);

  /// From the first call on, SIGINT, SIGTERM and SIGHUP ask the work to stop (one a second later ends the process at
  /// once). Before that, while options and input are read, they end the process as usual.
  std::stop_token stop();
  DeviceChoice device_choice() const;
  /// What has been computed with so far (Backend::name()); "" = nothing was.
  std::string computed_on() const;
  std::string weights;  ///< as those of the model are stored that ran last
  /// Where the chosen card cannot be used: the processor, which is said once.
  Backend& backend();
  /// Does the work; where a card fails under it before anything was printed, once more on the processor.
  void carry_out(const std::function<void()>& work);

  /// Runs `work` with a context whose progress is shown on standard error, when that is a terminal and the work takes
  /// long.
  void with_progress(std::string_view what, const std::function<void(const Ctx&)>& work);

 private:
  std::unique_ptr<Interrupts> interrupts_;
  std::unique_ptr<Backend> backend_;
  bool printed_ = false;
};

}  // namespace headscope::cli
