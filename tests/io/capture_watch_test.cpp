// A folder that a script writes into: new and changed files, half-written ones, broken ones.
#include <doctest/doctest.h>

#include <chrono>
#include <fstream>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/io/capture_watch.h"
#include "tests/support/paths.h"

namespace headscope::capture_watch_test {

namespace fs = std::filesystem;

namespace {
std::string bytes_of(const char* name) {
  return read_file(testing::reference("attention") / name);
}

/// As a script does: from the beginning, and the clock of the file goes on.
void put(const fs::path& path, const std::string& bytes, int second) {
  std::ofstream(path, std::ios::binary) << bytes;
  fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds(second));
}

struct Watched {
  explicit Watched(const fs::path& folder) : watch(folder) {}
  CaptureWatch watch;
  std::vector<std::string> opened;
  bool look(double now) {
    opened.clear();
    return watch.look(now, [&](const CaptureWatch::File& file, const std::shared_ptr<const Trace>& trace) {
      CHECK(trace);
      opened.push_back(file.path.filename().string());
    });
  }
};
using Names = std::vector<std::string>;
using State = CaptureWatch::State;
}  // namespace

TEST_CASE("new and changed captures are told once, the newest stands first") {
  const fs::path folder = testing::scratch_dir("watch-new");
  Watched w(folder);
  CHECK_FALSE(w.look(0));
  put(folder / "a.npz", bytes_of("cross.npz"), 1);
  put(folder / "notes.txt", "not a capture", 1);
  put(folder / ".hidden.npz", "nor this", 1);
  CHECK(w.look(1));
  CHECK(w.opened == Names{"a.npz"});
  CHECK_FALSE(w.look(2));
  CHECK(w.opened == Names{});
  put(folder / "b.safetensors", bytes_of("cross_bf16.safetensors"), 3);
  put(folder / "a0.npy", bytes_of("cross_bare.npy"), 2);
  CHECK(w.look(3));
  CHECK(w.opened == Names{"a0.npy", "b.safetensors"});
  REQUIRE(w.watch.files().size() == 3);
  CHECK(w.watch.files().front().path.filename() == "b.safetensors");
  CHECK(w.watch.files().front().words == "1 layer × 2 heads, 3 × 2 tokens");
  put(folder / "a.npz", bytes_of("picture.npz"), 5);
  CHECK(w.look(4));
  CHECK(w.opened == Names{"a.npz"});
  CHECK(w.watch.files().front().words == "1 layer × 1 head, 2 × 2 patches");
  fs::remove(folder / "a.npz");
  CHECK(w.look(5));
  CHECK(w.opened == Names{});
  CHECK(w.watch.files().size() == 2);
}

TEST_CASE("a half-written file is no error until it has rested and stays broken") {
  const fs::path folder = testing::scratch_dir("watch-half");
  const std::string whole = bytes_of("cross.npz");
  Watched w(folder);
  put(folder / "x.npz", whole.substr(0, whole.size() / 3), 1);
  w.look(0);
  REQUIRE(w.watch.files().size() == 1);
  CHECK(w.watch.files()[0].state == State::writing);
  put(folder / "x.npz", whole.substr(0, whole.size() / 2), 2);
  w.look(0.5);
  CHECK(w.watch.files()[0].state == State::writing);
  w.look(2.4);  // 1.9 s of rest
  CHECK(w.watch.files()[0].state == State::writing);
  CHECK(w.watch.files()[0].why.empty());
  w.look(2.6);
  CHECK(w.watch.files()[0].state == State::broken);
  CHECK(w.watch.files()[0].why.find("zip archive") != std::string::npos);
  // The script was only slow.
  put(folder / "x.npz", whole, 3);
  w.look(3);
  w.look(3.5);
  CHECK(w.opened == Names{"x.npz"});
  CHECK(w.watch.files()[0].state == State::ready);
  CHECK(w.watch.files()[0].why.empty());
}

TEST_CASE("a folder that is none is refused") {
  CaptureWatch watch(testing::scratch_dir("watch-none") / "absent");
  CHECK_THROWS_WITH_AS(watch.look(0), doctest::Contains("a folder that can be read"), Error);
}

}  // namespace headscope::capture_watch_test
