// generate, sample and compare of the real program against the library.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "core/base/json.h"
#include "core/generate/generation.h"
#include "core/metrics/trace_difference.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::generate_command_test {

using namespace testing;
using nlohmann::json;

namespace {

json parsed(const Finished& finished) {
  CAPTURE(finished.err);
  REQUIRE(finished.code == 0);
  return json::parse(finished.out);
}

const char* const prompt = "Mr and Mrs Quill of Fox Hythe kept bees. Now Mr";

}  // namespace

TEST_CASE("generate --json tells what the library draws, step by step") {
  const json out = parsed(run_cli(
      {"generate",     "-m", "induction", "-t",   prompt,   "--tokens", "8",      "--temperature", "0.9",
       "--top-k",      "12", "--top-p",   "0.95", "--seed", "6",        "--json", "--edit",        "1.1: ablate zero",
       "--candidates", "3"}));
  Backend backend(1);
  const auto folder = source_dir() / "assets" / "examples" / "induction";
  const LoadedModel model = load_model(folder, backend);
  RunRequest request;
  request.text = prompt;
  Transcript transcript;
  for (const Token& token : tokenize(model, request)) transcript.prompt.push_back(token.id);
  REQUIRE(out["prompt"].size() == transcript.prompt.size());
  RunRequest like;
  like.edits = {parse_intervention("1.1: ablate zero", "test")};
  Generator generator(model, like);
  const Generator::Choice choice{{0.9, 12, 0.95}, 6};
  REQUIRE(out["texts"].size() == 1);
  const json& steps = out["texts"][0]["steps"];
  REQUIRE(steps.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    const auto step = generator.step({backend}, transcript, choice);
    transcript.steps.push_back(step);
    CHECK(steps[i]["token"] == step->token);
    CHECK(steps[i]["random"].get<double>() == step->random);
    const TokenDistribution d = token_distribution(step->logits, step->settings);
    const std::size_t rank = place_of(d, step->random);
    CHECK(steps[i]["rank"] == rank + 1);
    CHECK(steps[i]["probability"].get<double>() == doctest::Approx(d.plain[rank]).epsilon(1e-4));
    CHECK(steps[i]["kept"].get<double>() == doctest::Approx(d.kept[rank]).epsilon(1e-4));
    CHECK(steps[i]["tokens_kept"] == d.count);
    CHECK(steps[i]["candidates"].size() == 3);
    CHECK(steps[i]["cache_bytes"] == step->cache_bytes);
    CHECK(steps[i].at("held_bytes") == step->held_bytes());
    CHECK(step->held_bytes() > step->cache_bytes);
  }
  CHECK(out["texts"][0]["ids"] == json(transcript.ids()));
  CHECK(out["texts"][0]["text"] == model.tokenizer->decode(transcript.ids()));
}

TEST_CASE("sample writes the text that generate does; greedy needs no seed") {
  const auto text = [](std::vector<std::string> arguments) {
    const Finished finished = run_cli(arguments);
    CAPTURE(finished.err);
    REQUIRE(finished.code == 0);
    return finished.out;
  };
  CHECK(text({"sample", "induction", "-p", prompt, "--tokens", "6", "--seed", "3"}) ==
        text({"generate", "-m", "induction", "-t", prompt, "--tokens", "6", "--seed", "3"}));
  CHECK(text({"generate", "-m", "induction", "-t", prompt, "--tokens", "6", "--temperature", "0", "--seed", "1"}) ==
        text({"generate", "-m", "induction", "-t", prompt, "--tokens", "6", "--temperature", "0", "--seed", "2"}));
  const std::string table =
      text({"generate", "-m", "induction", "-t", prompt, "--tokens", "3", "--temperature", "0", "--steps"});
  CHECK(table.find("entropy") != std::string::npos);
  CHECK(run_cli({"generate", "-m", "induction", "-t", prompt, "--top-p", "0"}).code == 2);
}

TEST_CASE("compare lists the heads by difference, as the library finds them") {
  const json out = parsed(run_cli({"compare", "-m", "induction", "-t", prompt, "--with-text",
                                   "Mr and Mrs Hythe of Fox Quill kept bees. Now Mr", "--json"}));
  Backend backend(1);
  const LoadedModel model = load_model(source_dir() / "assets" / "examples" / "induction", backend);
  const auto traced = [&](const char* text) {
    RunRequest request;
    request.text = text;
    return run(model, request, {backend});
  };
  const auto a = traced(prompt), b = traced("Mr and Mrs Hythe of Fox Quill kept bees. Now Mr");
  const auto partner = align_traces(*a, *b);
  CHECK(out["partner"] == json(partner));
  const auto heads = head_differences(*a, *b, partner);
  REQUIRE(out["heads"].size() == heads.size());
  double last = 1;
  for (const json& head : out["heads"]) {
    const double value = head["total_variation"].get<double>();
    CHECK(value <= last);
    last = value;
    const auto& own = heads[head["layer"].get<std::size_t>() * 4 + head["head"].get<std::size_t>()];
    CHECK(value == doctest::Approx(own.total_variation).epsilon(1e-5));
    CHECK(head["jensen_shannon"].get<double>() == doctest::Approx(own.jensen_shannon).epsilon(1e-5));
  }
  const Finished csv = run_cli({"compare", "-m", "induction", "-t", prompt, "--edit", "0.*: ablate zero", "--csv"});
  REQUIRE(csv.code == 0);
  CHECK(csv.out.starts_with("layer,head,total_variation,jensen_shannon,rows,"));
  CHECK(std::ranges::count(csv.out, '\n') == 9);

  const auto picture = scratch_dir("cli-compare") / "pair.png";
  CHECK(
      run_cli({"compare", "-m", "induction", "-t", prompt, "--with-model", "tiny-gpt2", "-o", picture.string()}).code ==
      0);
  CHECK(std::filesystem::file_size(picture) > 1000);
  const Finished nothing = run_cli({"compare", "-m", "induction", "-t", prompt});
  CHECK(nothing.code == 2);
  CHECK(nothing.err.find("--with-text") != std::string::npos);
}

}  // namespace headscope::generate_command_test
