#pragma once
// Runs the real command line and reads what it says.

#include <string>
#include <vector>

namespace headscope::testing {

struct Finished {
  int code = -1;  ///< exit code; −signal when a signal ended it
  std::string out, err;
  /// The first line of standard error.
  std::string first_error() const { return err.substr(0, err.find('\n')); }
};

struct ProcessOptions {
  std::string input = "";   ///< for standard input
  bool interrupt = false;   ///< send SIGINT after the first line on standard error
  std::string folder = "";  ///< to run in; "" = the present one
};

/// headscope-cli with these arguments, passed as they are (no shell).
Finished run_cli(const std::vector<std::string>& arguments, const ProcessOptions& options = {});

}  // namespace headscope::testing
