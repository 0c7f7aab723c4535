#include "app/state/recovery.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>
#include <vector>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/words.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
constexpr const char *lock_name = "lock", *words_name = "words.txt";
constexpr std::size_t words_limit = 4096;
constexpr int most_tries = 100;

fs::path fresh_folder(const fs::path& root) {
  static std::atomic<unsigned> counter{0};
  const auto now =
      std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  return root / (std::to_string(::getpid()) + "-" + std::to_string(now) + "-" + std::to_string(counter++));
}
}  // namespace

Recovery::Recovery(const fs::path& root) : root_(root) {
  // Until it is locked, another program that starts may take the folder for an abandoned one, and remove it.
  for (int tries_left = most_tries; !lock_; --tries_left) {
    folder_ = fresh_folder(root);
    std::error_code failed;
    fs::create_directories(folder_, failed);
    if (failed) throw Error(folder_.string(), "a folder for work that is not saved yet", failed.message());
    fs::permissions(folder_, fs::perms::owner_all, failed);  // texts are nobody else's business
    try {
      lock_ = FileLock::take(folder_ / lock_name);
    } catch (const Error&) {
      if (tries_left <= 0 || fs::exists(folder_, failed)) throw;
    }
    if (!lock_ && tries_left <= 0)
      throw Error(folder_.string(), "a folder for work that is not saved yet", "one that another program holds");
  }
  find_offer();
}

Recovery::~Recovery() {
  offer_.reset();
  std::error_code failed;
  const bool empty = !fs::exists(session(), failed) && !fs::exists(training(), failed);
  lock_.reset();
  if (!left_ || empty) fs::remove_all(folder_, failed);
}

void Recovery::describe(const std::string& words) {
  std::error_code failed;
  if (words.empty())
    for (const fs::path& file : {session(), training(), folder_ / words_name}) fs::remove(file, failed);
  else
    write_file_atomically(folder_ / words_name, words);
}

void Recovery::find_offer() {
  offer_.reset();
  std::error_code failed;
  std::vector<std::pair<fs::file_time_type, fs::path>> candidates;
  for (auto at = fs::directory_iterator(root_, failed); !failed && at != fs::directory_iterator();
       at.increment(failed)) {
    std::error_code missing;  // another program may take its own away at any time
    if (at->path() == folder_ || !at->is_directory(missing)) continue;
    fs::file_time_type newest = fs::file_time_type::min();
    for (const char* name : {session_name, training_name})
      if (fs::exists(at->path() / name, missing))
        newest = std::max(newest, fs::last_write_time(at->path() / name, missing));
    candidates.emplace_back(newest, at->path());
  }
  std::ranges::sort(candidates, std::greater<>());
  for (const auto& [when, folder] : candidates) {
    Found found{folder, nullptr, {}};
    try {
      found.lock = FileLock::take(folder / lock_name);
      if (!found.lock) continue;  // of a program that is running
      found.what.session = fs::exists(folder / session_name, failed);
      found.what.training = fs::exists(folder / training_name, failed);
      if (!found.what.session && !found.what.training) {
        fs::remove_all(folder, failed);  // under its lock: nobody can begin to use it meanwhile
        continue;
      }
      found.what.when = when;
      found.what.words = fs::exists(folder / words_name, failed) ? read_file(folder / words_name, words_limit) : "";
      if (found.what.words.empty()) found.what.words = said("work of an earlier start");
    } catch (const Error&) {  // not ours to read: nothing to offer
      continue;
    }
    offer_ = std::move(found);
    return;
  }
}

void Recovery::take_up() {
  if (!offer_) return;
  std::error_code failed;
  for (const char* name : {session_name, training_name, words_name})
    if (fs::exists(offer_->folder / name, failed)) fs::rename(offer_->folder / name, folder_ / name, failed);
  const fs::path folder = offer_->folder;
  offer_.reset();
  fs::remove_all(folder, failed);
}

void Recovery::discard() {
  if (!offer_) return;
  std::error_code failed;
  const fs::path folder = offer_->folder;
  fs::remove_all(folder, failed);
  find_offer();
}

}  // namespace headscope
