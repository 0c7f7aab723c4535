#include "app/assets.h"

#include <cstdlib>

#ifdef __APPLE__
#include <mach-o/dyld.h>

#include <array>
#endif

namespace headscope {

namespace fs = std::filesystem;

namespace {
fs::path program_folder() {
  std::error_code failed;
#ifdef __APPLE__
  std::array<char, 4096> buffer{};
  auto size = static_cast<std::uint32_t>(buffer.size());
  if (_NSGetExecutablePath(buffer.data(), &size) != 0) return {};
  const fs::path program = fs::canonical(buffer.data(), failed);
#else
  const fs::path program = fs::read_symlink("/proc/self/exe", failed);
#endif
  return failed ? fs::path() : program.parent_path();
}
}  // namespace

std::vector<fs::path> asset_folders() {
  std::vector<fs::path> folders;
  if (const char* chosen = std::getenv("HEADSCOPE_ASSETS"); chosen && *chosen) folders.emplace_back(chosen);
  const fs::path program = program_folder();
  if (program.empty()) return folders;
  folders.push_back((program / HEADSCOPE_DATA_FROM_BIN).lexically_normal());
  for (fs::path above = program; above.has_relative_path(); above = above.parent_path())
    folders.push_back(above / "assets");
  return folders;
}

std::optional<fs::path> find_asset(std::string_view name) {
  for (const fs::path& folder : asset_folders()) {
    std::error_code ignored;
    if (fs::exists(folder / name, ignored)) return folder / name;
  }
  return std::nullopt;
}

std::optional<fs::path> find_program(std::string_view name) {
  const fs::path folder = program_folder();
  if (folder.empty()) return std::nullopt;
  for (const fs::path& place : {folder / name, folder / "window" / name})  // the latter in a build folder
    if (std::error_code ignored; fs::is_regular_file(place, ignored)) return place;
  return std::nullopt;
}

std::optional<fs::path> find_bundled_model(std::string_view name) {
  for (const char* place : {"models", "../models", "examples"})
    if (const auto found = find_asset((fs::path(place) / name).string()))
      if (std::error_code ignored; fs::exists(*found / "config.json", ignored)) return found->lexically_normal();
  return std::nullopt;
}

}  // namespace headscope
