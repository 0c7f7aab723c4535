#include <doctest/doctest.h>

#include "core/base/file.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::cli_errors_test {

using namespace testing;

namespace {
std::string model() {
  return reference("gpt2-random").string();
}

std::string ids(int count) {
  std::string text = "0";
  for (int i = 1; i < count; ++i) text += ",0";
  return text;
}
}  // namespace

TEST_CASE("help and version are no errors, and go to standard output") {
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{"--help"},
                                                    {"--version"},
                                                    {"run", "--help"},
                                                    {"render", "--help"},
                                                    {"metrics", "--help"}}) {
    const Finished finished = run_cli(arguments);
    CHECK(finished.code == 0);
    CHECK(finished.out.find("headscope-cli") != std::string::npos);
    CHECK(finished.err.empty());
  }
  CHECK(run_cli({"--help"}).out.find("130 interrupted") != std::string::npos);
}

TEST_CASE("a mistake in the command ends with code 2, one line and a hint") {
  struct Mistake {
    std::vector<std::string> arguments;
    std::string says;
  };
  const Mistake mistakes[] = {
      {{}, "subcommand"},
      {{"frobnicate"}, "frobnicate"},
      {{"run", "--nonsense"}, "--nonsense"},
      {{"run"}, "--model is required"},
      {{"run", "-m", model()}, "a text is required"},
      {{"run", "-m", model(), "-t", "a", "--ids", "1"}, "at most 1"},
      {{"run", "-m", model(), "--ids", "1,x"}, "--ids"},
      {{"run", "-m", model(), "--ids", ""}, "--ids: expected a number, found an empty word"},
      {{"capture", "-m", model(), "--ids", "", "-o", "out.safetensors"},
       "--ids: expected a number, found an empty word"},
      {{"capture", "-m", model(), "-t", "a", "--layers", "", "-o", "out.safetensors"}, "--layers: expected a number"},
      {{"run", "-m", model(), "-t", "a", "--top", ""}, "--top: expected a number"},
      {{"run", "-m", model(), "-t", ""}, "a text is required"},
      {{"run", "-m", model(), "-t", "a", "--top", "0"}, "--top"},
      {{"run", "-m", model(), "-t", "a", "--cut", "middle"}, "--cut"},
      {{"run", "-m", model(), "-t", "a", "--bos", "--no-bos"}, "--no-bos"},
      {{"run", "-m", model(), "-t", "a", "--threads", "0"}, "--threads"},
      {{"capture", "-m", model(), "-t", "a"}, "-o is required"},
      {{"capture", "-m", model(), "-t", "a", "-o", "x.safetensors", "--sites", "qq"}, "\"qq\""},
      {{"capture", "-m", model(), "-t", "a", "-o", "x.safetensors", "--budget", "much"}, "\"much\""},
      {{"metrics", "-m", model(), "--repeated", "-t", "a"}, "leave the text away"},
      {{"metrics", "-m", model(), "-t", "a", "--period", "3"}, "--period"},
      {{"metrics", "--trace", "a", "-m", model()}, "--trace"},
      {{"render", "-m", model(), "-t", "a"}, "-o is required"},
      {{"render", "-m", model(), "-t", "a", "-o", "x.gif"}, ".png, .svg, .pdf or .csv"},
      {{"render", "-m", model(), "-t", "a", "-o", "x.png", "--head", "1"}, "LAYER.HEAD"},
      {{"render", "-m", model(), "-t", "a", "-o", "x.png", "--head", "1.-1"}, "LAYER.HEAD"},
      {{"render", "-m", model(), "-t", "a", "-o", "x.png", "--arcs"}, "one --head"},
      {{"render", "-m", model(), "-t", "a", "-o", "x.png", "--head", "0.0", "--bars"}, "--row"},
      {{"render", "-m", model(), "-t", "a", "-o", "x.png", "--width", "10", "--dpi", "10"}, "--width"},
      {{"render", "-m", model(), "-t", "a", "-o", "x.csv"}, "one --head"},
      {{"bench"}, "--model"},
      {{"trial", "nothing"}, "expected one of copy, heads, bottleneck, found \"nothing\""},
      {{"mechanism", "nothing", "-m", model(), "-t", "a"}, "a mechanism's id, found \"nothing\""},
      {{"mechanism", "--list", "nothing"}, "a mechanism's id, found \"nothing\""},
      {{"mechanism", "linear", "map=nothing", "-m", model(), "-t", "a"}, "nothing"},
      {{"mechanism", "softmax", "--random", "4", "--sees", "nothing"}, "nothing"},
      {{"mechanism", "softmax", "--residues", "1"}, "residues, letter 1"},
      {{"mechanism", "softmax", "--example", "nothing"}, "\"nothing\""},
      {{"sweep", "linear", "-m", model(), "-t", "a", "--with", "nothing"}, "\"nothing\""},
      {{"sweep", "patch", "-m", model(), "--clean", "a", "--corrupted", "b", "--align", "nothing"}, "--align"},
      {{"read", "ffn", "-m", model(), "-t", "a", "--shape", "nothing"}, "--shape"},
      {{"read", "norms", "-m", model(), "-t", "a", "--row", "nothing"}, "--row"},
      {{"read", "state", "-m", (source_dir() / "models/tiny-mamba").string(), "-t", "a", "--of", "nothing"}, "--of"},
      {{"metrics", "-m", model(), "--repeated", "--seed", "-1"}, "-1 is no whole number from 0"},
      {{"metrics", "-m", model(), "--repeated", "--seed", "18446744073709551616"}, "no whole number"},
      {{"metrics", "-m", model(), "--repeated", "--seed", "1.5"}, "no whole number"},
  };
  for (const Mistake& mistake : mistakes) {
    const Finished finished = run_cli(mistake.arguments);
    CAPTURE(finished.err);
    CHECK(finished.code == 2);
    CHECK(finished.out.empty());
    CHECK(finished.first_error().starts_with("headscope-cli: "));
    CHECK(finished.first_error().find(mistake.says) != std::string::npos);
    CHECK(finished.err.find("\n  hint: headscope-cli") != std::string::npos);
  }
}

