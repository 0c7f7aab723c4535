// headscope-cli positions, mask and cache: the program itself, its numbers against the definitions.

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <sstream>
#include <vector>

#include "core/base/json.h"
#include "core/io/safetensors.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::positions_cli_test {

using namespace testing;

namespace {
std::string out_of(const std::vector<std::string>& arguments) {
  const Finished finished = run_cli(arguments);
  CAPTURE(finished.err);
  REQUIRE(finished.code == 0);
  return finished.out;
}
bool says(const std::string& text, const char* words) {
  return text.find(words) != std::string::npos;
}
}  // namespace

TEST_CASE("positions prints tables of every method that needs no model") {
  CHECK(says(out_of({"positions"}), "transformer-xl"));
  const std::string slopes = out_of({"positions", "alibi", "--heads", "8"});
  CHECK(says(slopes, "0.5\n"));
  CHECK(says(slopes, "0.00390625"));
  const std::string buckets = out_of({"positions", "t5"});
  CHECK(says(buckets, "    31   113    …"));
  CHECK(says(buckets, "     8     8    8"));
  CHECK(
      says(out_of({"positions", "sinusoidal", "--dimensions", "4", "--count", "2"}), "1 0.8415 0.5403 0.0100 0.9999"));
  CHECK(says(out_of({"positions", "binary"}), "13 1 0 1 1"));
  CHECK(says(out_of({"positions", "chunks", "--chunk", "6", "--context", "10", "--count", "13"}),
             "   9   8   7   6   5   4   6   5   4   3   2   1   0\n"));
  CHECK(run_cli({"positions", "clock"}).code == 2);
  CHECK(run_cli({"positions", "none"}).code == 2);
  CHECK(run_cli({"positions", "sinusoidal", "--dimensions", "5"}).code == 2);
}

TEST_CASE("positions rope takes a score of the model apart, and draws it") {
  const auto folder = scratch_dir("cli-positions");
  const std::string picture = (folder / "dials.png").string();
  const std::string out = out_of({"positions", "rope", "-m", "tiny-llama", "-t", "Long ago, Rosa lived by the sea.",
                                  "--head", "1.2", "--row", "6", "--key", "2", "-o", picture});
  std::istringstream lines(out);
  std::string line;
  double sum = 0, score = 0, shifted = 1;
  int pairs = 0;
  while (std::getline(lines, line)) {
    if (const auto at = line.rfind(' '); !line.empty() && at != std::string::npos &&
                                         (line[at + 1] == '+' || line[at + 1] == '-') &&
                                         line.find("score") == std::string::npos)
      sum += std::stod(line.substr(at + 1)), ++pairs;
    if (line.starts_with("score at (6, 2): ")) {
      score = std::stod(line.substr(17));
      shifted = std::stod(line.substr(line.rfind(' ') + 1));
    }
  }
  CHECK(pairs == 16);
  CHECK(sum == doctest::Approx(score).epsilon(1e-3));
  CHECK(score == shifted);
  CHECK(std::filesystem::exists(picture));
  CHECK(says(run_cli({"positions", "rope", "-m", "tiny-llama", "-t", "Once", "--row", "9"}).err, "--row"));
}

TEST_CASE("mask counts cells, runs in the model, and refuses what is no mask") {
  const std::string out = out_of({"mask", "window 3", "-n", "10"});
  CHECK(says(out, "window 3 over 10 tokens: 27 cells, 27.0 % of all, 49.1 % of the causal ones"));
  CHECK(says(out, "a cache keeps 2 of 10 keys"));
  CHECK(says(out, " · # # # · · · · · ·"));
  CHECK(says(out_of({"mask", "padding 3", "-n", "3"}), "3 rows see no key and become zero"));
  CHECK(says(out_of({"mask", "list"}), "documents A,B,…"));
  CHECK(says(out_of({"mask", "window 2", "-m", "tiny-gpt2", "-t", "Once there was a girl named Lily."}),
             "nats with it in every head"));
  const std::string state = out_of({"mask", "window 2", "-m", "tiny-mamba", "-t", "Once there was a girl named Lily."});
  CHECK(says(state, "nats with it in every head"));
  CHECK_FALSE(says(state, "keys;"));  // of which a state keeps none
  CHECK(run_cli({"mask", "windwo 3"}).code == 2);
  CHECK(run_cli({"mask"}).code == 2);
  CHECK(run_cli({"mask", "window 3", "--json"}).code == 2);
}

TEST_CASE("mask draws the cells that a head's queries and keys hash to, and counts those") {
  const std::string text = "Once there was a girl named Lily. She had a cat.";
  const std::string hashed = out_of({"mask", "lsh 4 rounds 1 seed 1", "-m", "tiny-gpt2", "-t", text, "--head", "1.0"});
  CHECK(says(hashed, "of layer 1 head 0, its queries and keys"));
  CHECK_FALSE(says(hashed, "100.0 % of the causal ones"));
  const auto row = hashed.find(" # ");
  CHECK(row != std::string::npos);
  const std::string other = out_of({"mask", "lsh 4 rounds 1 seed 1", "-m", "tiny-gpt2", "-t", text, "--head", "0.1"});
  CHECK(hashed.substr(row) != other.substr(other.find(" # ")));
  const std::string shared = out_of({"mask", "reformer 4 rounds 1 seed 1", "-m", "tiny-gpt2", "-t", text});
  CHECK_FALSE(says(shared, "100.0 % of the causal ones"));
  CHECK(says(out_of({"mask", "lsh 4 rounds 1 seed 1", "-n", "8"}), "name a model and a text"));
}

