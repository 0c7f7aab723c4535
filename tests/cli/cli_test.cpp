#include <doctest/doctest.h>

#include <cmath>
#include <fstream>
#include <numeric>
#include <sstream>

#include "core/attention/mechanism_report.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/io/safetensors.h"
#include "core/io/trace_file.h"
#include "core/metrics/metric.h"
#include "core/metrics/next_token.h"
#include "core/run/run_request.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::cli_test {

using namespace testing;
using nlohmann::json;

namespace {
std::string model(const char* name = "gpt2-random") {
  return reference(name).string();
}
std::string example() {
  return (source_dir() / "assets" / "examples" / "induction").string();
}
std::string example_text() {
  return (source_dir() / "assets" / "examples" / "induction.txt").string();
}

json parsed(const Finished& finished) {
  CAPTURE(finished.err);
  REQUIRE(finished.code == 0);
  return json::parse(finished.out);
}

std::vector<std::int32_t> expected_integers(const char* name) {
  const auto file = SafetensorsFile::open(reference("gpt2-random") / "expected.safetensors");
  return file.entry(name).items<std::int32_t>();
}

std::string expected_ids() {
  std::string text;
  for (const std::int32_t id : expected_integers("tokens")) text += (text.empty() ? "" : ",") + std::to_string(id);
  return text;
}

std::vector<std::vector<std::string>> csv(const std::string& text) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    auto& row = rows.emplace_back();
    std::istringstream cells(line + ",");
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
  }
  return rows;
}
}  // namespace

TEST_CASE("run prints the next tokens and the loss that the reference computes, as JSON") {
  const json out = parsed(run_cli({"run", "--model", model(), "--ids", expected_ids(), "--json"}));
  const auto file = SafetensorsFile::open(reference("gpt2-random") / "expected.safetensors");
  const auto top = expected_integers("top10_ids");
  const Tensor probabilities = file.tensor("top10_probs"), nll = file.tensor("nll");
  REQUIRE(out["next"].size() == 10);
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK(out["next"][i]["id"] == top[i]);
    CHECK(out["next"][i]["probability"].get<double>() ==
          doctest::Approx(double{probabilities.at(static_cast<Index>(i))}).epsilon(1e-4));
  }
  const auto losses = nll.values();
  const double mean = std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
  CHECK(out["loss"].get<double>() == doctest::Approx(mean).epsilon(1e-5));
  CHECK(out["perplexity"].get<double>() == doctest::Approx(std::exp(mean)).epsilon(1e-5));
  CHECK(out["heads"].size() == 8);
  CHECK(out["model"]["layers"] == 2);
  const double sink = double{file.tensor("metrics.sink").at(1, 2)};
  CHECK(out["heads"][6]["values"]["sink"].get<double>() == doctest::Approx(sink).epsilon(1e-4));
  CHECK(out["heads"][6]["layer"] == 1);
  CHECK(out["heads"][6]["head"] == 2);
}

TEST_CASE("positions after --mask are tokens that an encoder is asked for, counted from either end") {
  const std::string text = "In the village of Zoziford there lived Rosa.";
  const auto run = [&](const std::string& mask) {
    return run_cli({"run", "-m", "tiny-bert", "-t", text, "--mask", mask, "--top", "1", "--json"});
  };
  const json out = parsed(run("3,-3"));
  const auto tokens = static_cast<int>(out["tokens"].size());
  REQUIRE(out["masked"].size() == 2);
  CHECK(out["masked"][0]["position"] == 3);
  CHECK(out["masked"][1]["position"] == tokens - 3);
  CHECK(out["masked"][0]["label"] == out["masked"][0]["original"]);  // "village"
  CHECK(std::isfinite(out["loss"].get<double>()));
  CHECK(run("99").code == 1);
  CHECK(run("99").err.find("a position from 0 to") != std::string::npos);
  CHECK(run("3,,4").code == 2);
  CHECK(run("3,x").code == 2);
  CHECK(run_cli({"run", "-m", model(), "--ids", "1,2,3", "--mask", "1"}).code == 1);  // a decoder
  CHECK(run_cli({"metrics", "-m", "tiny-bert", "--repeated", "--mask", "3"}).code == 2);
  // Without one there is nothing to lose, and nothing to compare with what comes next.
  const Finished none = run_cli({"mask", "window 4", "-m", "tiny-bert", "-t", text});
  CHECK(none.code == 0);
  CHECK(none.out.find("no loss: there is no masked token") != std::string::npos);
  const Finished two = run_cli({"compare", "-m", "tiny-bert", "-t", text, "--mask", "3", "--with-model", "tiny-gpt2"});
  CHECK(two.code == 0);
  CHECK(two.out.find("nan") == std::string::npos);
}

