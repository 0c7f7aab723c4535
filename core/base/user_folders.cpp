#include "core/base/user_folders.h"

#include <cstdlib>

namespace headscope {

namespace fs = std::filesystem;

namespace {
fs::path folder(const char* variable, const char* usual) {
  if (const char* named = std::getenv(variable); named && *named == '/') return fs::path(named) / "headscope";
  if (const char* home = std::getenv("HOME"); home && *home) return fs::path(home) / usual / "headscope";
  return {};
}
}  // namespace

fs::path state_folder() {
  return folder("XDG_STATE_HOME", ".local/state");
}

fs::path data_folder() {
  return folder("XDG_DATA_HOME", ".local/share");
}

}  // namespace headscope