TEST_CASE("all masks in one table: cells alone, and with a model work, cache and loss") {
  const auto cells = nlohmann::json::parse(out_of({"mask", "--table", "-n", "10", "--json"}))["masks"];
  CHECK(cells.size() == 18);
  CHECK(cells[0]["mask"] == "causal");
  CHECK(cells[0]["kept"] == doctest::Approx(55));
  CHECK_FALSE(cells[0].contains("loss"));
  for (const auto& each : cells)  // without queries and keys nothing is hashed
    if (const std::string mask = each["mask"]; mask.starts_with("lsh") || mask.starts_with("reformer"))
      CHECK(each["kept"].is_null());
  const auto encoder = nlohmann::json::parse(
      out_of({"mask", "--table", "-m", "tiny-bert", "-t", "Rosa sold signs.", "--json"}))["masks"];
  CHECK(encoder[0]["cache"].is_null());  // an encoder keeps none
  CHECK(encoder[0]["loss"].is_null());   // and is asked for nothing here
  CHECK(run_cli({"mask", "windwo 3", "--table"}).code == 2);
  CHECK(run_cli({"mask", "--table", "-o", "x.png"}).code == 2);
  const auto in_model = nlohmann::json::parse(out_of({"mask", "window 2", "--table", "-m", "tiny-gpt2", "-t",
                                                      "Once there was a girl named Lily.", "--json"}))["masks"];
  CHECK(in_model.size() == 19);
  CHECK(in_model[0]["mask"] == "window 2");
  CHECK(in_model[0]["loss"].get<double>() > 0);
  CHECK(in_model[0]["kl"].get<double>() > 0.01);  // another answer than as it is
  CHECK(in_model[1]["kl"] == doctest::Approx(0).scale(1e-6));
  CHECK(in_model[0]["flop"] < in_model[1]["flop"]);
  CHECK(in_model[0]["cache"] < in_model[1]["cache"]);
}

TEST_CASE("positions deberta tells a row's scores by their three products: the softmax of their sum is the pattern") {
  const std::string folder = reference("families/deberta_v2").string();
  const auto expected = SafetensorsFile::open(reference("families/deberta_v2") / "expected.safetensors");
  std::string ids;
  for (const std::int32_t id : expected.entry("tokens").items<std::int32_t>())
    ids += (ids.empty() ? "" : ",") + std::to_string(id);
  const std::string out =
      out_of({"positions", "deberta", "-m", folder, "--ids", ids, "--no-bos", "--head", "1.2", "--row", "4"});
  const Tensor pattern = expected.tensor("blocks.1.attn.hook_pattern").select(0, 2);
  std::istringstream lines(out);
  std::string line;
  std::vector<double> weights;
  double sum = 0;
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    double key = 0, contents = 0, to = 0, from = 0, score = 0, row = 0;
    if (!(words >> key >> contents >> to >> from >> score >> row)) continue;
    CHECK(key == static_cast<double>(weights.size()));
    CHECK(contents + to + from == doctest::Approx(score).epsilon(1e-3).scale(0.2));
    weights.push_back(std::exp(score));
    sum += weights.back();
  }
  REQUIRE(weights.size() == 13);
  for (Index key = 0; key < 13; ++key)
    CHECK(weights[static_cast<std::size_t>(key)] / sum ==
          doctest::Approx(static_cast<double>(pattern.at(4, key))).epsilon(1e-3).scale(0.01));
  // Of a model that has none they are drawn, and it says so.
  CHECK(says(out_of({"positions", "deberta", "-m", "tiny-gpt2", "-t", "Anna sold pies."}), "drawn from N(0, 1/√d)"));
}

TEST_CASE("cache lists what keys and values take") {
  const std::string out = out_of({"cache", "-m", "tiny-llama", "--tokens", "1", "--bytes", "4"});
  CHECK(says(out, "tiny-llama"));
  CHECK(says(out, "1.5 kB"));  // 2 · 3 layers · 2 heads · 32 numbers · 4 bytes
  CHECK(says(out, "DeepSeek-V2"));
  // Layers of two widths a row each, of those alone that keep keys of their own; of both kinds those that attend.
  const auto rows = [](const char* family) {
    return out_of({"cache", "-m", (reference("families") / family).string(), "--tokens", "1", "--bytes", "1"});
  };
  const std::string mixed = rows("gemma4_text-moe"), hybrid = rows("olmo_hybrid");
  CHECK(says(mixed, "1 of 3 layers"));
  CHECK(says(mixed, "24 B"));  // 2 · 1 layer · 2 heads · 6 numbers
  CHECK(says(mixed, "2 of 3 layers"));
  CHECK(says(mixed, "160 B"));  // 2 · 2 layers · 4 heads · 10 numbers
  CHECK(says(hybrid, "24 B"));  // 2 · 2 layers · 1 head · 6 numbers
}

}  // namespace headscope::positions_cli_test
