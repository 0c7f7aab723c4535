// A file that cannot be written is told of before anything is computed for it: here the model is not there either, and
// it is the file that the error names.

#include <doctest/doctest.h>

#include "core/base/file.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::unwritable_out_test {

using namespace testing;
namespace fs = std::filesystem;
using Words = std::vector<std::string>;

namespace {
void refused_before(const Words& words, const fs::path& out, const std::string& found) {
  CAPTURE(out.string());
  std::string command;
  for (const std::string& word : words) command += word + " ";
  CAPTURE(command);
  const Finished done = run_cli(words);
  CHECK(done.code == 1);
  CHECK(done.out == "");
  CHECK(done.err.starts_with("headscope-cli: " + out.string() + ": expected "));
  CHECK(done.err.find("found " + found) != std::string::npos);
}

/// With an OUT whose folder is missing, and with one that is a folder.
void refused_before(Words words, const fs::path& folder, const std::string& option, const std::string& ending) {
  fs::create_directories(folder / ("taken" + ending));
  words.insert(words.end(), {option, ""});
  words.back() = (folder / "missing" / ("x" + ending)).string();
  refused_before(words, words.back(), "No such file or directory");
  words.back() = (folder / ("taken" + ending)).string();
  refused_before(words, words.back(), "a folder");
}
}  // namespace

TEST_CASE("every command that writes a file tells before it computes that it cannot be written") {
  const fs::path folder = scratch_dir("unwritable");
  const std::string model = (folder / "no-model").string();
  const Words text{"-m", model, "-t", "Anna sold pies"};
  const auto with = [&](Words words, const Words& more = {}) {
    words.insert(words.end(), text.begin(), text.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  refused_before(with({"render"}), folder, "-o", ".png");
  refused_before(with({"render"}, {"--head", "0.1"}), folder, "-o", ".csv");
  refused_before(with({"capture"}), folder, "-o", ".safetensors");
  refused_before(with({"read", "lens"}), folder, "-o", ".svg");
  refused_before(with({"read", "experts"}), folder, "-o", ".png");
  refused_before(with({"generate"}, {"--beams", "2"}), folder, "-o", ".png");
  refused_before(with({"compare"}, {"--with-text", "b", "--head", "0.1"}), folder, "-o", ".pdf");
  refused_before(with({"expert"}), folder, "-o", ".json");
  refused_before({"expert", "tasks", "-m", model}, folder, "-o", ".json");
  refused_before({"corpus", "-m", model, "--stories", "3"}, folder, "-o", ".json");
  refused_before({"corpus", "-m", model, "--stories", "3"}, folder, "--csv", ".csv");
  refused_before({"corpus", "--merge", (folder / "no-part.json").string()}, folder, "--csv", ".csv");
  refused_before({"lesson", "export", "no-lesson"}, folder, "-o", ".html");
  // What is varied stands behind the file's name here.
  for (const auto& [out, found] :
       {std::pair{folder / "missing/x.gif", "No such file or directory"}, {folder / "taken.gif", "a folder"}}) {
    fs::create_directories(folder / "taken.gif");
    Words film{"animate", "--over", "1..2:2", "-o", out.string(), "--"};
    const Words drawn = with({"render"}, {"--head", "0.1", "--temperature", "{}"});
    film.insert(film.end(), drawn.begin(), drawn.end());
    refused_before(film, out, found);
  }
}

TEST_CASE("so do pictures, films and captures that are made again") {
  const fs::path folder = scratch_dir("unwritable-again");
  const std::string model = (folder / "model").string();
  fs::copy(source_dir() / "models/tiny-gpt2", model);
  const Words text{"-m", model, "-t", "Anna sold pies"};
  const auto make = [&](Words words, const std::string& name) {
    words.insert(words.begin() + 1, {"-o", (folder / name).string()});
    const Finished done = run_cli(words);
    CAPTURE(done.err);
    REQUIRE(done.code == 0);
  };
  const auto with = [&](Words words, const Words& more = {}) {
    words.insert(words.end(), text.begin(), text.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  make(with({"render"}, {"--head", "0.1"}), "a.png");
  make(with({"capture"}), "a.safetensors");
  make(with({"animate", "--over", "1,2", "--", "render"}, {"--head", "0.1", "--temperature", "{}"}), "a.gif");
  fs::remove_all(model);
  for (const char* name : {"a.png", "a.safetensors", "a.gif"}) {
    const fs::path file = folder / name;
    refused_before({name == std::string("a.safetensors") ? "capture" : "render", "--again", file.string()}, folder,
                   "-o", file.extension().string());
  }
}

TEST_CASE("so does a folder of pictures that cannot be made") {
  const fs::path folder = scratch_dir("unwritable-folder");
  write_file_atomically(folder / "file", "no folder");
  for (const fs::path& out : {folder / "file", folder / "file" / "below"}) {
    refused_before({"pictures", (source_dir() / "models/tiny-vit/recipe.json").string(), "-o", out.string()}, out,
                   "Not a directory");
    refused_before({"watch", folder.string(), "--once", "--pictures", out.string()}, out, "Not a directory");
  }
}

TEST_CASE("a tour that cannot be written says so before it computes anything") {
  const fs::path folder = scratch_dir("unwritable-tour");
  fs::create_directories(folder / "taken" / "heads.png");
  write_file_atomically(folder / "file", "no folder");
  refused_before({"tour", "-o", (folder / "taken").string()}, folder / "taken" / "heads.png", "a folder");
  refused_before({"tour", "-o", (folder / "file").string()}, folder / "file", "Not a directory");
}

}  // namespace headscope::unwritable_out_test
