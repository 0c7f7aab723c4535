#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

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

namespace {
Finished corpus_of(const std::string& model, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"corpus", "-m", model});
  return run_cli(arguments);
}
const std::string translate = (source_dir() / "models/tiny-translate").string(),
                  vit = (source_dir() / "models/tiny-vit").string();
}  // namespace

TEST_CASE("corpus: pairs are measured in three stacks, pictures as pictures; shards and --resume as of texts") {
  const auto folder = scratch_dir("corpus-cli-kinds");
  const auto file = [&](const char* name) { return (folder / name).string(); };
  write_file_atomically(file("pairs.tsv"),
                        "a cat saw the dog\tma mira ko velo seku\nthe dog saw a cat\tko velo ma mira seku\n");
  const Finished pairs = corpus_of(translate, {"--pairs", file("pairs.tsv"), "--csv", file("pairs.csv")});
  CAPTURE(pairs.err);
  REQUIRE(pairs.code == 0);
  for (const char* head : {"enc.1.0", "dec.0.2", "cross.0.1", "enc.chance"})
    CHECK(pairs.out.find(head) != std::string::npos);
  CHECK(pairs.out.find("pairs: 2 passages of at most 32 tokens in each text") != std::string::npos);
  CHECK(pairs.out.find("are of two texts") != std::string::npos);
  const std::string csv = read_file(file("pairs.csv"));
  CHECK(csv.starts_with("stack,layer,head,metric,passages,mean"));
  for (const char* row :
       {"\nenc,1,3,entropy,2,", "\ndec,0,0,sink,2,", "\ncross,1,2,max_weight,2,", "\ncross,0,0,previous_token,0,,,"})
    CHECK(csv.find(row) != std::string::npos);
  const Finished cut = corpus_of(translate, {"--translations", "6", "--window", "9"});
  CHECK(cut.code == 0);
  CHECK(cut.out.find("left out: longer than 9 tokens") != std::string::npos);
  const Finished none = corpus_of(translate, {"--translations", "1", "--window", "2"});
  CHECK(none.out ==
        "tiny-translate on 1 drawn pair, seed 1: 0 passages of at most 2 tokens in each text, 0 tokens in "
        "sources, 0 in targets, 1 pair left out: longer than 2 tokens\n");
  for (const auto& [model, draw] : {std::pair{translate, "--translations"}, std::pair{vit, "--shapes"}}) {
    const auto run = [&, model = model, draw = draw](std::vector<std::string> more) {
      more.insert(more.begin(), {draw, "5", "--seed", "2"});
      REQUIRE(corpus_of(model, more).code == 0);
    };
    run({"-o", file("whole.json")});
    run({"--shard", "0/2", "-o", file("a.json")});
    run({"--shard", "1/2", "-o", file("b.json")});
    REQUIRE(corpus_of(model, {"--merge", file("b.json"), file("a.json"), "-o", file("merged.json")}).code == 0);
    CHECK(read_file(file("merged.json")) == read_file(file("whole.json")));
    run({"-o", file("whole.json"), "--resume"});
    CHECK(read_file(file("merged.json")) == read_file(file("whole.json")));
  }
  const Finished pictures =
      corpus_of(vit, {reference("vision/picture.png").string(), reference("vision/picture.jpg").string()});
  REQUIRE(pictures.code == 0);
  CHECK(pictures.out.find("2 pictures") != std::string::npos);
  CHECK(pictures.out.find("2 passages, a picture of 65 tokens each") != std::string::npos);
  CHECK(pictures.out.find("duplicate_token") == std::string::npos);  // no picture offers evidence
}

TEST_CASE("corpus: what a model does not read is refused in one sentence") {
  const auto folder = scratch_dir("corpus-cli-refused");
  write_file_atomically(folder / "notes.txt", "a text, and no pair");
  const std::string notes = (folder / "notes.txt").string(),
                    gpt = (source_dir() / "assets/examples/induction").string();
  const auto refused = [](const std::string& model, const std::vector<std::string>& arguments,
                          const std::string& saying) {
    const Finished done = corpus_of(model, arguments);
    CAPTURE(done.err);
    CHECK(done.code != 0);
    CHECK(done.out.empty());
    CHECK(done.err.find(saying) != std::string::npos);
    CHECK(std::ranges::count(done.err, '\n') <= 2);  // the error, perhaps a hint
  };
  refused(vit, {notes}, "notes.txt: expected a picture, PNG or JPEG");
  refused(vit, {folder.string()}, "expected at least one picture, PNG or JPEG, found none");
  refused(vit, {"--stories", "2"}, "expected pictures");
  refused(vit, {"--pairs", notes}, "expected pictures");
  refused(vit, {"--lines", folder.string()}, "--lines: expected texts");
  refused(vit, {"--shapes", "2", "--window", "9"}, "65 tokens, which every picture is");
  refused(gpt, {"--pairs", notes}, "expected texts, since this model is of one stack");
  refused(gpt, {"--translations", "2"}, "expected texts");
  refused(gpt, {"--shapes", "2"}, "expected texts");
  refused(translate, {notes}, "expected pairs of a source and a target");
  refused(translate, {"--stories", "2"}, "expected pairs");
  refused(translate, {"--pairs", notes},
          "notes.txt, line 1: expected source<TAB>target, a pair in each line, found no tab");
  CHECK(corpus_of(translate, {"--pairs", "--lines", notes}).code == 2);
  CHECK(corpus_of(translate, {"--translations", "2", "--shapes", "2"}).code == 2);
  CHECK(corpus_of(translate, {"--translations", "2", notes}).code == 2);
}

TEST_CASE("corpus: an encoder, and a state space, whose weights are of any sign") {
  const Finished bert =
      corpus_of((source_dir() / "models/tiny-bert").string(), {(source_dir() / "docs/building.md").string()});
  CAPTURE(bert.err);
  CHECK(bert.code == 0);
  CHECK(bert.out.find("separator") != std::string::npos);
  const Finished mamba = corpus_of((source_dir() / "models/tiny-mamba").string(), {"--stories", "1", "--window", "32"});
  CHECK(mamba.code == 0);
  CHECK(mamba.out.find("Weights of any sign") != std::string::npos);
  CHECK(mamba.out.find("row_mass") != std::string::npos);
}

}  // namespace headscope::corpus_cli_test
