#include <doctest/doctest.h>

#include <filesystem>

#include "core/base/file.h"
#include "core/base/json.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::corpus_cli_test {

using namespace testing;

namespace {
Finished corpus(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"corpus", "-m", (source_dir() / "assets/examples/induction").string()});
  return run_cli(arguments);
}
}  // namespace

TEST_CASE("corpus: shards merged equal one run, byte for byte, and the table and the CSV say the same") {
  const auto folder = scratch_dir("corpus-cli");
  const auto file = [&](const char* name) { return (folder / name).string(); };
  const std::vector<std::string> what{"--stories", "5", "--seed", "2", "--window", "24"};
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), what.begin(), what.end());
    const Finished finished = corpus(more);
    CAPTURE(finished.err);
    REQUIRE(finished.code == 0);
    CHECK(finished.err.find("tokens/s") != std::string::npos);
    return finished;
  };
  const Finished whole = run({"-o", file("whole.json"), "--csv", file("whole.csv")});
  CHECK(whole.out.find("5 stories, seed 2") != std::string::npos);
  CHECK(whole.out.find("chance") != std::string::npos);
  run({"--shard", "0/2", "-o", file("a.json")});
  run({"--shard", "1/2", "-o", file("b.json")});
  const Finished merged = corpus({"--merge", file("b.json"), file("a.json"), "-o", file("merged.json")});
  REQUIRE(merged.code == 0);
  CHECK(read_file(file("merged.json")) == read_file(file("whole.json")));
  CHECK(merged.out == whole.out);
  CHECK(read_file(file("whole.csv")).starts_with("layer,head,metric,passages,mean,spread,smallest,decile_1"));
  // Finished results gone on with stay what they are.
  run({"-o", file("whole.json"), "--resume"});
  CHECK(read_file(file("merged.json")) == read_file(file("whole.json")));

  const Finished half = corpus({"--merge", file("a.json")});
  CHECK(half.code == 1);
  CHECK(half.err.find("1/2") != std::string::npos);
}

TEST_CASE("corpus: mistakes in the command are said, and no file is left") {
  const auto folder = scratch_dir("corpus-cli-errors");
  CHECK(corpus({}).code == 2);
  CHECK(corpus({"--merge"}).code == 2);
  CHECK(corpus({"--stories", "2", "--shard", "2/2"}).code == 2);
  CHECK(corpus({"--stories", "2", "file.txt"}).code == 2);
  CHECK(corpus({"--stories", "2", "--resume"}).code == 2);
  CHECK(corpus({(folder / "absent.txt").string()}).code == 1);
  CHECK(corpus({"--stories", "2", "--window", "100000"}).code == 1);
  CHECK(std::filesystem::is_empty(folder));
}

}  // namespace headscope::corpus_cli_test
