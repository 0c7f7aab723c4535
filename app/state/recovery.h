#pragma once
// Work that is in no file of the user's yet, kept on the disk for the next start: each running program has a folder of
// its own, `root/PROCESS-…`, and a lock in it. A folder whose process is gone is what a crash, a signal or a wish at
// quitting left. Thread rule: the UI thread; the files themselves may be written on any.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "core/base/file_lock.h"

namespace headscope {

class Recovery {
 public:
  /// Makes the folder of this process. Throws Error when that is impossible.
  explicit Recovery(const std::filesystem::path& root);
  /// Removes it, unless leave() was called or the process dies before.
  ~Recovery();
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;

  std::filesystem::path session() const { return folder_ / session_name; }
  std::filesystem::path training() const { return folder_ / training_name; }
  /// What the files hold, in words, for whoever is offered them; "" = nothing, and all of them go. Throws Error.
  void describe(const std::string& words);
  /// The next start shall be offered what is here.
  void leave(bool wanted = true) { left_ = wanted; }

  /// What a process that is gone left last. Nobody else is offered it while it is held here.
  struct Offer {
    std::string words;
    std::filesystem::file_time_type when;
    bool session = false, training = false;
  };
  /// nullptr = there is none (any more).
  const Offer* offer() const { return offer_ ? &offer_->what : nullptr; }
  /// Moves the files of the offer among those of this process.
  void take_up();
  /// Removes them; the next older offer takes its place.
  void discard();
  /// Another start shall ask.
  void put_off() { offer_.reset(); }

  static constexpr const char* session_name = "session.json";
  static constexpr const char* training_name = "training.safetensors";

 private:
  struct Found {
    std::filesystem::path folder;
    std::unique_ptr<FileLock> lock;
    Offer what;
  };
  void find_offer();

  std::filesystem::path root_, folder_;
  std::unique_ptr<FileLock> lock_;
  std::optional<Found> offer_;
  bool left_ = false;
};

}  // namespace headscope
