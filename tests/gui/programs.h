#pragma once
// The programs of this build, run through a shell.

#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "core/base/file.h"
#include "tests/support/paths.h"

namespace headscope::testing {

struct Ended {
  int code = -1;     ///< −1 when a signal ended it
  std::string said;  ///< on both streams
};
enum class Display { present, none };

/// `program` as it lies below app/ in the build folder: "headscope-cli", "window/headscope".
inline Ended run_program(const std::string& program, const std::string& arguments, Display display = Display::present) {
  namespace fs = std::filesystem;
  const fs::path said = scratch_dir("program-said") / "said.txt";
  const fs::path path = fs::read_symlink("/proc/self/exe").parent_path() / "../../app" / program;
  const std::string hidden = display == Display::none ? "env -u DISPLAY -u WAYLAND_DISPLAY " : "";
  const int status =
      std::system((hidden + "'" + path.string() + "' " + arguments + " > '" + said.string() + "' 2>&1").c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(said)};
}

}  // namespace headscope::testing
