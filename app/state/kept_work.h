#pragma once
// Work that no session file holds and that is worth keeping for the next start. Thread rule: the UI thread.

#include <filesystem>
#include <string>

namespace headscope {

class KeptWork {
 public:
  virtual ~KeptWork() = default;
  /// In words; "" = nothing would be lost.
  virtual std::string unsaved() const = 0;
  /// Writes it beside the UI thread; keeping() until it is on the disk.
  virtual void keep(const std::filesystem::path& file) = 0;
  virtual bool keeping() const = 0;
  /// Why the last keep() that ended left nothing on the disk; "" = it did.
  virtual std::string not_kept() const = 0;
  virtual void take_up(const std::filesystem::path& file) = 0;
};

}  // namespace headscope