TEST_CASE("the hint of a mistake names the command that has the help, below another one, too") {
  CHECK(run_cli({"expert", "tasks", "--nonsense"}).err.ends_with("\n  hint: headscope-cli expert tasks --help\n"));
  CHECK(run_cli({"run", "--nonsense"}).err.ends_with("\n  hint: headscope-cli run --help\n"));
  CHECK(run_cli({"frobnicate"}).err.ends_with("\n  hint: headscope-cli --help\n"));
}

TEST_CASE("what a newcomer types is answered: help as a word, an option that is none, a text without --text, an edit") {
  CHECK(run_cli({"help"}).out == run_cli({"--help"}).out);
  CHECK(run_cli({"help", "sweep", "ablate"}).out == run_cli({"sweep", "ablate", "--help"}).out);
  const auto says = [](std::vector<std::string> words, const std::string& what) {
    const Finished finished = run_cli(words);
    CAPTURE(finished.err);
    CHECK(finished.code == 2);
    CHECK(finished.err.find(what) != std::string::npos);
  };
  // Not what stands behind it.
  says({"run", "--modle", "induction", "-t", "a"}, "there is no option \"--modle\" of run");
  says({"read", "lens", "-m", model(), "--ids", "1", "--nope"}, "not expected: --nope");
  says({"run", "-m", model(), "hello"}, "a text goes behind --text");
  says({"run", "-m", model(), "--ids", "1", "--edit", "nonsense"}, "edits are: temperature TAU");
  says({"run", "-m", model(), "--ids", "1", "--edit", "ablate zero"}, "expected WHERE: in front of the edit");
}

TEST_CASE("an error in a file or in the data ends with code 1 and one clear line") {
  const auto folder = scratch_dir("cli-errors");
  headscope::write_file_atomically(folder / "broken.txt", std::string("ab\xFF"));
  headscope::write_file_atomically(folder / "empty.txt", std::string());
  headscope::write_file_atomically(folder / "short.safetensors", std::string("abc"));
  struct Fault {
    std::vector<std::string> arguments;
    std::string says;
    std::string input = {};
  };
  const std::string picture = (folder / "x.png").string();
  const Fault faults[] = {
      {{"run", "-m", (folder / "nowhere").string(), "-t", "a"}, "nowhere"},
      {{"run", "-m", folder.string(), "-t", "a"}, "short.safetensors"},  // whose tensors could say what it is
      {{"run", "-m", model(), "-f", (folder / "missing.txt").string()}, "missing.txt"},
      {{"run", "-m", model(), "-f", (folder / "empty.txt").string()}, "empty.txt: expected at least one character"},
      {{"run", "-m", model(), "-f", (folder / "broken.txt").string()},
       "broken.txt: expected UTF-8 text, found byte 0xFF at offset 2"},
      {{"run", "-m", model(), "-"}, "standard input"},
      {{"run", "-m", model(), "-"}, "standard input: expected UTF-8 text, found byte 0xC3 at offset 1", "a\xC3"},
      {{"run", "-m", model(), "--ids", "300"}, "found 300"},
      {{"run", "-m", model(), "--ids", ids(50)}, "2 too many"},
      {{"metrics", "--trace", (folder / "short.safetensors").string()}, "short.safetensors"},
      {{"metrics", "--trace", model() + "/model.safetensors"}, "model.safetensors"},
      {{"metrics", "-m", model(), "-t", "a", "--metric", "entropi"}, "entropi"},
      {{"metrics", "-m", model(), "--repeated", "--period", "100"}, "context"},
      {{"capture", "-m", model(), "-t", "abc", "-o", (folder / "no" / "t.safetensors").string()}, "t.safetensors"},
      {{"capture", "-m", model(), "-t", "abc", "-o", (folder / "t.safetensors").string(), "--budget", "10"}, "budget"},
      {{"capture", "-m", model(), "-t", "abc", "-o", (folder / "t.safetensors").string(), "--layers", "7"}, "7"},
      {{"capture", "-m", model(), "-t", "abc", "-o", (folder / "t.safetensors").string(), "--sites", "rot_q"}, "rot_q"},
      {{"render", "-m", model(), "-t", "abc", "-o", picture, "--head", "2.0"}, "2.0"},
      {{"render", "-m", model(), "-t", "abc", "-o", picture, "--head", "0.0", "--row", "3"}, "--row"},
      {{"render", "-m", model(), "-t", "abc", "-o", picture, "--dpi", "9999", "--inches", "900"}, "pixels"},
      {{"render", "-m", model(), "-t", "abc", "-o", (folder / "no" / "x.png").string()}, "x.png"},
      {{"inspect", (folder / "short.safetensors").string()}, "short.safetensors"},
      {{"bench", "-m", model(), "--lengths", "49"}, "found 49"},
  };
  for (const Fault& fault : faults) {
    const Finished finished = run_cli(fault.arguments, {fault.input});
    CAPTURE(finished.err);
    CHECK(finished.code == 1);
    CHECK(finished.out.empty());
    CHECK(finished.first_error().starts_with("headscope-cli: "));
    CHECK(finished.first_error().find(fault.says) != std::string::npos);
  }
  CHECK_FALSE(std::filesystem::exists(picture));
  CHECK_FALSE(std::filesystem::exists(folder / "t.safetensors"));
}