TEST_CASE("a text is the same text from --text, a file and standard input") {
  const auto folder = scratch_dir("cli-input");
  const std::string text = "Mr and Mrs\n";
  write_file_atomically(folder / "t.txt", text);
  const auto tokens = [&](const Finished& finished) { return parsed(finished)["tokens"]; };
  const json given = tokens(run_cli({"run", "-m", model(), "--text", text, "--json"}));
  CHECK(given.size() == 11);
  CHECK(tokens(run_cli({"run", "-m", model(), "--file", (folder / "t.txt").string(), "--json"})) == given);
  CHECK(tokens(run_cli({"run", "-m", model(), "-", "--json"}, {text})) == given);
  CHECK(tokens(run_cli({"run", "-m", model(), "--file", "-", "--json"}, {text})) == given);
  CHECK(tokens(run_cli({"run", "-m", model(), "--text", text, "--bos", "--json"})).size() == 12);
}

TEST_CASE("run prints tables that say what the example does") {
  const Finished finished = run_cli({"run", "--model", "induction", "--file", example_text(), "--top", "1"});
  CHECK(finished.code == 0);
  CHECK(finished.err.empty());
  CHECK(finished.out.find("\ni ") != std::string::npos);
  CHECK(finished.out.find("  0.9739  ") != std::string::npos);
  CHECK(finished.out.find("perplexity") != std::string::npos);
  CHECK(finished.out.find("previous token 1.000 (chance 0.0") != std::string::npos);
  CHECK(finished.out.find("induction 0.999 (chance ") != std::string::npos);
  CHECK(finished.out.find("\t") == std::string::npos);
}

TEST_CASE("the CSV of metrics holds exactly the numbers of the library") {
  Backend backend(1);
  RunRequest request;
  request.text = "one two one two";
  const auto trace = run(load_model(example(), backend), request, {backend});
  const HeadTable table = head_table(*trace);
  const Finished finished =
      run_cli({"metrics", "--threads", "1", "-m", example(), "-t", request.text, "--csv", "--chance"});
  REQUIRE(finished.code == 0);
  const auto rows = csv(finished.out);
  REQUIRE(rows.size() == 1 + trace->maps.size());
  REQUIRE(rows[0].size() == 2 + 2 * metrics().size());
  int numbers = 0;
  for (std::size_t h = 0; h < trace->maps.size(); ++h) {
    CHECK(rows[h + 1][0] == std::to_string(trace->maps[h].layer()));
    CHECK(rows[h + 1][1] == std::to_string(trace->maps[h].head()));
    for (std::size_t m = 0; m < metrics().size(); ++m) {
      CHECK(rows[0][2 + 2 * m] == metrics()[m].id);
      for (const auto& [cell, value] : {std::pair(rows[h + 1][2 + 2 * m], table.value[h][m]),
                                        std::pair(rows[h + 1][3 + 2 * m], table.chance[h][m])}) {
        if (!std::isfinite(value)) {
          CHECK(cell.empty());
        } else {
          CHECK(std::stod(cell) == value);
          ++numbers;
        }
      }
    }
  }
  CHECK(numbers > 100);
}

TEST_CASE("metrics shows the chosen metrics only, and lists all with their formulas") {
  const auto rows = csv(run_cli({"metrics", "-m", model(), "-t", "abcabc", "--metric", "sink,entropy", "--csv"}).out);
  CHECK(rows.at(0) == std::vector<std::string>{"layer", "head", "sink", "entropy"});
  const json list = parsed(run_cli({"metrics", "--list", "--json"}));
  CHECK(list.size() == metrics().size());
  CHECK(list[0]["formula"].get<std::string>().size() > 5);
  CHECK(run_cli({"metrics", "--list"}).out.find("prefix_matching") != std::string::npos);
}

