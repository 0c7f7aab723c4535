// The program as a shell starts it: what it opens, and what it ends with.

#include <doctest/doctest.h>

#include <filesystem>

#include "core/base/file.h"
#include "tests/gui/driver.h"
#include "tests/gui/programs.h"
#include "tests/support/paths.h"

namespace headscope::program_test {

using testing::Ended;
using testing::run_program;
using testing::scratch_dir;
namespace fs = std::filesystem;

namespace {

Ended run(const std::string& arguments) {
  return run_program("window/headscope", arguments);
}

}  // namespace

TEST_CASE("a screenshot of a bundled model by its name; of one that is not there, of a broken one: exit code 1") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("program-pictures");
  const std::string picture = (folder / "a.png").string(), shot = " --size 640x480 --screenshot '" + picture + "'";
  Ended ended = run("tiny-llama" + shot);
  CHECK_MESSAGE(ended.code == 0, ended.said);
  CHECK(read_file(picture).size() > 1000);
  fs::remove(picture);

  ended = run("no-such-model" + shot);
  CHECK(ended.code == 1);
  CHECK(ended.said.find("no-such-model: expected a model's folder") != std::string::npos);
  ended = run("/nowhere/at/all" + shot);
  CHECK(ended.code == 1);
  CHECK(ended.said.find("/nowhere/at/all") != std::string::npos);  // what was asked for, not the folder above
  const fs::path broken = folder / "broken";
  fs::create_directories(broken);
  write_file_atomically(broken / "config.json", "{");
  ended = run("'" + broken.string() + "'" + shot);
  CHECK(ended.code == 1);
  CHECK(ended.said.find("config.json") != std::string::npos);
  CHECK_FALSE(fs::exists(picture));
}

TEST_CASE("a screenshot that cannot be written is told of before the model is waited for") {
  HEADSCOPE_NEEDS_DISPLAY();
  const fs::path folder = scratch_dir("program-no-place");
  // A model that is not there would be told of once it has been waited for: the place comes first.
  const Ended ended = run("no-such-model --size 640x480 --screenshot '" + (folder / "no" / "a.png").string() + "'");
  CHECK(ended.code == 1);
  CHECK_MESSAGE(
      ended.said.find((folder / "no" / "a.png").string() + ": expected a writable place") != std::string::npos,
      ended.said);
  CHECK(ended.said.find("no-such-model: expected") == std::string::npos);
}

TEST_CASE("a mistake in the command is exit code 2, as of the command line; help and version are 0") {
  HEADSCOPE_NEEDS_DISPLAY();
  for (const char* wrong : {"--no-such-option", "--size 12", "--theme pink", "--workspace nothing", "--scale 99",
                            "--workspace analyse --page nothing --screenshot /dev/null"}) {
    CAPTURE(wrong);
    const Ended ended = run(wrong);
    CHECK_MESSAGE(ended.code == 2, ended.said);
    CHECK(ended.said.starts_with("headscope: "));
  }
  CHECK(run("--help").code == 0);
  CHECK(run("--version").said.starts_with("headscope "));
}

}  // namespace headscope::program_test
