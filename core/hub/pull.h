#pragma once
// Fetches a model into the Hugging Face cache. What is there already is not fetched again, what was broken off goes on
// where it ended, and every file is checked against the digest that the hub calls it by before anything points at it.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/hub/hub_client.h"
#include "core/hub/hub_settings.h"

namespace headscope {

struct PullRequest {
  std::string model = {};               ///< "org/name"
  std::string revision = "main";        ///< a branch, a tag ("step1000") or a commit
  std::vector<std::string> files = {};  ///< patterns; empty = what Headscope reads (core/hub/file_choice.h)

  /// "org/name" or "org/name@revision".
  static PullRequest parse(const std::string& text);
};

struct PullProgress {
  enum class Phase { asking, fetching, checking, waiting } phase = Phase::asking;
  std::string file;                             ///< the one that is being fetched
  std::size_t number = 0, of = 0;               ///< it is the number-th of so many, from 1
  std::uint64_t done = 0, total = 0;            ///< bytes of all files; total 0 = not known
  std::uint64_t file_done = 0, file_total = 0;  ///< of this one
  double rate = 0;                              ///< bytes in a second, over the last seconds
  std::string remark;                           ///< what is waited for
};

struct PulledFile {
  enum class How { here, linked, fetched, resumed } how = How::here;  ///< linked: its content was there already
  std::string name, tag;
  std::uint64_t bytes = 0;
};

struct Pulled {
  std::string model, revision, commit;
  std::filesystem::path folder;  ///< the snapshot
  std::vector<PulledFile> files;
  std::uint64_t fetched = 0;  ///< bytes that came over the network now
  std::vector<std::string> remarks;
};

struct PullOptions {
  HubPatience patience = {};
  std::function<void(const PullProgress&)> progress = {};  ///< on the calling thread, ten times a second or so
};

/// Throws Error, which names address, status and what can be done, or Cancelled. Either leaves the cache as it was, and
/// beside it what has come of a file, for the next time.
Pulled pull(const HubSettings& settings, const PullRequest& request, const PullOptions& options,
            const std::stop_token& stop);

}  // namespace headscope
