#include "tests/support/paths.h"

#include <unistd.h>

namespace headscope::testing {

namespace fs = std::filesystem;

fs::path source_dir() {
  return HEADSCOPE_SOURCE_DIR;
}

std::optional<fs::path> shared_reference(const std::string& name) {
  const fs::path path = source_dir() / ".." / "shared" / "reference" / name;
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  return fs::canonical(path);
}

namespace {
struct Scratch {
  fs::path root = fs::temp_directory_path() / ("headscope-tests-" + std::to_string(getpid()));
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(root, ignored);
  }
};
}  // namespace

fs::path scratch_dir(const std::string& name) {
  static Scratch scratch;
  const fs::path path = scratch.root / name;
  fs::remove_all(path);
  fs::create_directories(path);
  return path;
}

}  // namespace headscope::testing
