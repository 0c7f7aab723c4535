#include "core/base/user_folders.h"

#include <pwd.h>
#include <unistd.h>

#include <cstdlib>
#include <vector>

namespace headscope {

namespace fs = std::filesystem;

fs::path home_folder() {
  if (const char* const named = std::getenv("HOME")) return named;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> room(std::size_t{1} << 14);
  if (getpwuid_r(getuid(), &entry, room.data(), room.size(), &found) != 0 || !found || !found->pw_dir) return {};
  return *found->pw_dir == '/' ? fs::path(found->pw_dir) : fs::path();
}

namespace {
fs::path named_or(const char* variable, const char* usual) {
  if (const char* named = std::getenv(variable); named && *named == '/') return named;
  const fs::path home = home_folder();
  return home.empty() ? home : home / usual;
}

fs::path own_folder(const char* variable, const char* usual) {
  const fs::path all = named_or(variable, usual);
  return all.empty() ? all : all / "headscope";
}
}  // namespace

fs::path config_home() {
  return named_or("XDG_CONFIG_HOME", ".config");
}

fs::path state_folder() {
  return own_folder("XDG_STATE_HOME", ".local/state");
}

fs::path data_folder() {
  return own_folder("XDG_DATA_HOME", ".local/share");
}

std::string with_tilde(const fs::path& path) {
  const std::string text = path.string(), own = home_folder().string();
  return !own.empty() && text.starts_with(own + "/") ? "~" + text.substr(own.size()) : text;
}

fs::path from_tilde(const std::string& text) {
  const std::string own = home_folder().string();
  return !own.empty() && (text == "~" || text.starts_with("~/")) ? fs::path(own + text.substr(1)) : fs::path(text);
}

}  // namespace headscope
