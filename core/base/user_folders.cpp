#include "core/base/user_folders.h"

#include <cstdlib>

namespace headscope {

namespace fs = std::filesystem;

fs::path state_folder() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state == '/') return fs::path(state) / "headscope";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / ".local/state/headscope";
  return {};
}

}  // namespace headscope
