// What is kept between starts: the files, what they hold, and where a person's own files are looked for.

#include "app/state/recovery.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include "app/state/controls_record.h"
#include "app/state/settings.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "tests/support/paths.h"
#include "tests/support/variable.h"

namespace headscope::recovery_test {

using testing::scratch_dir;
using testing::Variable;
namespace fs = std::filesystem;

namespace {

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

/// A program that keeps `words` and then dies.
void die_with(const fs::path& root, const std::string& words, bool training = false) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    auto* recovery = new Recovery(root);
    write_file_atomically(recovery->session(), words);
    if (training) write_file_atomically(recovery->training(), "weights of " + words);
    recovery->describe(words);
    _exit(9);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WEXITSTATUS(status) == 9);
}

}  // namespace

TEST_CASE("what a program that died had kept is offered once, newest first; what runs is not") {
  const fs::path root = scratch_dir("recovery");
  {
    Recovery first(root);
    CHECK(first.offer() == nullptr);
    CHECK(entries(root) == 1);
  }
  CHECK(entries(root) == 0);  // an orderly end leaves nothing

  die_with(root, "older");
  fs::last_write_time(fs::directory_iterator(root)->path() / "session.json",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  die_with(root, "newer", true);
  Recovery mine(root);
  REQUIRE(mine.offer());
  CHECK(mine.offer()->words == "newer");
  CHECK(mine.offer()->session);
  CHECK(mine.offer()->training);
  {
    Recovery other(root);  // a second window: what the first is asked about is not its business
    REQUIRE(other.offer());
    CHECK(other.offer()->words == "older");
    CHECK_FALSE(other.offer()->training);
  }
  mine.take_up();
  CHECK(read_file(mine.session()) == "newer");
  CHECK(read_file(mine.training()) == "weights of newer");
  CHECK(mine.offer() == nullptr);
  CHECK(entries(root) == 2);

  Recovery third(root);
  REQUIRE(third.offer());
  third.discard();
  CHECK(third.offer() == nullptr);
  CHECK(entries(root) == 2);
}

TEST_CASE("windows that start at the same moment each have a folder, which no other takes for an abandoned one") {
  const fs::path root = scratch_dir("recovery-together");
  std::atomic<int> without{0};
  {
    std::vector<std::jthread> windows;
    for (int i = 0; i < 4; ++i)
      windows.emplace_back([&] {
        for (int start = 0; start < 150; ++start) {
          try {
            const Recovery one(root);
            without += !fs::exists(one.session().parent_path() / "lock");
          } catch (const Error&) {
            ++without;
          }
        }
      });
  }
  CHECK(without == 0);
  CHECK(fs::is_empty(root));
}

TEST_CASE("left on purpose, work is offered to the next start; with nothing in it, the folder goes") {
  const fs::path root = scratch_dir("recovery-left");
  {
    Recovery mine(root);
    write_file_atomically(mine.session(), "text");
    mine.describe("a text");
    mine.leave();
  }
  {
    Recovery next(root);
    REQUIRE(next.offer());
    CHECK(next.offer()->words == "a text");
    next.put_off();
    next.leave();
  }
  Recovery again(root);
  REQUIRE(again.offer());
  CHECK(again.offer()->words == "a text");
  CHECK(entries(root) == 2);
}

TEST_CASE("own files are looked for in the documents folder that the desktop names, else in home") {
  const fs::path home = scratch_dir("documents");
  const Variable here("HOME", home.string()), config("XDG_CONFIG_HOME", (home / "config").string());
  CHECK(documents_folder() == home);
  fs::create_directories(home / "Documents");
  CHECK(documents_folder() == home / "Documents");
  fs::create_directories(home / "Dokumente");
  fs::create_directories(home / "config");
  const auto named = [&](const std::string& line) {
    write_file_atomically(home / "config" / "user-dirs.dirs",
                          "# by xdg-user-dirs-update\nXDG_MUSIC_DIR=\"/\"\n" + line + "\n");
    return documents_folder();
  };
  CHECK(named("XDG_DOCUMENTS_DIR=\"$HOME/Dokumente\"") == home / "Dokumente");
  CHECK(named("XDG_DOCUMENTS_DIR=\"" + (home / "config").string() + "/\"").lexically_relative(home / "config") == ".");
  CHECK(named("XDG_DOCUMENTS_DIR=\"$HOME/gone\"") == home / "Documents");
  CHECK(named("XDG_DOCUMENTS_DIR=\"") == home / "Documents");
  const Variable state("XDG_STATE_HOME", (home / "state").string());
  CHECK(recovery_folder() == home / "state" / "headscope" / "recovery");
}

TEST_CASE("controls are written and read by the same line; what does not fit leaves a control alone") {
  struct Page {
    int count = 3;
    double share = 0.5;
    bool on = false;
    std::string words = "k == q";
    enum class Kind { a, b, c } kind = Kind::a;
    int inner = 1;
    void controls(ControlsRecord& r) {
      r.field("count", count, 0, 10);
      r.field("share", share, 0, 1);
      r.field("on", on);
      r.field("words", words);
      r.field("kind", kind, Kind::c);
      r.inside("part", [&](ControlsRecord& part) { part.field("inner", inner, 0, 9); });
    }
  };
  Page changed{7, 0.25, true, "ü", Page::Kind::b, 4};
  ControlsRecord written;
  changed.controls(written);
  CHECK(written.text() == R"({"count":7,"kind":1,"on":true,"part":{"inner":4},"share":0.25,"words":"ü"})");
  Page read;
  ControlsRecord record(written.text());
  read.controls(record);
  CHECK(read.count == 7);
  CHECK(read.share == 0.25);
  CHECK(read.on);
  CHECK(read.words == "ü");
  CHECK(read.kind == Page::Kind::b);
  CHECK(read.inner == 4);
  for (const char* text :
       {R"({"count": 11, "share": -1, "on": 1, "words": null, "kind": 3, "part": []})", "no json", "[]"}) {
    Page usual;
    ControlsRecord wrong{std::string(text)};
    usual.controls(wrong);
    CHECK(usual.count == 3);
    CHECK(usual.share == 0.5);
    CHECK_FALSE(usual.on);
    CHECK(usual.words == "k == q");
    CHECK(usual.kind == Page::Kind::a);
    CHECK(usual.inner == 1);
  }
}

}  // namespace headscope::recovery_test
