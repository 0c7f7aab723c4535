#include "core/base/user_folders.h"

#include <cstdlib>

namespace headscope {

namespace fs = std::filesystem;

namespace {
std::string home() {
  const char* const named = std::getenv("HOME");
  return named ? named : "";
}

fs::path folder(const char* variable, const char* usual) {
  if (const char* named = std::getenv(variable); named && *named == '/') return fs::path(named) / "headscope";
  if (const std::string own = home(); !own.empty()) return fs::path(own) / usual / "headscope";
  return {};
}
}  // namespace

fs::path state_folder() {
  return folder("XDG_STATE_HOME", ".local/state");
}

fs::path data_folder() {
  return folder("XDG_DATA_HOME", ".local/share");
}

std::string with_tilde(const fs::path& path) {
  const std::string text = path.string(), own = home();
  return !own.empty() && text.starts_with(own + "/") ? "~" + text.substr(own.size()) : text;
}

fs::path from_tilde(const std::string& text) {
  const std::string own = home();
  return !own.empty() && (text == "~" || text.starts_with("~/")) ? fs::path(own + text.substr(1)) : fs::path(text);
}

}  // namespace headscope