TEST_CASE("a text that is too long says how to cut it, and is cut when asked") {
  const Finished refused = run_cli({"run", "-m", model(), "--ids", ids(50)});
  CHECK(refused.err.find("--cut first or --cut last") != std::string::npos);
  CHECK(run_cli({"run", "-m", model(), "--ids", ids(50), "--cut", "first"}).code == 0);
  CHECK(run_cli({"run", "-m", model(), "--ids", ids(50), "--cut", "last"}).code == 0);
}

TEST_CASE("Ctrl-C ends the work cleanly with code 130") {
  std::string lengths = "40";
  for (int i = 0; i < 20000; ++i) lengths += ",40";
  const Finished finished =
      run_cli({"bench", "-m", model(), "--lengths", lengths, "--repeat", "1"}, {.interrupt = true});
  CHECK(finished.code == 130);
  CHECK(finished.err.find("headscope-cli: interrupted") != std::string::npos);
  CHECK(finished.out.empty());
}

TEST_CASE("names in a file reach the terminal as text, never as commands to it") {
  const std::filesystem::path folder = scratch_dir("escape");
  const auto file = [&](const std::string& name, const std::string& header, std::size_t data) {
    std::string bytes(8, '\0');
    bytes[0] = static_cast<char>(header.size() % 256);
    bytes[1] = static_cast<char>(header.size() / 256);
    headscope::write_file_atomically(folder / name, bytes + header + std::string(data, '\0'));
    return (folder / name).string();
  };
  const std::string evil = R"(\u001b]0;owned\u0007\u001b[2J)";
  const Finished good =
      run_cli({"inspect",
               file("good.safetensors", "{\"" + evil + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4)});
  CHECK(good.code == 0);
  CHECK(good.out.find("<1B>]0;owned<07><1B>[2J") != std::string::npos);
  const Finished bad = run_cli(
      {"inspect", file("bad.safetensors", "{\"" + evil + R"(":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4)});
  CHECK(bad.code == 1);
  CHECK(bad.err.find("tensor <1B>]0;owned<07><1B>[2J: expected 8 bytes") != std::string::npos);
  for (const std::string& said : {good.out, good.err, bad.out, bad.err}) CHECK(said.find('\x1b') == std::string::npos);
  const Finished long_one =
      run_cli({"inspect",
               file("long.safetensors",
                    "{\"" + std::string(50'000, 'n') + R"(":{"dtype":"F33","shape":[2],"data_offsets":[0,4]}})", 4)});
  CHECK(long_one.code == 1);
  CHECK(long_one.err.size() < 1000);
}

TEST_CASE("a text far too long, pipes and devices are answered at once") {
  const std::filesystem::path folder = scratch_dir("at-once");
  headscope::write_file_atomically(folder / "huge.txt", std::string(20'000'000, 'x'));
  const Finished huge = run_cli({"run", "-m", "tiny-gpt2", "-f", (folder / "huge.txt").string()});
  CHECK(huge.code == 1);
  CHECK(huge.first_error().find("found at least ") != std::string::npos);
  CHECK(run_cli({"run", "-m", "tiny-gpt2", "-f", "/dev/null"}).first_error().find("at least one character") !=
        std::string::npos);
  CHECK(run_cli({"run", "-m", "tiny-gpt2", "-f", "/dev/zero"}).first_error().find("at most") != std::string::npos);
  CHECK(run_cli({"inspect", "/dev/zero"}).first_error().find("pipe or device") != std::string::npos);
  CHECK(run_cli({"train", "/dev/zero", "-o", (folder / "out").string()}).first_error().find("pipe or device") !=
        std::string::npos);
  CHECK(run_cli({"run", "-m", "tiny-gpt2", "-f", "/dev/stdin"}, {.input = "In the village"}).code == 0);
}

}  // namespace headscope::cli_errors_test