TEST_CASE("the standard induction score singles out the induction head of the example") {
  const json out =
      parsed(run_cli({"metrics", "-m", example(), "--repeated", "--period", "40", "--seed", "3", "--json"}));
  CHECK(out["tokens"].size() == 81);  // BOS and twice 40
  CHECK(out["repeated"]["period"] == 40);
  REQUIRE(out["heads"].size() == 8);
  for (const json& head : out["heads"]) {
    const double score = head["values"]["induction_block"];
    CAPTURE(head.dump());
    if (head["layer"] == 1 && head["head"] == 0) {
      CHECK(score > 0.99);
    } else {
      CHECK(score < 0.1);
    }
    CHECK(head["chance"]["induction_block"].get<double>() < 0.05);
  }
}

TEST_CASE("repeated tokens are drawn from what the model was trained on, unless told otherwise") {
  // Its training text is random printable characters: 95 of the 256 bytes that its vocabulary has.
  const auto scores = [](std::vector<std::string> more) {
    std::vector<std::string> words{"metrics", "-m", "induction-2l", "--repeated", "--period", "30", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return parsed(run_cli(words));
  };
  const auto best = [](const json& out) {
    double most = 0;
    for (const json& head : out["heads"])
      if (head["layer"] == 1) most = std::max(most, head["values"]["induction_block"].get<double>());
    return most;
  };
  for (const char* seed : {"1", "2", "3"}) {
    const json usual = scores({"--seed", seed}), all = scores({"--seed", seed, "--alphabet", "all"}),
               own = scores({"--seed", seed, "--alphabet", "abcdefghijklmnopqrstuvwxyzABCDEFGH"});
    CHECK(usual["repeated"]["alphabet"]["kind"] == "expected");
    CHECK(usual["repeated"]["alphabet"]["tokens"] == 95);
    CHECK(usual["repeated"]["alphabet"]["vocabulary"] == 257);
    for (std::size_t i = 1; i < usual["tokens"].size(); ++i) {
      const int id = usual["tokens"][i]["id"];
      CHECK((id < '~' - ' ' || id == 220));  // byte-level ids: "!" is 0, the space 220
    }
    CHECK(best(usual) > 0.6);
    CHECK(all["repeated"]["alphabet"]["tokens"] == 256);
    CHECK(best(all) < 0.35);
    CHECK(own["repeated"]["alphabet"]["tokens"] == 34);
    CHECK(best(own) > 0.6);
  }
  const Finished table = run_cli({"metrics", "-m", "induction-2l", "--repeated", "--period", "30"});
  CHECK(table.out.find("drawn from 95 of 257 tokens: those whose mean next-token probability") != std::string::npos);
  const Finished few =
      run_cli({"metrics", "-m", "induction-2l", "--repeated", "--period", "30", "--alphabet", "aab", "--csv"});
  CHECK(few.code == 0);
  CHECK(few.err.find("the 2 tokens are fewer than the period of 30") != std::string::npos);
  CHECK(run_cli({"metrics", "-m", "induction-2l", "--repeated", "--alphabet", "all", "--alphabet-file", "x"}).code ==
        2);
}

TEST_CASE("a captured trace opens again, and gives the metrics that the run gave") {
  const auto folder = scratch_dir("cli-capture");
  const std::string file = (folder / "t.safetensors").string();
  const Finished captured = run_cli({"capture", "-m", model(), "-t", "Mr and Mrs Fox", "-o", file, "--sites",
                                     "q,resid_post", "--storage", "factored"});
  CAPTURE(captured.err);
  REQUIRE(captured.code == 0);
  CHECK(captured.out.find("8 maps factored") != std::string::npos);
  const auto trace = open_trace(file);
  CHECK(trace->maps.size() == 8);
  CHECK(trace->sites.count({SiteKind::q, 1}) == 1);
  CHECK(trace->text == "Mr and Mrs Fox");

  const auto direct = csv(run_cli({"metrics", "-m", model(), "-t", "Mr and Mrs Fox", "--csv"}).out);
  const auto reopened = csv(run_cli({"metrics", "--trace", file, "--csv"}).out);
  REQUIRE(direct.size() == 9);
  REQUIRE(reopened.size() == direct.size());
  for (std::size_t r = 1; r < direct.size(); ++r) {
    for (std::size_t c = 0; c < direct[r].size(); ++c) {
      CAPTURE(direct[0][c]);
      CHECK(reopened[r][c].empty() == direct[r][c].empty());
      if (!direct[r][c].empty())
        CHECK(std::stod(reopened[r][c]) == doctest::Approx(std::stod(direct[r][c])).epsilon(1e-5));
    }
  }
}

TEST_CASE("capture names tensors as bridges do, and both ways open to the same metrics") {
  const auto folder = scratch_dir("cli-names");
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    std::vector<std::string> metrics;
    for (const char* names : {"transformer-lens", "bridge"}) {
      const std::string file = (folder / (std::string(name) + names + ".safetensors")).string();
      REQUIRE(run_cli({"capture", "-m", headscope::testing::reference(name).string(), "--ids", "5,9,5,30", "-o", file,
                       "--sites", "all", "--names", names})
                  .code == 0);
      const Finished inspected = run_cli({"inspect", file});
      const bool bridge = names[0] == 'b', gated = name[0] == 'l';
      CHECK((inspected.out.find("blocks.1.attn.o.hook_in") != std::string::npos) == bridge);
      CHECK((inspected.out.find("blocks.1.attn.hook_z") != std::string::npos) == !bridge);
      CHECK((inspected.out.find("blocks.1.mlp.gate.hook_out") != std::string::npos) == (bridge && gated));
      CHECK(inspected.out.find("blocks.1.ln1.hook_out") != std::string::npos);
      CHECK(inspected.out.find("normalized") == std::string::npos);
      metrics.push_back(run_cli({"metrics", "--trace", file, "--csv"}).out);
    }
    CHECK(metrics[0] == metrics[1]);
    CHECK(metrics[0].size() > 100);
  }
  CHECK(run_cli({"capture", "-m", model(), "-t", "abc", "-o", "x", "--names", "bridges"}).code == 2);
}

