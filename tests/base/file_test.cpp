#include "core/base/file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "core/base/error.h"
#include "tests/support/paths.h"

using namespace headscope;
namespace fs = std::filesystem;

namespace {

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator{}));
}

void put(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("a mapped file shows the bytes of the file and keeps them after the name is gone") {
  const fs::path path = testing::scratch_dir("map") / "a.bin";
  put(path, std::string("head\0scope", 10));
  const auto mapped = MappedFile::open(path);
  fs::remove(path);
  REQUIRE(mapped->bytes().size() == 10);
  CHECK(static_cast<char>(mapped->bytes()[0]) == 'h');
  CHECK(static_cast<char>(mapped->bytes()[4]) == '\0');
  CHECK(static_cast<char>(mapped->bytes()[9]) == 'e');
  CHECK(mapped->path() == path);
}

TEST_CASE("an empty file maps to an empty span and reads as an empty string") {
  const fs::path path = testing::scratch_dir("empty") / "nothing";
  put(path, "");
  CHECK(MappedFile::open(path)->bytes().empty());
  CHECK(read_file(path).empty());
}

TEST_CASE("missing files, folders and pipes are errors that name the path, and a pipe does not hang") {
  const fs::path folder = testing::scratch_dir("bad");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THROWS_WITH_AS(MappedFile::open(folder / "absent"), doctest::Contains("absent"), Error);
  CHECK_THROWS_WITH_AS(MappedFile::open(folder), doctest::Contains("found a folder"), Error);
  CHECK_THROWS_WITH_AS(MappedFile::open(folder / "pipe"), doctest::Contains("pipe or device"), Error);
  CHECK_THROWS_WITH_AS(read_file(folder / "absent"), doctest::Contains("absent"), Error);
  CHECK_THROWS_WITH_AS(read_file(folder), doctest::Contains("found a folder"), Error);
}

TEST_CASE("read_file refuses one byte more than its limit and takes exactly the limit") {
  const fs::path path = testing::scratch_dir("limit") / "ten";
  put(path, "0123456789");
  CHECK(read_file(path, 10) == "0123456789");
  CHECK_THROWS_WITH_AS(read_file(path, 9), doctest::Contains("at most 9 bytes, found 10"), Error);
  CHECK_THROWS_AS(read_file("/dev/zero", 100000), Error);  // endless, and its size is stated as 0
  CHECK(read_file("/dev/null").empty());
}

TEST_CASE("read_file reads files that do not state their size") {
  CHECK(read_file("/proc/self/stat", 1 << 20).size() > 10);
}

TEST_CASE("writing replaces the old file whole, keeps its permissions and leaves nothing beside it") {
  const fs::path folder = testing::scratch_dir("write");
  const fs::path path = folder / "out.txt";
  write_file_atomically(path, "first, the longer text");
  CHECK(read_file(path) == "first, the longer text");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  write_file_atomically(path, "second");
  CHECK(read_file(path) == "second");
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
  CHECK(files_in(folder) == 1);
}

TEST_CASE("a writer that fails half way leaves the old file and no temporary one") {
  const fs::path folder = testing::scratch_dir("half");
  const fs::path path = folder / "out.txt";
  write_file_atomically(path, "old");
  const auto fails = [](std::ostream& out) {
    out << "half of the new";
    throw Error("tensor q", "4 numbers", "3");
  };
  CHECK_THROWS_WITH_AS(write_file_atomically(path, fails), doctest::Contains("tensor q"), Error);
  const auto breaks = [](std::ostream& out) { out.setstate(std::ios::badbit); };
  CHECK_THROWS_WITH_AS(write_file_atomically(path, breaks), doctest::Contains("out.txt"), Error);
  CHECK(read_file(path) == "old");
  CHECK(files_in(folder) == 1);
}

TEST_CASE("a full disk is an error and leaves no file") {
  if (!fs::exists("/dev/full")) return;
  const auto fills = [](std::ostream& out) {
    std::ofstream full("/dev/full");
    full << "x" << std::flush;
    if (!full) out.setstate(std::ios::failbit);
  };
  const fs::path folder = testing::scratch_dir("full");
  CHECK_THROWS_WITH_AS(write_file_atomically(folder / "x", fills), doctest::Contains("disk full"), Error);
  CHECK(files_in(folder) == 0);
}

TEST_CASE("folders, devices and missing folders cannot be written over") {
  const fs::path folder = testing::scratch_dir("targets");
  CHECK_THROWS_WITH_AS(write_file_atomically(folder, "x"), doctest::Contains("found a folder"), Error);
  CHECK_THROWS_WITH_AS(write_file_atomically(folder / "", "x"), doctest::Contains("folder"), Error);
  CHECK_THROWS_WITH_AS(write_file_atomically("/dev/null", "x"), doctest::Contains("device"), Error);
  CHECK(fs::is_character_file("/dev/null"));
  CHECK_THROWS_WITH_AS(write_file_atomically(folder / "no" / "x", "x"), doctest::Contains("does the folder exist"),
                       Error);
  CHECK(files_in(folder) == 0);
}

TEST_CASE("writing through a symbolic link changes what it points at") {
  const fs::path folder = testing::scratch_dir("link");
  put(folder / "real", "old");
  fs::create_symlink("real", folder / "link");
  write_file_atomically(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_file(folder / "real") == "new");
}
