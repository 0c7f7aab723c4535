// headscope-cli with a model of pictures: every command and tool answers, or says in one sentence why it cannot.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/picture.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::vision_cli_test {

using namespace testing;
using nlohmann::json;

namespace {

const std::string model = reference("vision/vit").string(), picture = reference("vision/picture.png").string(),
                  jpeg = reference("vision/picture.jpg").string();

std::vector<std::string> on_picture(std::vector<std::string> command, std::vector<std::string> more = {}) {
  command.insert(command.end(), {"-m", model, "--image", picture});
  command.insert(command.end(), more.begin(), more.end());
  return command;
}

json answer(const std::vector<std::string>& words) {
  const Finished done = run_cli(words);
  CAPTURE(done.err);
  REQUIRE(done.code == 0);
  return json::parse(done.out);
}

/// One line that says what was expected, and nothing printed.
void refused(const std::vector<std::string>& words, const std::string& saying) {
  const Finished done = run_cli(words);
  CAPTURE(done.out);
  CAPTURE(done.err);
  CHECK(done.code != 0);
  CHECK(done.err.find(saying) != std::string::npos);
  CHECK(std::ranges::count(done.err, '\n') <= 2);  // the error, perhaps a hint
}

}  // namespace

TEST_CASE("read: every tool answers for a picture, or says in a sentence why it has nothing to say") {
  const std::map<std::string, std::string> without{{"loss", "what a picture shows stands nowhere in it"},
                                                   {"circuits", "this one reads patches of pictures"},
                                                   {"experts", "expert"}};
  for (const std::string tool :
       {"lens",     "attribution", "weighted", "circuits",       "rollout",  "flow",       "gradients", "composition",
        "singular", "sinks",       "massive",  "alternatives",   "residual", "norms",      "ffn",       "experts",
        "path",     "loss",        "patches",  "positions-grid", "classes",  "ask-patches"}) {
    CAPTURE(tool);
    std::vector<std::string> words;
    if (tool == "circuits" || tool == "alternatives") words = {"--head", "1.2"};
    if (tool == "massive") words = {"--threshold", "1.5"};
    if (const auto why = without.find(tool); why != without.end()) {
      refused(on_picture({"read", tool}, words), why->second);
      continue;
    }
    words.emplace_back("--json");
    const json found = answer(on_picture({"read", tool}, words));
    CHECK(found["tool"] == tool);
    CHECK_FALSE(found["rows"].empty());
    words.back() = "--csv";
    CHECK(run_cli(on_picture({"read", tool}, words)).code == 0);
  }
}

TEST_CASE("read: tools of pictures refuse a model of texts") {
  for (const std::string tool : {"patches", "positions-grid", "classes", "ask-patches"})
    refused({"read", tool, "-m", reference("gpt2-random").string(), "--ids", "1,2,3"}, "a model of pictures");
}

TEST_CASE("run tells the classes of a picture, before and after its patches are hidden") {
  const json found = answer(on_picture({"run"}, {"--json"}));
  REQUIRE(found["classes"].size() == 5);
  double sum = 0;
  for (const json& each : found["classes"]) sum += each["probability"].get<double>();
  CHECK(sum == doctest::Approx(1));
  CHECK(found["loss"].is_null());
  const json change = answer(on_picture({"read", "classes"}, {"--edit", "*@1..9: hide patches grey", "--json"}));
  CHECK(change["facts"]["kl"].get<double>() > 0);
  for (const json& each : change["rows"]) {
    const auto same =
        std::ranges::find_if(found["classes"], [&](const json& other) { return other["id"] == each["id"]; });
    REQUIRE(same != found["classes"].end());
    CHECK(each["before"].get<double>() == doctest::Approx((*same)["probability"].get<double>()));
    CHECK(each["class"] == (*same)["label"]);
  }
  const Finished text = run_cli(on_picture({"run"}));
  CHECK(text.out.find("12 × 12 pixels in 3 × 3 patches") != std::string::npos);
  CHECK(text.out.find("lighthouse") != std::string::npos);
}

TEST_CASE("read patches tells how a picture becomes tokens") {
  const json found = answer(on_picture({"read", "patches"}, {"--json"}));
  CHECK(found["facts"]["patches"] == 9);
  CHECK(found["facts"]["numbers"] == 48);
  CHECK(found["facts"]["tokens"] == 10);
  REQUIRE(found["rows"].size() == 9);
  CHECK(found["rows"][5]["token"] == "r1c2");
  CHECK(found["rows"][5]["x"] == 8);
  CHECK(found["rows"][5]["y"] == 4);
}