TEST_CASE("run says what an edit lets rows see") {
  const auto noted = [](const char* edit) {
    const Finished finished = run_cli({"run", "-m", headscope::testing::reference("llama-gqa").string(), "--ids",
                                       "5,9,5,30", "--json", "--edit", edit});
    REQUIRE(finished.code == 0);
    const json out = json::parse(finished.out);
    for (const json& note : out["notes"])
      CHECK(finished.err.find("note: " + note.get<std::string>()) != std::string::npos);
    return out["notes"];
  };
  CHECK(noted("*: mask window 2").empty());
  REQUIRE(noted("*: mask full").size() == 1);
  CHECK(noted("*: mask full")[0].get<std::string>().find("3 of 4 rows see later tokens") != std::string::npos);
  CHECK(noted("0.1: ablate mean").empty());
  CHECK(noted("0.1: ablate mean over text").size() == 1);
}

TEST_CASE("capture lists the sites, and records chosen layers") {
  CHECK(run_cli({"capture", "--list-sites"}).out.find("blocks.{i}.attn.hook_pattern") != std::string::npos);
  const std::string file = (scratch_dir("cli-layers") / "t.safetensors").string();
  REQUIRE(run_cli({"capture", "-m", model(), "-t", "abc", "-o", file, "--layers", "1", "--last-logits"}).code == 0);
  const auto trace = open_trace(file);
  CHECK(trace->maps.size() == 4);
  CHECK(trace->map({1, 3}).head() == 3);
}

TEST_CASE("models lists what is bundled, what the cache holds and what lies in a folder") {
  const std::filesystem::path cache = scratch_dir("cli-models");
  std::filesystem::create_directories(cache / "models--org--empty");
  ::setenv("HF_HUB_CACHE", cache.c_str(), 1);
  const json found = parsed(run_cli({"models", reference("formats").string(), "--json"}));
  const Finished table = run_cli({"models"});
  ::unsetenv("HF_HUB_CACHE");
  const auto model = [&](const std::string& name) {
    for (const json& each : found["models"])
      if (each["name"] == name) return each;
    return json();
  };
  CHECK(model("tiny-gpt2")["opens"] == "yes");
  CHECK(model("tiny-gpt2")["place"] == "bundled");
  CHECK(model("tiny-gpt2")["layers"] == 4);
  CHECK(model("tiny-gpt2")["heads"] == 4);
  CHECK(model("org/empty")["layers"] == 0);
  CHECK(table.out.find("layers × heads") != std::string::npos);
  CHECK(model("org/empty")["opens"] == "no");
  CHECK(model("org/empty")["place"] == "cache");
  CHECK(model("llama-gqa")["format"] == "GGUF v3");
  CHECK(model("llama-gqa")["place"] == "folder");
  CHECK(table.code == 0);
  CHECK(table.out.find("Why they do not open:\n  org/empty: ") != std::string::npos);
  const Finished nowhere = run_cli({"models", "/no/such/folder"});
  CHECK(nowhere.code == 1);
  CHECK(nowhere.first_error().find("/no/such/folder: expected a folder of models") != std::string::npos);
}

