#include "core/base/file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "core/base/error.h"
#include "tests/support/paths.h"

namespace headscope::file_test {

namespace fs = std::filesystem;

namespace {

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator{}));
}

void put(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

}  // namespace

TEST_CASE("an open file gives any of its bytes, and keeps them after the name is gone") {
  const fs::path path = testing::scratch_dir("open") / "a.bin";
  put(path, std::string("head\0scope", 10));
  const auto file = InputFile::open(path);
  fs::remove(path);
  CHECK(file->size() == 10);
  CHECK(file->text(0, 10) == std::string("head\0scope", 10));
  CHECK(file->text(4, 3) == std::string("\0sc", 3));
  CHECK(file->text(10, 0).empty());
  CHECK(file->path() == path);
}

TEST_CASE("a file that is cut short while it is open gives what is left, then an Error that says where it ends") {
  const fs::path path = testing::scratch_dir("shrinks") / "a.bin";
  put(path, std::string(100'000, 'x'));
  const auto file = InputFile::open(path);
  fs::resize_file(path, 5000);
  CHECK(file->text(4000, 1000) == std::string(1000, 'x'));
  CHECK_THROWS_WITH_AS(
      file->text(4000, 1001),
      doctest::Contains("a.bin: expected the file of 100000 bytes that was opened, found its end at byte 5000"), Error);
  CHECK_THROWS_WITH_AS(file->text(90'000, 10), doctest::Contains("its end at byte 90000"), Error);
}

TEST_CASE("an empty file is no bytes") {
  const fs::path path = testing::scratch_dir("empty") / "nothing";
  put(path, "");
  CHECK(InputFile::open(path)->size() == 0);
  CHECK(read_file(path).empty());
}

TEST_CASE("missing files, folders, pipes and devices are errors that name the path, and none of them hangs") {
  const fs::path folder = testing::scratch_dir("bad");
  REQUIRE(mkfifo((folder / "pipe").c_str(), 0600) == 0);
  const auto both = [](const fs::path& path, const char* said) {
    CHECK_THROWS_WITH_AS(InputFile::open(path), doctest::Contains(said), Error);
    CHECK_THROWS_WITH_AS(read_file(path), doctest::Contains(said), Error);
  };
  both(folder / "absent", "absent");
  both(folder, "found a folder");
  both(folder / "pipe", "pipe or device");
  both("/dev/null", "pipe or device");
  both("/dev/zero", "pipe or device");
}

TEST_CASE("what a person names as input may be a pipe or device, within the limit") {
  const fs::path folder = testing::scratch_dir("input"), pipe = folder / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK(read_input(pipe, 1000).empty());  // nobody writes to it
  const int keeps_it_open = ::open(pipe.c_str(), O_RDWR);
  std::thread writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // the reader finds it empty, with a writer
    std::ofstream(pipe) << "from a pipe";
    ::close(keeps_it_open);
  });
  CHECK(read_input(pipe, 1000) == "from a pipe");
  writer.join();
  CHECK(read_input("/dev/null", 10).empty());
  CHECK_THROWS_WITH_AS(read_input("/dev/zero", 100'000), doctest::Contains("at most 100000 bytes"), Error);
  CHECK_THROWS_WITH_AS(read_input(folder, 10), doctest::Contains("found a folder"), Error);
}

TEST_CASE("read_file refuses one byte more than its limit and takes exactly the limit") {
  const fs::path path = testing::scratch_dir("limit") / "ten";
  put(path, "0123456789");
  CHECK(read_file(path, 10) == "0123456789");
  CHECK_THROWS_WITH_AS(read_file(path, 9), doctest::Contains("at most 9 bytes, found 10"), Error);
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

TEST_CASE("whether a file can be written is told before, as writing would tell it, and nothing is left or changed") {
  const fs::path folder = testing::scratch_dir("before");
  put(folder / "real", "old");
  fs::create_symlink("real", folder / "link");
  expect_writable(folder / "real");
  expect_writable(folder / "link");
  expect_writable(folder / "new");
  CHECK(read_file(folder / "real") == "old");
  CHECK(files_in(folder) == 2);
  for (const fs::path& bad : {folder, folder / "", folder / "no" / "x", fs::path("/dev/null"), folder / "real" / "x"}) {
    CAPTURE(bad.string());
    std::string before, then;
    try {
      expect_writable(bad);
    } catch (const Error& error) {
      before = error.what();
    }
    try {
      write_file_atomically(bad, "x");
    } catch (const Error& error) {
      then = error.what();
    }
    CHECK(before.starts_with(bad.string() + ": expected "));
    CHECK(before == then);
  }
  CHECK(files_in(folder) == 2);
}

TEST_CASE("a name as long as names may be can be written; a longer one is told as that") {
  const fs::path folder = testing::scratch_dir("long-names");
  for (const std::string& name : {std::string(255, 'n'), std::string(240, 'n')}) {
    expect_writable(folder / name);
    write_file_atomically(folder / name, "first");
    write_file_atomically(folder / name, "second");
    CHECK(read_file(folder / name) == "second");
  }
  CHECK(files_in(folder) == 2);
  for (const auto write : {+[](const fs::path& path) { expect_writable(path); },
                           +[](const fs::path& path) { write_file_atomically(path, "x"); }})
    CHECK_THROWS_WITH_AS(write(folder / std::string(256, 'n')), doctest::Contains("expected a shorter name"), Error);
  CHECK(files_in(folder) == 2);
}

TEST_CASE("writing through a symbolic link changes what it points at") {
  const fs::path folder = testing::scratch_dir("link");
  put(folder / "real", "old");
  fs::create_symlink("real", folder / "link");
  write_file_atomically(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_file(folder / "real") == "new");
}

TEST_CASE("writing through links whose end is not there yet makes that end, and all of them stay links") {
  const fs::path folder = testing::scratch_dir("dangling");
  fs::create_directory(folder / "deep");
  fs::create_symlink("deep/second", folder / "first");  // relative to its own folder …
  fs::create_symlink("real", folder / "deep/second");   // … as is the next
  fs::create_symlink(folder / "deep/other", folder / "absolute");
  fs::create_symlink("circle", folder / "circle");
  write_file_atomically(folder / "first", "a");
  write_file_atomically(folder / "absolute", "b");
  for (const char* link : {"first", "deep/second", "absolute"}) CHECK(fs::is_symlink(folder / link));
  CHECK(fs::is_regular_file(fs::symlink_status(folder / "deep/real")));
  CHECK(read_file(folder / "first") == "a");
  CHECK(read_file(folder / "deep/other") == "b");
  CHECK(files_in(folder / "deep") == 3);
  CHECK_THROWS_WITH_AS(write_file_atomically(folder / "circle", "x"), doctest::Contains("circle"), Error);
}

}  // namespace headscope::file_test