TEST_CASE("classes are named in questions: --token, --right") {
  const json found = answer(on_picture({"read", "attribution"}, {"--token", "bee", "--json"}));
  CHECK(found["facts"]["token"] == "bee");
  CHECK(found["facts"]["logit"].get<double>() ==
        doctest::Approx(found["facts"]["sum_of_parts"].get<double>()).epsilon(1e-3));
  const json ablation = answer(on_picture({"sweep", "ablate"}, {"--right", "bee", "--wrong", "boat", "--json"}));
  CHECK_FALSE(ablation.empty());
  refused(on_picture({"read", "attribution"}, {"--token", "no such class"}), "the name of a class");
}

TEST_CASE("sweeps of a picture: heads, another picture's activations, temperatures, circuits") {
  CHECK(run_cli(on_picture({"sweep", "ablate"}, {"--by", "mean-over-text", "--csv"})).code == 0);
  const Finished patch =
      run_cli({"sweep", "patch", "-m", model, "--clean", picture, "--corrupted", built_in_picture, "--csv"});
  CAPTURE(patch.err);
  CHECK(patch.code == 0);
  CHECK(std::ranges::count(patch.out, '\n') == 1 + 2 * 10);  // layers × tokens
  refused({"sweep", "patch", "-m", model, "--clean", picture, "--corrupted", picture}, "the same picture");
  CHECK(run_cli(on_picture({"sweep", "temperature"}, {"--count", "3", "--csv"})).code == 0);
  CHECK(run_cli(on_picture({"sweep", "circuit"}, {"--csv"})).code == 0);
}

TEST_CASE("a picture's rows are drawn over it, of one head, of all, of rollout") {
  const std::filesystem::path folder = scratch_dir("vision-pictures");
  const auto drawn = [&](const std::vector<std::string>& words, const std::string& name) {
    std::vector<std::string> all = on_picture(words, {"-o", (folder / name).string()});
    const Finished done = run_cli(all);
    CAPTURE(done.err);
    CHECK(done.code == 0);
    CHECK(std::filesystem::file_size(folder / name) > 500);
  };
  drawn({"render", "--patches", "--head", "1.0", "--smooth"}, "head.png");
  drawn({"render", "--patches"}, "all.png");
  drawn({"render", "--patches", "--row", "4"}, "all-r1c0.svg");
  drawn({"render"}, "grid.png");
  drawn({"read", "rollout", "--patches"}, "rollout.png");
  drawn({"read", "flow", "--patches", "--smooth"}, "flow.svg");
  drawn({"read", "patches"}, "patches.png");
  drawn({"read", "positions-grid"}, "positions.png");
  CHECK(read_file(folder / "positions.png").size() > 1000);
}

TEST_CASE("metrics, verify, inspect, compare and capture know pictures; what needs a text says so") {
  CHECK(answer(on_picture({"metrics"}, {"--json"})).contains("heads"));
  refused({"metrics", "-m", model, "--repeated"}, "picture");
  const Finished verified = run_cli({"verify", model, picture, jpeg});
  CAPTURE(verified.err);
  CHECK(verified.code == 0);
  CHECK(verified.out.find("agrees") != std::string::npos);
  const Finished inspected = run_cli({"inspect", model});
  CHECK(inspected.code == 0);
  CHECK(inspected.out.find("12 × 12 pixels as 3 × 3 patches behind CLS") != std::string::npos);
  const std::filesystem::path folder = scratch_dir("vision-capture");
  const std::string file = (folder / "t.safetensors").string();
  CHECK(run_cli(on_picture({"capture"}, {"-o", file, "--sites", "embed,resid_post"})).code == 0);
  CHECK(run_cli({"render", "--trace", file, "--patches", "--head", "0.1", "-o", (folder / "t.png").string()}).code ==
        0);
  refused({"generate", "-m", model, "--image", picture}, "picture");
  refused({"run", "-m", model, "-t", "a text"}, "--image FILE");
  refused({"run", "-m", reference("gpt2-random").string(), "--image", picture}, "a text, which this model reads");
  refused({"run", "-m", model, "--image", "/nowhere.png"}, "nowhere.png");
}

}  // namespace headscope::vision_cli_test
