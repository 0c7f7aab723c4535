#pragma once
// What a file's content is called: SHA-256 of large files (Git LFS), Git's object id of small ones. By OpenSSL.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <stop_token>
#include <string>

namespace headscope {

class Digest {
 public:
  static Digest sha256();
  /// SHA-1 of "blob SIZE\0" and the content: what `git hash-object` prints.
  static Digest git_blob(std::uint64_t size);
  ~Digest();
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;

  void add(std::span<const std::byte> bytes);
  /// Lower-case hexadecimal; once.
  std::string hex();

 private:
  struct State;
  explicit Digest(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The kind of digest that an entity tag of the hub is: 64 hexadecimal digits SHA-256, 40 a Git object id; anything
/// else says nothing about the content.
enum class DigestKind { none, git_blob, sha256 };
DigestKind digest_kind(const std::string& tag);
/// Of the whole file. Throws Error as reading it does, Cancelled when it is stopped. `kind` is not none.
std::string digest_of_file(const std::filesystem::path& file, DigestKind kind, const std::stop_token& stop = {});

}  // namespace headscope
