#pragma once
// Runs the real command line and reads what it says.

#include <functional>
#include <string>
#include <vector>

namespace headscope::testing {

struct Finished {
  int code = -1;  ///< exit code; −signal when a signal ended it
  std::string out, err;
  /// The first line of standard error.
  std::string first_error() const { return err.substr(0, err.find('\n')); }
};

/// Where a standard stream of the program leads: to the test; to a full disk; nowhere, it is closed; to the test, which
/// goes away after the first line (`| head -1`).
enum class Stream { read, full, closed, one_line };

struct ProcessOptions {
  std::string input = "";  ///< for standard input
  bool interrupt = false;  ///< send SIGINT after the first line on standard error
  int signal = 2;          ///< … or another
  int next_signal = 0;     ///< … and this one right behind it; 0 = none
  Stream out = Stream::read, err = Stream::read;
  double kill_after = 0;                   ///< seconds after which SIGKILL ends it; 0 = never
  std::function<void()> kill_behind = {};  ///< SIGKILL ends it when this returns
  long file_limit = 0;                     ///< most bytes of a file that it may write; 0 = any
  std::string folder = "";                 ///< to run in; "" = the present one
};

/// headscope-cli with these arguments, passed as they are (no shell).
Finished run_cli(const std::vector<std::string>& arguments, const ProcessOptions& options = {});

}  // namespace headscope::testing