TEST_CASE("inspect says the format and the stored types, and every format runs") {
  const auto file = [](const char* name) { return reference(std::string("formats/") + name).string(); };
  const json gguf = parsed(run_cli({"inspect", file("gpt2.gguf"), "--json"}));
  CHECK(gguf["format"] == "GGUF v3");
  CHECK(gguf["stored"] == json({{"F32", 28}}));
  CHECK(gguf["family"] == "gpt2");
  CHECK(gguf["metadata"]["gpt2.block_count"] == "2");
  CHECK(parsed(run_cli({"inspect", file("llama-grids.gguf"), "--json"}))["stored"] == json({{"F32", 7},
                                                                                            {"IQ1_M", 1},
                                                                                            {"IQ1_S", 2},
                                                                                            {"IQ2_S", 1},
                                                                                            {"IQ2_XS", 1},
                                                                                            {"IQ2_XXS", 2},
                                                                                            {"IQ3_S", 2},
                                                                                            {"IQ3_XXS", 2},
                                                                                            {"NVFP4", 5}}));
  const std::string blocks = run_cli({"inspect", file("state.pt")}).out;
  CHECK(blocks.find("PyTorch: 15 tensors (1 BF16, 1 BOOL, 1 F16, 9 F32, 1 F64, 1 I64, 1 U8)") != std::string::npos);
  CHECK(parsed(run_cli({"inspect", file("sharded"), "--json"}))["format"] == "PyTorch, 2 files");
  const Finished code = run_cli({"inspect", file("code.pt")});
  CHECK(code.code == 1);
  CHECK(code.first_error().find("this file runs code: posix.system") != std::string::npos);
  const std::string expected =
      run_cli({"run", "-m", reference("training-gpt2").string(), "--ids", "1,5,2", "--json"}).out;
  json wanted = json::parse(expected);
  for (const char* name : {"gpt2.gguf", "sharded"}) {
    json found = parsed(run_cli({"run", "-m", file(name), "--ids", "1,5,2", "--json"}));
    CHECK(found["next"] == wanted["next"]);
  }
}

TEST_CASE("inspect counts tensors and parameters") {
  const json out = parsed(run_cli({"inspect", model(), "--json"}));
  CHECK(out["config"]["layers"] == 2);
  CHECK(out["config"]["d_mlp"] == 128);
  // by hand: wte 257·32 + wpe 48·32 + 2 · (4·32² + 4·32 + 2·32·128 + 128 + 32 + 4·32) + 2·32
  CHECK(out["parameters"]["total"] == 257 * 32 + 48 * 32 + 2 * (4 * 1024 + 128 + 8192 + 160 + 128) + 64);
  std::int64_t parts = 0;
  for (const auto& part : out["parameters"]["parts"]) parts += part.get<std::int64_t>();
  CHECK(parts == out["parameters"]["total"]);
  CHECK(out["tensors"].size() == 28);
  CHECK(run_cli({"inspect", model("llama-gqa")}).out.find("4 heads of 8 on 2 key-value heads") != std::string::npos);
  CHECK(run_cli({"inspect", model() + "/expected.safetensors"}).out.find("blocks.1.attn.hook_pattern") !=
        std::string::npos);
}

TEST_CASE("bench compares a pass with its bare products") {
  const json out = parsed(run_cli({"bench", "-m", model(), "--lengths", "4,8", "--repeat", "1", "--json"}));
  REQUIRE(out["rows"].size() == 2);
  CHECK(out["rows"][1]["tokens"] == 8);
  for (const json& row : out["rows"]) {
    CHECK(row["forward_ms"].get<double>() > 0);
    CHECK(row["ratio"].get<double>() ==
          doctest::Approx(row["forward_ms"].get<double>() / row["products_ms"].get<double>()));
  }
}

