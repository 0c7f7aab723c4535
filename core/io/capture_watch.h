#pragma once
// A folder of captures while a script writes into it: which files are there, which can be opened, and which are being
// written. Nothing is asked of the script: a file is tried when it is new or has changed, and again when it has rested;
// only one that rests and still cannot be opened is broken. Thread rule: one thread at a time.

#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/base/words.h"
#include "core/io/trace_file.h"

namespace headscope {

class CaptureWatch {
 public:
  /// Seconds that a file has to rest before it is called broken.
  static constexpr double patience = 2;
  static constexpr std::size_t most_files = 2000;  ///< the newest; a folder may hold more

  enum class State {
    ready,    ///< opened as it is now
    writing,  ///< could not be opened (yet)
    broken    ///< could not be opened though nobody wrote to it for a while; `why` says what is wrong
  };
  struct File {
    std::filesystem::path path;
    State state = State::writing;
    std::string why;  ///< of a broken one
    Worded words;     ///< of a ready one: "2 layers × 4 heads, 7 × 5 tokens"
    std::filesystem::file_time_type written;
    bool operator==(const File&) const = default;
  };

  explicit CaptureWatch(std::filesystem::path folder, RuleParser parse = {});

  const std::filesystem::path& folder() const { return folder_; }
  /// Looks once. `now` in seconds, from any origin, rising. `opened` is told every file that is new or has changed and
  /// opens, oldest first. True when files() may have changed. Throws Error when the folder cannot be read, Cancelled.
  bool look(double now, const std::function<void(const File&, std::shared_ptr<const Trace>)>& opened = {},
            const std::stop_token& stop = {});
  /// As they were at the last look, the last written first.
  const std::vector<File>& files() const { return files_; }

 private:
  struct Known {
    File file;
    std::uintmax_t bytes = 0;
    double since = 0;    // when it was first seen as it is now
    bool tried = false;  // as it is now, and could not be opened
  };
  std::filesystem::path folder_;
  RuleParser parse_;
  std::vector<Known> known_;
  std::vector<File> files_;
};

/// "2 layers × 4 heads, 7 × 5 tokens": what a capture holds.
Worded capture_words(const Trace& trace);

}  // namespace headscope
