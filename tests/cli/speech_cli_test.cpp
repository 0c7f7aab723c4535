// A model of speech on the command line: a sound in place of a source, what it writes, when it was said, its picture.

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/safetensors.h"
#include "core/io/trace_file.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::speech_cli_test {

using namespace testing;
using nlohmann::json;

namespace {
Finished with(std::vector<std::string> words, const std::string& sound = "") {
  const std::string own = sound.empty() ? (reference("speech") / "sound.wav").string() : sound;
  words.insert(words.end(), {"-m", (reference("speech") / "whisper").string(), "--sound", own});
  return run_cli(words);
}
json answer(std::vector<std::string> words) {
  words.emplace_back("--json");
  const Finished done = with(std::move(words));
  CAPTURE(done.err);
  REQUIRE(done.code == 0);
  return json::parse(done.out);
}
}  // namespace

TEST_CASE("run and generate read a sound; what is written is what transformers writes") {
  const json whole = answer({"run", "-t", " hell"});
  CHECK(whole["tokens"].size() == 6);  // language, task and no times before the text
  CHECK(whole["tokens"][1]["label"] == "<|en|>");
  CHECK(whole["source_tokens"].size() == 50);
  CHECK(whole["source_tokens"][7]["label"] == "0.14 s");
  const auto expected = SafetensorsFile::open(reference("speech/whisper/expected.safetensors"));
  const auto written = expected.entry("written").items<std::int32_t>();
  const std::size_t given = expected.entry("prompt").items<std::int32_t>().size();
  const json steps = answer({"generate", "--temperature", "0", "--tokens", "6", "--steps"})["texts"][0]["steps"];
  REQUIRE(steps.size() == written.size() - given);
  for (std::size_t i = 0; i < steps.size(); ++i) CHECK(steps[i]["token"] == written[given + i]);
}

TEST_CASE("times, mechanisms, captures and pictures know the sound") {
  const json times = answer({"read", "times", "-t", " hello he"});
  CHECK(times["facts"]["heads"] == "0.1, 1.0, 1.2");
  REQUIRE(times["rows"].size() == 4);
  CHECK(times["rows"][0]["seconds"] == 0.0);
  CHECK(times["rows"][0]["target"] == 4);
  CHECK(with({"read", "times"}).first_error().find("a text, of which each token was said") != std::string::npos);
  CHECK(with({"mechanism", "linear", "--head", "0.0", "-t", " hello"}).code == 0);
  const auto folder = scratch_dir("speech-cli");
  const std::string file = (folder / "c.safetensors").string(), picture = (folder / "p.png").string();
  REQUIRE(with({"capture", "--part", "cross", "-o", file}).code == 0);
  CHECK(open_trace_file(file)->sound->keys == 50);
  const Finished drawn =
      run_cli({"render", "--trace", file, "--head", "1.0", "--row", "-1", "--patches", "-o", picture});
  CAPTURE(drawn.err);
  CHECK(drawn.code == 0);
  CHECK(std::filesystem::file_size(picture) > 4000);
}

TEST_CASE("a picture over the sound has the words where they were said, and is drawn again with them") {
  const std::string file = (scratch_dir("speech-cli-words") / "p.svg").string();
  for (const char* part : {"cross", "enc"}) {
    CAPTURE(part);
    const Finished drawn =
        with({"render", "-t", " hello he", "--part", part, "--head", "1.0", "--row", "-1", "--patches", "-o", file});
    CAPTURE(drawn.err);
    REQUIRE(drawn.code == 0);
    const std::string svg = read_file(file);
    CHECK(svg.find(">hello<") != std::string::npos);
    CHECK(svg.find("dynamic time warping over heads 0.1, 1.0, 1.2") != std::string::npos);
    const Finished again = run_cli({"render", "--again", file});
    CAPTURE(again.err);
    CHECK(again.out.find("the same as") != std::string::npos);
  }
}

TEST_CASE("sounds that cannot be read end in one error that names them") {
  const auto folder = scratch_dir("speech-cli");
  const std::string mp3 = (folder / "a.mp3").string();
  write_file_atomically(mp3, "ID3 and more");
  const Finished done = with({"run"}, mp3);
  CHECK(done.code == 1);
  CHECK(done.first_error().find("a.mp3: expected a sound: WAV") != std::string::npos);
  CHECK(with({"run", "--source", "words"}).code == 2);
  CHECK(with({"run"}, (folder / "none.wav").string()).code == 1);
}

}  // namespace headscope::speech_cli_test
