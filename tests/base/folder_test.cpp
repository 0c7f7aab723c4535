#include "core/base/folder.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <stdexcept>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/base/file_lock.h"
#include "tests/support/paths.h"

namespace headscope::folder_test {

using testing::scratch_dir;
namespace fs = std::filesystem;

namespace {
void put(const fs::path& file, const char* text) {
  fs::create_directories(file.parent_path());
  write_file_atomically(file, text);
}
std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}
}  // namespace

TEST_CASE("a folder is replaced whole: what was written, and what belongs to somebody else") {
  const fs::path root = scratch_dir("folder-replace"), folder = root / "model";
  put(folder / "a", "old a");
  put(folder / "b", "old b");
  put(folder / "gone", "old");
  put(folder / "sub" / "c", "mine");
  write_folder_atomically(
      folder, [](const fs::path& part) { put(part / "a", "new a"); },
      [](std::string_view name) { return name == "gone"; });
  CHECK(read_file(folder / "a") == "new a");
  CHECK(read_file(folder / "b") == "old b");
  CHECK(read_file(folder / "sub" / "c") == "mine");
  CHECK_FALSE(fs::exists(folder / "gone"));
  CHECK(entries(root) == 1);

  const auto half = [&] {
    write_folder_atomically(folder, [](const fs::path& part) {
      put(part / "a", "half");
      throw std::runtime_error("no more");
    });
  };
  CHECK_THROWS_AS(half(), std::runtime_error);
  CHECK(read_file(folder / "a") == "new a");
  CHECK(entries(root) == 1);
}

TEST_CASE(
    "through a link, the folder it points at is replaced; a new folder is made; a trailing slash means no other") {
  const fs::path root = scratch_dir("folder-link");
  put(root / "disk" / "model" / "a", "old");
  fs::create_directory_symlink("disk/model", root / "link");
  write_folder_atomically(root / "link", [](const fs::path& part) { put(part / "a", "new"); });
  CHECK(fs::is_symlink(root / "link"));
  CHECK(read_file(root / "disk" / "model" / "a") == "new");
  write_folder_atomically(root / "fresh" / "", [](const fs::path& part) { put(part / "a", "first"); });
  CHECK(read_file(root / "fresh" / "a") == "first");
  CHECK(entries(root) == 3);
}

TEST_CASE("leftovers of the dead go; a folder they were killed in replacing comes back") {
  const fs::path root = scratch_dir("folder-leftovers"), folder = root / "model";
  put(folder / "a", "now");
  put(folder / "a.part-7-0", "half");
  put(root / "model.part-7-1" / "a", "half");
  put(root / "model.old-7-1" / "a", "before");
  put(root / "models" / "a", "another's");
  clear_leftovers(folder);
  CHECK(read_file(folder / "a") == "now");
  CHECK(entries(folder) == 1);
  CHECK(entries(root) == 2);

  fs::rename(folder, root / "model.old-7-2");
  put(root / "model.part-7-3" / "a", "half");
  clear_leftovers(folder);
  CHECK(read_file(folder / "a") == "now");
  CHECK(entries(root) == 2);
}

TEST_CASE("what people named much as leftovers are named stays") {
  const fs::path root = scratch_dir("folder-not-leftovers"), folder = root / "book";
  put(folder / "notes.part-2.txt", "mine");
  put(folder / "notes.part-2", "mine");
  put(folder / "video.part-1-2" / "a", "mine");
  put(root / "book.part-1" / "chapter", "mine");
  put(root / "book.part-1-draft" / "chapter", "mine");
  put(root / "book.old-edition" / "chapter", "mine");
  put(root / "bookshop.part-7-0" / "a", "another's");
  put(root / "book.part-7-0" / "a", "half");
  put(root / "book.old-7-0" / "a", "before");
  put(folder / "a.part-7-0", "half");
  put(folder / ".headscope.part-7-0", "half");
  clear_leftovers(folder);
  CHECK(entries(folder) == 3);
  CHECK(read_file(folder / "notes.part-2.txt") == "mine");
  CHECK(read_file(folder / "video.part-1-2" / "a") == "mine");
  for (const char* name : {"book.part-1", "book.part-1-draft", "book.old-edition"})
    CHECK(read_file(root / name / "chapter") == "mine");
  CHECK(entries(root) == 5);
}

TEST_CASE("a name as long as names may be is written like others, and its leftovers go") {
  const fs::path root = scratch_dir("folder-long"), folder = root / std::string(255, 'm'),
                 other = root / (std::string(254, 'm') + "n");
  write_folder_atomically(folder, [](const fs::path& part) { put(part / "a", "first"); });
  write_folder_atomically(folder, [](const fs::path& part) { put(part / "a", "second"); });
  CHECK(read_file(folder / "a") == "second");
  put(other / "a", "another's");
  CHECK(entries(root) == 2);
  fs::path part;
  const auto killed = [&] {
    write_folder_atomically(folder, [&](const fs::path& at) {
      part = at;
      put(at / "a", "half");
      fs::copy(at, root / "kept", fs::copy_options::recursive);
      throw std::runtime_error("killed here");
    });
  };
  CHECK_THROWS_AS(killed(), std::runtime_error);
  fs::rename(root / "kept", part);  // as a process that was killed leaves it
  clear_leftovers(other);
  CHECK(entries(root) == 3);
  clear_leftovers(folder);
  CHECK(entries(root) == 2);
}

TEST_CASE("a lock has one holder, who is named; it falls free with him, and a dead one's is taken over") {
  const fs::path file = scratch_dir("file-lock") / "lock";
  std::string holder;
  {
    const auto first = FileLock::take(file);
    REQUIRE(first);
    CHECK(read_file(file).starts_with(std::to_string(getpid()) + " "));
    CHECK_FALSE(FileLock::take(file, &holder));
    CHECK(holder.starts_with("process " + std::to_string(getpid()) + " on "));
    CHECK(holder.find(" since 20") != std::string::npos);
  }
  CHECK_FALSE(fs::exists(file));
  std::string here;
  {
    const auto mine = FileLock::take(file);
    here = read_file(file);
  }
  const std::string machine = here.substr(here.find(' ') + 1, here.find(' ', here.find(' ') + 1) - here.find(' ') - 1);
  write_file_atomically(file, "999999 " + machine + " 2020-01-01 00:00:00Z\n");  // of a process killed here
  CHECK(FileLock::take(file));
  write_file_atomically(file, "999999 elsewhere.example 2020-01-01 00:00:00Z\n");  // of one that cannot be asked
  CHECK_FALSE(FileLock::take(file, &holder));
  CHECK(holder == "process 999999 on elsewhere.example since 2020-01-01 00:00:00Z");
  CHECK(fs::exists(file));
  CHECK_THROWS_AS(FileLock::take(file.parent_path() / "no" / "such" / "lock"), Error);
}

}  // namespace headscope::folder_test
