// animate: films of any command's pictures.

#include <doctest/doctest.h>

#include "core/base/file.h"
#include "core/io/picture.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"
#include "viz/export/recipe_note.h"

namespace headscope::animate_test {

using namespace testing;
namespace fs = std::filesystem;

namespace {
using Words = std::vector<std::string>;

Finished animate(const fs::path& out, const Words& options, const Words& command) {
  Words words{"animate", "-o", out.string()};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return run_cli(words);
}

Words softened(const std::string& tau) {
  return {"render",        "-m", (source_dir() / "models/tiny-gpt2").string(), "-t", "Anna sold pies", "--head", "0.1",
          "--temperature", tau};
}

std::size_t times(const std::string& bytes, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = bytes.find(what, at)) != std::string::npos; ++at) ++count;
  return count;
}
}  // namespace

TEST_CASE("a film has a picture for each value, forwards and back") {
  const auto folder = scratch_dir("animate");
  const Finished film =
      animate(folder / "t.apng", {"--over", "0.5..4:4", "--log", "--back", "--seconds", "0.2"}, softened("{}"));
  CAPTURE(film.err);
  REQUIRE(film.code == 0);
  CHECK(film.out == (folder / "t.apng").string() + "  6 pictures, 1.2 s\n");
  CHECK(times(read_file(folder / "t.apng"), "fcTL") == 6);
  const Finished gif = animate(folder / "t.gif", {"--over", "1,2"}, softened("{}"));
  CAPTURE(gif.err);
  REQUIRE(gif.code == 0);
  CHECK(read_file(folder / "t.gif").starts_with("GIF89a"));
}

TEST_CASE("a series is numbered, each picture that of the command itself, which it remembers") {
  const auto folder = scratch_dir("animate-series");
  const Finished series = animate(folder / "t.png", {"--over", "0.5..4:4", "--log"}, softened("{}"));
  CAPTURE(series.err);
  REQUIRE(series.code == 0);
  CHECK(series.out == (folder / "t-0.png").string() + " … " + (folder / "t-3.png").string() + "\n");
  const char* values[] = {"0.5", "1", "2", "4"};
  for (int i = 0; i < 4; ++i) {
    Words direct = softened(values[i]);
    direct.insert(direct.end(), {"-o", (folder / "direct.png").string()});
    REQUIRE(run_cli(direct).code == 0);
    const fs::path frame = folder / ("t-" + std::to_string(i) + ".png");
    CHECK(read_picture(frame) == read_picture(folder / "direct.png"));
    CHECK(read_recipe(frame).find(values[i]) != std::string::npos);
    const Finished again = run_cli({"render", "--again", frame.string()});
    CHECK(again.code == 0);
  }
  const Finished whole = animate(folder / "n.svg", {"--over", "8..11"}, {"mask", "window 3", "-n", "{}"});
  REQUIRE(whole.code == 0);
  for (const char* name : {"n-0.svg", "n-1.svg", "n-2.svg", "n-3.svg"}) CHECK(fs::exists(folder / name));
  CHECK_FALSE(fs::exists(folder / "n-4.svg"));
  REQUIRE(animate(folder / "n.pdf", {"--over", "8,9"}, {"mask", "window 3", "-n", "{}"}).code == 0);
  CHECK(run_cli({"render", "--again", (folder / "n-1.pdf").string()}).code == 0);
}

TEST_CASE("words of the command stay as they were typed, in brackets too; saved pictures make a film") {
  const auto folder = scratch_dir("animate-words");
  const std::string text = "[CLS] a, b [MASK] [SEP]";
  const Finished done = animate(folder / "t.png", {"--over", "0.1,1.2"},
                                {"render", "-m", "tiny-bert", "--special", "-t", text, "--head", "{}"});
  CAPTURE(done.err);
  REQUIRE(done.code == 0);
  CHECK(read_recipe(folder / "t-1.png").find(text) != std::string::npos);
  const Finished film =
      animate(folder / "t.gif", {"--over", (folder / "t-0.png").string() + "," + (folder / "t-1.png").string()},
              {"render", "--again", "{}"});
  CAPTURE(film.err);
  CHECK(film.code == 0);
  CHECK(film.out == (folder / "t.gif").string() + "  2 pictures, 0.2 s\n");
}

TEST_CASE("what makes no film says what was expected, before any work") {
  const auto folder = scratch_dir("animate-errors");
  const auto usage = [&](const fs::path& out, const Words& options, const Words& command, const char* words) {
    const Finished done = animate(out, options, command);
    CAPTURE(done.err);
    CHECK(done.code == 2);
    CHECK(done.first_error().find(words) != std::string::npos);
  };
  usage(folder / "t.mp4", {"--over", "1,2"}, softened("{}"), ".gif or .apng");
  usage(folder / "t.gif", {"--over", "1,2"}, softened("2"), "\"{}\"");
  usage(folder / "t.gif", {"--over", "1..2:0"}, softened("{}"), "FROM..TO");
  usage(folder / "t.gif", {"--over", "0..2:3", "--log"}, softened("{}"), "above 0");
  usage(folder / "t.gif", {"--over", "1..99999"}, softened("{}"), "at most 2000");
  usage(folder / "t.gif", {"--over", "1,2"}, {"animate", "{}"}, "film of a film");
  usage(folder / "t.gif", {"--over", "1,2"}, {"render", "-m", "tiny-gpt2", "-", "--temperature", "{}"}, "read once");
  usage(folder / "t.png", {"--over", "1,2", "--back"}, softened("{}"), "--back");
  usage(folder / "t.gif", {"--over", "1,2"}, {"paint", "{}"}, "paint");
  const Finished behind = run_cli({"render", "-m", "tiny-gpt2", "-t", "animate", "--", "-"});  // lest it is lost
  CHECK(behind.code == 2);
  CHECK(behind.first_error().find("animate alone") != std::string::npos);
  const Finished empty = run_cli({"animate", "-o", (folder / "t.gif").string(), "--over", "1,2"});
  CHECK(empty.code == 2);
  const Finished wrong = animate(folder / "t.gif", {"--over", "1,2"}, {"render", "-m", "absent-{}", "-t", "a"});
  CHECK(wrong.code == 1);
  CHECK(wrong.err.find("absent-1") != std::string::npos);
  CHECK_FALSE(fs::exists(folder / "t.gif"));
}

}  // namespace headscope::animate_test
