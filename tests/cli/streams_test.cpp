// What other programs do to our standard streams: full disks, closed descriptors, pipes whose reader went away. A
// message that cannot be written is no reason to fail; a result that cannot be is, in order.

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/json.h"
#include "tests/cli/small_recipe.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::streams_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {

/// Commands that say something on standard error or in more than one line, each on the bundled example.
std::vector<std::vector<std::string>> commands() {
  const std::string text = "Mr and Mrs Quill of Fox Hythe kept bees. Now Mr and Mrs Qu";
  return {{"--help"},
          {"--version"},
          {"inspect", "induction"},
          {"run", "-m", "induction", "-t", text},
          {"metrics", "-m", "induction", "-t", text, "--csv"},
          {"run", "-m", "induction", "-t", text, "--edit", "0.0: patch z from \"Mr and Mrs Fox\" aligned start"},
          {"sweep", "ablate", "-m", "induction", "-t", text},
          {"corpus", "-m", "induction", "--lines", (source_dir() / "assets/examples/induction.txt").string()},
          {"detect", "k == q - 1", "-m", "induction", "-t", text}};
}

std::string words(const std::vector<std::string>& command) {
  std::string out;
  for (const std::string& word : command) out += word + " ";
  return out;
}

}  // namespace

TEST_CASE("a full or closed standard error changes nothing of what a command does") {
  for (const auto& command : commands()) {
    CAPTURE(words(command));
    const Finished usual = run_cli(command);
    CAPTURE(usual.err);
    REQUIRE(usual.code == 0);
    REQUIRE_FALSE(usual.out.empty());
    for (const Stream err : {Stream::full, Stream::closed}) {
      const Finished there = run_cli(command, {.err = err});
      CHECK(there.code == 0);
      CHECK(there.out.size() > usual.out.size() * 9 / 10);  // milliseconds have more digits or fewer
    }
  }
  for (const Stream err : {Stream::full, Stream::closed}) {  // and failures keep their codes
    CHECK(run_cli({"inspect", "no/such/model"}, {.err = err}).code == 1);
    CHECK(run_cli({"inspect", "--no-such-option"}, {.err = err}).code == 2);
  }
}

TEST_CASE("a full or closed standard output is an error with a message, also of --help") {
  for (const auto& command : commands()) {
    CAPTURE(words(command));
    const Finished full = run_cli(command, {.out = Stream::full});
    CHECK(full.code == 1);
    CHECK(full.err.find("standard output: expected room for all of the result, found No space left on device") !=
          std::string::npos);
    const Finished closed = run_cli(command, {.out = Stream::closed});
    CHECK(closed.code == 1);
    CHECK(closed.err.find("Bad file descriptor") != std::string::npos);
    CHECK(run_cli(command, {.out = Stream::full, .err = Stream::full}).code == 1);
  }
}

TEST_CASE("a reader that has seen enough ends a command without a word") {
  // Hours of work, were anybody to read it all.
  const Finished head =
      run_cli({"sample", "induction-2l", "--texts", "10000", "--tokens", "60"}, {.out = Stream::one_line});
  CHECK(head.code == 141);
  CHECK(head.err == "");
  const Finished list =
      run_cli({"metrics", "-m", "induction", "-t", "one two one", "--json"}, {.out = Stream::one_line});
  CAPTURE(list.err);
  CHECK((list.code == 141 || list.code == 0));  // 0: all of it had been written before
  CHECK(list.err.find("standard output") == std::string::npos);
}

TEST_CASE("messages never go into a file that took the number of a closed stream") {
  const fs::path folder = scratch_dir("cli-streams-number");
  const fs::path recipe = written_recipe(folder, small_recipe(60));
  const std::string whole = (folder / "whole").string(), quiet = (folder / "quiet").string();
  REQUIRE(run_cli({"train", recipe.string(), "-o", whole}).code == 0);
  REQUIRE(run_cli({"train", recipe.string(), "-o", quiet}, {.err = Stream::closed}).code == 0);
  CHECK(read_file(fs::path(quiet) / "model.safetensors") == read_file(fs::path(whole) / "model.safetensors"));
}

TEST_CASE("a training nobody can listen to goes on to its model") {
  const fs::path folder = scratch_dir("cli-streams-train");
  const fs::path recipe = written_recipe(folder, small_recipe(120));
  int number = 0;
  for (const Stream err : {Stream::full, Stream::closed, Stream::one_line}) {
    const fs::path out = folder / ("err" + std::to_string(number++));
    CHECK(run_cli({"train", recipe.string(), "-o", out.string()}, {.err = err}).code == 0);
    CHECK(fs::exists(out / "model.safetensors"));
    CHECK(fs::exists(out / "config.json"));
    CHECK_FALSE(fs::exists(out / "training.lock"));
  }
  for (const Stream stream : {Stream::full, Stream::closed}) {  // its last line cannot be written; the model is
    const fs::path out = folder / ("out" + std::to_string(number++));
    CHECK(run_cli({"train", recipe.string(), "-o", out.string()}, {.out = stream}).code == 1);
    CHECK(fs::exists(out / "model.safetensors"));
  }
}

}  // namespace headscope::streams_test
