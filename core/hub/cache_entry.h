#pragma once
// A model in the Hugging Face cache, as huggingface_hub lays it out, so that both tools share it:
//
//   CACHE/models--org--name/blobs/TAG                       a file's content under its entity tag
//                                 TAG.incomplete            what has come of it so far
//                          /snapshots/COMMIT/config.json    → ../../blobs/TAG
//                          /refs/main                       the commit that a branch or tag is at
//   CACHE/.locks/models--org--name/TAG.lock                 held while the blob is fetched

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

namespace headscope {

class CacheEntry {
 public:
  CacheEntry(std::filesystem::path cache, const std::string& model);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path blob(const std::string& tag) const { return folder_ / "blobs" / tag; }
  std::filesystem::path incomplete(const std::string& tag) const;
  std::filesystem::path snapshot(const std::string& commit) const { return folder_ / "snapshots" / commit; }
  std::filesystem::path lock(const std::string& tag) const;

  /// Makes the folders of a file and of a blob. Throws Error.
  void make_folders(const std::string& commit, const std::string& file) const;
  /// Lets `file` of the snapshot be the blob: by a link, or where the file system has none, by moving it there.
  void link(const std::string& commit, const std::string& file, const std::string& tag) const;
  /// Says that `revision` is `commit`; nothing where it is the commit itself.
  void write_ref(const std::string& revision, const std::string& commit) const;

 private:
  std::filesystem::path cache_, folder_;
};

/// The lock of huggingface_hub's filelock package: flock(2) on a file that stays.
class CacheLock {
 public:
  /// Waits until nobody else holds it; `waiting` is called once when somebody does. Throws Error when the file cannot
  /// be made, Cancelled.
  CacheLock(const std::filesystem::path& file, const std::stop_token& stop, const std::function<void()>& waiting);
  ~CacheLock();
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;

 private:
  int descriptor_ = -1;
};

/// A file that grows at its end and stays when writing it fails, unless nothing is in it.
class GrowingFile {
 public:
  /// Made where it is missing. Throws Error, as all below.
  explicit GrowingFile(std::filesystem::path path);
  ~GrowingFile();
  GrowingFile(const GrowingFile&) = delete;
  GrowingFile& operator=(const GrowingFile&) = delete;

  std::uint64_t size() const { return size_; }
  void append(std::span<const std::byte> bytes);
  void cut(std::uint64_t size);
  /// On the disk, and then under another name.
  void finish(const std::filesystem::path& name);

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace headscope
