// headscope-cli read: every tool answers in every form, and its numbers agree with one another.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>

#include "core/base/file.h"
#include "core/base/json.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::read_test {

using namespace testing;
using nlohmann::json;

namespace {
std::vector<std::string> with(std::vector<std::string> words, const std::string& tool, const std::string& folder) {
  std::vector<std::string> all{"read", tool, "-m", reference(folder).string(), "--ids", "5,9,5,30,9,5,17,2,11,3,8,14"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}
json answer(const std::string& tool, const std::string& folder, std::vector<std::string> words = {}) {
  words.emplace_back("--json");
  const Finished done = run_cli(with(std::move(words), tool, folder));
  CAPTURE(done.err);
  REQUIRE(done.code == 0);
  return json::parse(done.out);
}
}  // namespace

TEST_CASE("read: every tool as a table, CSV and JSON, on both families") {
  for (const std::string folder : {"gpt2-random", "llama-gqa"})
    for (const std::string tool :
         {"lens", "attribution", "weighted", "circuits", "rollout", "flow", "gradients", "composition", "singular",
          "few-bits", "sinks", "massive", "alternatives", "residual", "norms", "ffn", "path", "loss"}) {
      CAPTURE(tool);
      std::vector<std::string> words;
      if (tool == "circuits" || tool == "alternatives") words = {"--head", "1.2"};
      if (tool == "massive") words = {"--threshold", "2"};
      const json found = answer(tool, folder, words);
      CHECK(found["tool"] == tool);
      CHECK_FALSE(found["rows"].empty());
      const Finished table = run_cli(with(words, tool, folder));
      CHECK(table.code == 0);
      CHECK(table.out.find(found["model"]["name"].get<std::string>()) != std::string::npos);
      words.emplace_back("--csv");
      const Finished csv = run_cli(with(words, tool, folder));
      CHECK(csv.code == 0);
      // A line of titles and one for each row.
      CHECK(std::ranges::count(csv.out, '\n') == static_cast<long>(found["rows"].size()) + 1);
    }
}

TEST_CASE("read: numbers agree with one another") {
  const json attribution = answer("attribution", "gpt2-random");
  double sum = 0;
  for (const json& row : attribution["rows"]) sum += row["value"].get<double>();
  CHECK(sum == doctest::Approx(attribution["facts"]["logit"].get<double>()).epsilon(1e-4));
  CHECK(attribution["facts"]["sum_of_parts"].get<double>() == doctest::Approx(sum));

  const json rollout = answer("rollout", "llama-gqa");
  double row = 0;
  for (const json& cell : rollout["rows"])
    if (cell["query"] == 7) row += cell["rollout"].get<double>();
  CHECK(row == doctest::Approx(1));

  const json other = answer("alternatives", "llama-gqa", {"--head", "1.2", "--share", "0.5"});
  CHECK(other["facts"]["output"].get<double>() < 1e-6);
  double weights = 0;
  for (const json& key : other["rows"]) weights += key["other"].get<double>();
  CHECK(weights == doctest::Approx(1));

  const json lens = answer("lens", "gpt2-random", {"--position", "-1"});
  CHECK(lens["rows"].size() == 5);
  CHECK(lens["rows"].back()["kl_to_answer"] == 0);
}

TEST_CASE("read massive --zero sets to 0 all that the rule finds, however few are listed") {
  for (const std::string folder : {"gpt2-random", "llama-gqa"}) {
    const json one = answer("massive", folder, {"--threshold", "2", "--top", "1", "--zero"}),
               all = answer("massive", folder, {"--threshold", "2", "--top", "100000", "--zero"});
    CHECK(one["rows"].size() == 1);
    REQUIRE(all["rows"].size() > 10);
    CHECK(one["facts"]["massive"] == all["rows"].size());
    CHECK(one["facts"]["zeroed"] == all["rows"].size());
    CHECK(one["facts"]["loss_after"] == all["facts"]["loss_after"]);
    CHECK(one["facts"]["loss_after"] != one["facts"]["loss_before"]);
    const json paper = answer("massive", folder, {"--paper"});
    CHECK(paper["facts"]["massive"] == paper["facts"]["massive_by_paper"]);
  }
  CHECK(run_cli(with({"--paper", "--threshold", "3"}, "massive", "gpt2-random")).code == 2);
}

TEST_CASE("read singular: the median of an even count is the mean of the two middle values") {
  const json every = answer("singular", "gpt2-random", {"--full"});
  std::vector<double> sigma;
  for (const json& row : every["rows"])
    if (row["layer"] == 0 && row["matrix"] == "q") sigma.push_back(row["sigma"].get<double>());
  REQUIRE(sigma.size() == 32);
  const json row = answer("singular", "gpt2-random")["rows"][0];
  CHECK(row["matrix"] == "q");
  CHECK(row["median"].get<double>() == doctest::Approx((sigma[15] + sigma[16]) / 2).epsilon(1e-12));
}

TEST_CASE("read: blocks and whole models, their other forms") {
  const json rows = answer("norms", "gpt2-random", {"--row", "4 6 0 0", "--row", "1 2 3 3"});
  std::vector<double> sums;
  for (const json& cell : rows["rows"])
    if (cell["norm"] == "Sum, per feature") sums.push_back(cell["after"].get<double>());
  REQUIRE(sums.size() == 8);
  CHECK(sums[0] == doctest::Approx(0.8));
  CHECK(sums[1] == doctest::Approx(0.75));
  CHECK(sums[7] == 1);

  const json shape =
      answer("ffn", "llama-gqa", {"--shape", "gpt2 layers=12 width=768 heads=12 vocab=50257 context=1024"});
  CHECK(shape["facts"]["parameters"] == 124439808);
  CHECK(run_cli(with({"--shape", "gpt2 layers=12"}, "ffn", "llama-gqa")).code == 2);

  const json placed = answer("residual", "llama-gqa", {"--placement"});
  const json plain = answer("loss", "llama-gqa", {"--prefixes"});
  CHECK(placed["facts"]["loss_pre"].get<double>() == doctest::Approx(plain["facts"]["mean"].get<double>()));
  const json moved = answer("loss", "llama-gqa", {"--edit", "*: post norm"});
  CHECK(placed["facts"]["loss_post"].get<double>() == doctest::Approx(moved["facts"]["mean"].get<double>()));
  CHECK(plain["facts"]["prefix_difference"].get<double>() < 1e-3);
  double sum = 0;
  for (const json& token : plain["rows"]) sum += token["loss"].get<double>();
  CHECK(sum / static_cast<double>(plain["rows"].size()) == doctest::Approx(plain["facts"]["mean"].get<double>()));
  CHECK(answer("residual", "gpt2-random", {"--stack", "--layers", "3", "--stack-width", "16"})["rows"].size() == 3);
}

TEST_CASE("read state: means of layers are those of their lanes, and a model with attention says so") {
  const json layers = answer("state", "families/mamba2");
  const json lanes = answer("state", "families/mamba2", {"--layer", "1"});
  REQUIRE(layers["rows"].size() == 2 * 12);
  REQUIRE(lanes["rows"].size() == 12 * 6);
  for (const char* number : {"delta", "kept", "written"}) {
    double mean = 0;
    for (const json& row : lanes["rows"])
      if (row["position"] == 7) mean += row[number].get<double>() / 6;
    CHECK(layers["rows"][12 + 7][number].get<double>() == doctest::Approx(mean));
  }
  CHECK(layers["facts"]["lanes"] == 6);
  const Finished other = run_cli(with({}, "state", "families/mistral"));
  CHECK(other.code == 1);
  CHECK(other.err.find("one with attention") != std::string::npos);
  for (const std::string tool : {"weighted", "composition", "sinks"}) {
    const Finished refused = run_cli(with({}, tool, "families/mamba2"));
    CHECK(refused.code == 1);
    CHECK(refused.err.find("a model with attention") != std::string::npos);
  }
}

TEST_CASE("read experts: who took which token adds up to the loads, and a model without experts says so") {
  const json taken = answer("experts", "families/qwen3_moe"),
             loads = answer("experts", "families/qwen3_moe", {"--loads"});
  CHECK(taken["facts"]["experts"] == 7);
  CHECK(taken["facts"]["per_token"] == 3);
  CHECK(taken["rows"].size() == 3 * 12 * 3);  // layers with experts, tokens, experts of each
  CHECK(loads["rows"].size() == 3 * 7);
  for (const json& row : loads["rows"]) {
    const auto of_it = [&](const json& one) { return one["layer"] == row["layer"] && one["expert"] == row["expert"]; };
    CHECK(row["tokens"] == std::ranges::count_if(taken["rows"], of_it));
    CHECK(row["load"].get<double>() == doctest::Approx(row["tokens"].get<double>() / 36));
    CHECK(row["layer"] != 2);  // of an MLP for all
  }
  const auto folder = scratch_dir("read-experts");
  for (const std::string layer : {"0", "3"})
    CHECK(run_cli(with({"--layer", layer, "-o", (folder / "x.svg").string()}, "experts", "families/qwen3_moe")).code ==
          0);
  const Finished dense = run_cli(with({"--layer", "2"}, "experts", "families/qwen3_moe"));
  CHECK(dense.code == 1);
  CHECK(dense.err.find("a layer that has experts") != std::string::npos);
  const Finished none = run_cli(with({}, "experts", "llama-gqa"));
  CHECK(none.code == 1);
  CHECK(none.err.find("one MLP in each layer") != std::string::npos);
  const Finished neurons = run_cli(with({}, "ffn", "families/mixtral"));
  CHECK(neurons.code == 1);
  CHECK(neurons.err.find("experts") != std::string::npos);
}

TEST_CASE("read rollout draws a square map, queries and keys being the same tokens") {
  const std::filesystem::path file = scratch_dir("cli-rollout") / "rollout.svg";
  std::string text;  // too long for a number in each cell
  for (int i = 0; i < 12; ++i) text += "Anna sold pies and Ben sold milk. ";
  const Finished drawn = run_cli({"read", "rollout", "-m", "tiny-llama", "-t", text, "-o", file.string()});
  CAPTURE(drawn.err);
  REQUIRE(drawn.code == 0);
  const std::string svg = headscope::read_file(file);
  std::smatch size;
  REQUIRE(std::regex_search(svg, size, std::regex(R"re(id="matrix"[^>]* width="([0-9.]+)" height="([0-9.]+)")re")));
  CHECK(size[1] == size[2]);
  CHECK(std::stod(size[1]) > 600);
}

TEST_CASE("read: the stream's parts stand behind the stage that they lead to, also where two lead to one") {
  const json of_inputs = answer("residual", "families/gemma4_text");
  REQUIRE(of_inputs["rows"].size() == 1 + 6 * 4);
  CHECK(of_inputs["rows"][3]["stage"] == "0 input");
  CHECK(of_inputs["rows"][4]["stage"] == "0 scale");
  for (std::size_t row = 1; row < of_inputs["rows"].size(); ++row) CHECK(of_inputs["rows"][row]["added"].is_number());
  CHECK(std::abs(of_inputs["rows"][4]["cosine"].get<double>()) == doctest::Approx(1));
  CHECK(of_inputs["facts"]["left_of_embedding"].get<double>() > 0);
  const json parallel = answer("residual", "families/gpt_neox");
  REQUIRE(parallel["rows"].size() >= 4);
  CHECK(parallel["rows"][1]["stage"] == "0 attn");
  CHECK(parallel["rows"][1]["norm"].is_null());
  CHECK(parallel["rows"][1]["added"].is_number());
  CHECK(parallel["rows"][2]["stage"] == "0 mlp");
  CHECK(parallel["rows"][3]["stage"] == "0 block");
  CHECK(parallel["rows"][3]["norm"].is_number());
  CHECK(parallel["rows"][3]["added"].is_null());
}

TEST_CASE("read: pictures, and what goes wrong") {
  const auto folder = scratch_dir("read");
  const Finished drawn = run_cli(with({"-o", (folder / "lens.svg").string()}, "lens", "gpt2-random"));
  CHECK(drawn.code == 0);
  CHECK(std::filesystem::file_size(folder / "lens.svg") > 2000);
  for (const std::string tool : {"residual", "norms", "ffn", "path", "loss"}) {
    CAPTURE(tool);
    const auto file = folder / (tool + ".svg");
    CHECK(run_cli(with({"-o", file.string()}, tool, "gpt2-random")).code == 0);
    CHECK(std::filesystem::file_size(file) > 2000);
  }
  CHECK(run_cli(with({"-o", "x.gif"}, "lens", "gpt2-random")).code == 2);
  CHECK(run_cli(with({"-o", "x.png"}, "alternatives", "gpt2-random")).code == 2);
  CHECK(run_cli(with({}, "circuits", "gpt2-random")).code == 2);  // --head is required
  const Finished outside = run_cli(with({"--head", "7.0"}, "circuits", "gpt2-random"));
  CHECK(outside.code == 1);
  CHECK(run_cli(with({"--position", "40"}, "attribution", "gpt2-random")).code == 1);
  CHECK(run_cli({"read", "entrails"}).code == 2);
}

}  // namespace headscope::read_test
