// What content is called: published vectors, and Git's own ids.

#include "core/hub/digest.h"

#include <doctest/doctest.h>

#include <string>

#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/paths.h"

namespace headscope::digest_test {

namespace {
std::string hex_of(Digest digest, const std::string& text) {
  digest.add(std::as_bytes(std::span(text)));
  return digest.hex();
}
}  // namespace

TEST_CASE("digests are those of FIPS 180-4 and of git hash-object") {
  CHECK(hex_of(Digest::sha256(), "abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex_of(Digest::sha256(), "") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex_of(Digest::git_blob(6), "hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a");
  CHECK(hex_of(Digest::git_blob(0), "") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
}

TEST_CASE("a file's digest is that of its bytes, in parts too, and can be stopped") {
  const auto file = testing::scratch_dir("digest") / "a";
  std::string text;
  while (text.size() < 3'000'001) text += "All heads attend. ";
  write_file_atomically(file, text);
  CHECK(digest_of_file(file, DigestKind::sha256) == hex_of(Digest::sha256(), text));
  CHECK(digest_of_file(file, DigestKind::git_blob) == hex_of(Digest::git_blob(text.size()), text));
  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(digest_of_file(file, DigestKind::sha256, stop.get_token()), Cancelled);
  CHECK_THROWS_AS(digest_of_file(file / "none", DigestKind::sha256), Error);
}

TEST_CASE("an entity tag is a digest by its digits") {
  CHECK(digest_kind(std::string(64, 'a')) == DigestKind::sha256);
  CHECK(digest_kind(std::string(40, '0')) == DigestKind::git_blob);
  for (const std::string& tag : {std::string(64, 'g'), std::string(63, 'a'), std::string(), std::string("abc-1")})
    CHECK(digest_kind(tag) == DigestKind::none);
}

}  // namespace headscope::digest_test