TEST_CASE("bench puts what it times beside what the machine allows, a token and a training step too") {
  // More tokens than the context has: the text is begun again.
  const json out =
      parsed(run_cli({"bench", "-m", model(), "--lengths", "4", "--repeat", "60", "--training", "--json"}));
  REQUIRE(out["steps"].size() == 2);
  CHECK(out["steps"][0]["work"] == "next token");
  CHECK(out["steps"][1]["work"] == "training step");
  CHECK(out["steps"][1]["products_ms"].is_null());
  const double peak = 1e9 * out["peak_gflops"].get<double>(), read = 1e9 * out["read_gb_per_second"].get<double>();
  CHECK(peak > 1e8);
  CHECK(read > 1e7);
  REQUIRE(out["typing"].size() == 1);
  CHECK(out["typing"][0]["tokens"] == 4);
  CHECK(out["typing"][0]["of_pass"].get<double>() ==
        doctest::Approx(out["typing"][0]["ms"].get<double>() / out["rows"][0]["forward_ms"].get<double>()));
  for (const json& row : {out["rows"][0], out["steps"][0], out["steps"][1], out["typing"][0]}) {
    const double ms = row[row.contains("ms") ? "ms" : "forward_ms"], bound = row["bound_ms"];
    CHECK(bound > 0);
    CHECK(bound < ms);
    CHECK(row["bound_ratio"].get<double>() == doctest::Approx(ms / bound));
    CHECK((row["bound_by"] == "memory" || row["bound_by"] == "arithmetic"));
  }
}

TEST_CASE("the tour shows the example and writes its pictures") {
  const auto folder = scratch_dir("cli-tour");
  const Finished finished = run_cli({"tour", "--out", (folder / "new" / "deep").string()});
  CAPTURE(finished.err);
  REQUIRE(finished.code == 0);
  CHECK(finished.out.find("Head 1.0: induction 0.999") != std::string::npos);
  for (const char* name : {"heads.png", "head-1.0.png", "head-1.0.svg"}) {
    CHECK(std::filesystem::file_size(folder / "new" / "deep" / name) > 1000);
    CHECK(finished.out.find(name) != std::string::npos);
  }
}

TEST_CASE("a mechanism's curves are in its JSON as in its picture") {
  const WorkedExample& example = worked_examples().front();
  const auto out = json::parse(run_cli({"mechanism", "softmax", "--example", std::string(example.id), "--json"}).out);
  const Mechanism* const softmax = find_mechanism("softmax");
  REQUIRE(softmax);
  const MechanismReport report = report_on({softmax, softmax->usual()}, example.input());
  REQUIRE(out.at("curves").size() == report.result.curves.size());
  REQUIRE(!report.result.curves.empty());
  for (std::size_t i = 0; i < report.result.curves.size(); ++i) {
    const MechanismCurve& curve = report.result.curves[i];
    const auto& told = out.at("curves").at(i);
    CHECK(told.at("title") == curve.title);
    CHECK(told.at("x") == curve.x_title);
    CHECK(told.at("y") == curve.y_title);
    REQUIRE(told.at("lines").size() == curve.lines.size());
    for (std::size_t l = 0; l < curve.lines.size(); ++l) {
      CHECK(told.at("lines").at(l).at("label") == curve.lines[l].label);
      CHECK(told.at("lines").at(l).at("x") == curve.lines[l].x);
      CHECK(told.at("lines").at(l).at("y") == curve.lines[l].y);
    }
  }
}

TEST_CASE("metrics and pictures in words") {
  const std::vector<std::string> input{"-m", example(), "-f", example_text()};
  const auto with = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin() + 1, input.begin(), input.end());
    return arguments;
  };
  const json tokens = parsed(run_cli(with({"metrics", "--json"}))),
             words = parsed(run_cli(with({"metrics", "--words", "--json"})));
  CHECK(words["tokens"].size() < tokens["tokens"].size());
  CHECK(words["tokens"][2]["label"] == "␣Mrs");
  CHECK(run_cli(with({"metrics", "--words"})).out.find(" words of ") != std::string::npos);
  const auto csv_file = scratch_dir("words") / "words.csv";
  const Finished rendered = run_cli(with({"render", "--words", "--head", "1.0", "-o", csv_file.string()}));
  CAPTURE(rendered.err);
  REQUIRE(rendered.code == 0);
  const auto rows = csv(read_file(csv_file));
  REQUIRE(rows.size() == words["tokens"].size() + 1);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    double sum = 0;
    for (std::size_t j = 2; j < rows[i].size(); ++j) sum += rows[i][j].empty() ? 0 : std::stod(rows[i][j]);
    CHECK(sum == doctest::Approx(1).epsilon(1e-5));
  }
  CHECK(run_cli(with({"render", "--words", "--steps", "--head", "1.0", "-o", csv_file.string()})).code == 2);
}

}  // namespace headscope::cli_test
