#pragma once
// A place for a picture that nobody keeps.

#include <stdlib.h>  // mkdtemp

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "core/base/error.h"

namespace headscope {

/// In a folder of its own, which nobody else can have made before or look into, and which goes with it.
class DraftFile {
 public:
  /// Throws Error where there is no room for one.
  explicit DraftFile(const std::string& ending) {
    std::string folder = (std::filesystem::temp_directory_path() / "headscope-XXXXXX").string();
    if (!mkdtemp(folder.data())) throw Error(folder, "a folder for a draft", std::strerror(errno));
    folder_ = folder;
    path_ = folder_ / ("draft" + ending);
  }
  ~DraftFile() {
    std::error_code gone;
    std::filesystem::remove_all(folder_, gone);
  }
  DraftFile(const DraftFile&) = delete;
  DraftFile& operator=(const DraftFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path folder_, path_;
};

}  // namespace headscope
