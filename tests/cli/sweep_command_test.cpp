// headscope-cli sweep and detect: the numbers of the library, and mistakes that are named.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <sstream>

#include "core/analysis/head_ablation.h"
#include "core/analysis/linear_layers.h"
#include "core/attention/hybrid_cost.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/edits/ablate_edit.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::sweep_command_test {

using namespace testing;
using nlohmann::json;

namespace {
json parsed(const Finished& finished) {
  CAPTURE(finished.err);
  REQUIRE(finished.code == 0);
  return json::parse(finished.out);
}
const std::string clean = "Mr and Mrs Quill of Fox Hythe kept bees. Now Mr and Mrs Qu",
                  corrupted = "Mr and Mrs Quoll of Fox Hythe kept bees. Now Mr and Mrs Qu";
int lines(const std::string& text) {
  return static_cast<int>(std::ranges::count(text, '\n'));
}
}  // namespace

TEST_CASE("sweep ablate: JSON holds the library's numbers, CSV and table a line for each head") {
  const json out = parsed(run_cli({"sweep", "ablate", "-m", "induction", "-t", clean, "--by", "zero", "--json"}));
  Backend backend(1);
  const auto folder = source_dir() / "assets/examples/induction";
  RunRequest request;
  request.text = clean;
  HeadAblationSweep sweep(load_model(folder, backend), {request, Ablate{}, {}});
  while (!sweep.finished()) sweep.step(Ctx{backend});
  const auto result = sweep.result();
  CHECK(out["complete"] == true);
  CHECK(out["ablation"] == "ablate zero");
  REQUIRE(out["heads"].size() == result->heads.size());
  for (std::size_t i = 0; i < result->heads.size(); ++i)
    CHECK(out["heads"][i]["loss_change"].get<double>() == doctest::Approx(result->heads[i].loss_change).epsilon(1e-4));
  CHECK(out["answers"]["right"]["label"] == "i");

  const Finished csv = run_cli({"sweep", "ablate", "-m", "induction", "-t", clean, "--csv"});
  CHECK(csv.code == 0);
  CHECK(csv.out.starts_with("layer,head,loss_change,kl,logit_difference_change\n"));
  CHECK(lines(csv.out) == 9);
  const Finished table = run_cli({"sweep", "ablate", "-m", "induction", "-t", clean});
  CHECK(table.out.find("\n 1.0 ") != std::string::npos);
  CHECK(table.err.empty());
}

TEST_CASE("sweep ablate: the mean is of earlier positions, unless it is told to be of the text or of reference texts") {
  const auto folder = scratch_dir("sweep-reference");
  write_file_atomically(folder / "texts.txt", "bees\r\n\nof honey");
  const auto changes = [](std::vector<std::string> more, const char* ablation) {
    std::vector<std::string> words{"sweep", "ablate", "-m", "induction", "-t", clean, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const json out = parsed(run_cli(words));
    CHECK(out["ablation"] == ablation);
    std::vector<double> all;
    for (const json& head : out["heads"]) all.push_back(head["loss_change"].get<double>());
    return all;
  };
  const auto usual = changes({}, "ablate mean"), text = changes({"--by", "mean-over-text"}, "ablate mean over text");
  CHECK(usual != text);
  const auto from = changes({"--from", "bees", "--from", "of honey"}, "ablate mean from \"bees\" \"of honey\"");
  CHECK(from != usual);
  CHECK(from == changes({"--from-file", (folder / "texts.txt").string()}, "ablate mean from \"bees\" \"of honey\""));
  changes({"--by", "resample", "--seed", "3", "--from", "bees"}, "ablate resample 3 from \"bees\"");
  CHECK(run_cli({"sweep", "ablate", "-m", "induction", "-t", clean, "--by", "zero", "--from", "a"}).code == 2);
  CHECK(run_cli({"sweep", "ablate", "-m", "induction", "-t", clean, "--from-file", "absent.txt"}).code == 1);
  // A run with the edit itself says the same.
  const json plain = parsed(run_cli({"run", "-m", "induction", "-t", clean, "--json"})),
             without = parsed(run_cli({"run", "-m", "induction", "-t", clean, "--json", "--edit",
                                       "1.0: ablate mean from \"bees\" \"of honey\""}));
  CHECK(without["loss"].get<double>() - plain["loss"].get<double>() == doctest::Approx(from[4]).epsilon(1e-4));
}

TEST_CASE("sweep patch, temperature and circuit on the model made by hand") {
  const json patch = parsed(run_cli({"sweep", "patch", "-m", "induction", "--clean", clean, "--corrupted", corrupted,
                                     "--site", "z", "--right", "i", "--wrong", "o", "--json"}));
  CHECK(patch["recovered"][1][0].get<double>() > 0.9);
  CHECK(patch["partner"].size() == 58);
  const Finished by_position =
      run_cli({"sweep", "patch", "-m", "induction", "--clean", clean, "--corrupted", corrupted, "--csv"});
  CHECK(by_position.out.find("\n0,13,") != std::string::npos);
  CHECK(lines(by_position.out) == 1 + 2 * 58);

  const json temperature =
      parsed(run_cli({"sweep", "temperature", "-m", "induction", "-t", clean, "--count", "3", "--json"}));
  CHECK(temperature["temperatures"].size() == 3);
  CHECK(temperature["curves"]["1.0"]["loss"].size() == 3);
  CHECK(temperature["curves"]["all"]["loss"][1].get<double>() == doctest::Approx(temperature["loss"].get<double>()));

  const json circuit =
      parsed(run_cli({"sweep", "circuit", "-m", "induction", "-t", clean, "--threshold", "0.8", "--json"}));
  CHECK(circuit["order"].size() == 8);
  bool has = false;
  for (const json& head : circuit["circuit"]) has = has || (head[0] == 1 && head[1] == 0);
  CHECK(has);
}

TEST_CASE("detect ranks heads by a rule, and points at a mistake in one") {
  const Finished found = run_cli({"detect", "token[k-1] == token[q] and k <= q", "-m", "induction", "-t", clean});
  CHECK(found.code == 0);
  CHECK(found.out.find("times chance\n 1.0  0.99") != std::string::npos);
  const json cells = parsed(run_cli({"detect", "--cells", "2:0-1 3:2", "-m", "induction", "-t", clean, "--json"}));
  CHECK(cells["cells"] == 3);
  CHECK(cells["heads"][0]["rows"] == 2);
  CHECK(run_cli({"detect", "--cells", "2:99", "-m", "induction", "-t", clean}).first_error().find("0 to 57") !=
        std::string::npos);
  const Finished wrong = run_cli({"detect", "k = q", "-m", "induction", "-t", clean});
  CHECK(wrong.code == 2);
  CHECK(wrong.first_error().find("at character 3: expected ==") != std::string::npos);
  CHECK(run_cli({"detect", "--list"}).out.find("k == q - 1") != std::string::npos);
  CHECK(run_cli({"detect", "-m", "induction", "-t", clean}).code == 2);
}

TEST_CASE("texts of different lengths: pairs are told, and can be written") {
  const Finished sweep = run_cli({"sweep", "patch", "-m", "induction", "--clean", "Mr Quill kept bees. Mr Qu",
                                  "--corrupted", "Mr Quoll never kept bees. Mr Qu", "--site", "pattern"});
  CHECK(sweep.code == 0);
  CHECK(sweep.out.find(" positions: 0–") != std::string::npos);
  const json by_hand = parsed(run_cli({"sweep", "patch", "-m", "induction", "--clean", "Mr Quill. Mr Qu", "--corrupted",
                                       "Mr Quoll. Mr Qu", "--align", "0:1,3:2", "--json"}));
  const json& partner = by_hand["partner"];
  REQUIRE(partner.size() == 15);  // one per byte of the clean text
  for (std::size_t i = 0; i < partner.size(); ++i) CHECK(partner[i] == (i == 0 ? 1 : i == 3 ? 2 : -1));
  const Finished run = run_cli({"run", "-m", "induction", "-t", "Mr Quill kept bees.", "--edit",
                                "0.*: patch resid_pre from \"Mr Quill never kept bees.\" aligned tokens"});
  CHECK(run.code == 0);
  CHECK(run.err.find("takes from the other text") != std::string::npos);
  CHECK(run_cli({"sweep", "patch", "-m", "induction", "--clean", "a", "--corrupted", "b", "--align", "middle"}).code !=
        0);
}

TEST_CASE("sweep linear: the library's search, as a table, CSV, JSON and a picture") {
  const std::string text =
      "In the village of Zoziford there lived Anna and her cousin Ben. Every morning, she sold pies.";
  const std::vector<std::string> words{"sweep", "linear", "-m", "tiny-gpt2", "-t", text, "--with", "relu"};
  const auto with = [&](std::vector<std::string> more) {
    std::vector<std::string> all = words;
    all.insert(all.end(), more.begin(), more.end());
    return run_cli(all);
  };
  const json out = parsed(with({"--allow", "2", "--random", "1", "--json"}));
  Backend backend(1);
  LinearLayersAsked asked;
  asked.run.model = source_dir() / "models/tiny-gpt2";
  asked.run.text = text;
  asked.mechanism = "relu";
  asked.draws = 1;
  LinearLayersSearch search(load_model(asked.run.model, backend), asked);
  while (!search.finished()) search.step(Ctx{backend});
  const auto result = search.result();
  const auto near = [](const json& value, double expected) {
    CHECK(value.get<double>() == doctest::Approx(expected).epsilon(1e-4));
  };
  CHECK(out["complete"] == true);
  CHECK(out["mechanism"] == "relu");
  CHECK(out["method"] == "restore");
  CHECK(out["measure"] == "loss");
  near(out["before"]["loss"], result->before.loss);
  near(out["none"]["loss"], result->none.loss);
  REQUIRE(out["layers"].size() == 4);
  for (std::size_t layer = 0; layer < 4; ++layer) {
    near(out["layers"][layer]["loss"], result->alone[layer].loss);
    near(out["layers"][layer]["rise"], result->alone[layer].loss - result->before.loss);
    near(out["layers"][layer]["loss_without"], result->without[layer].loss);
  }
  REQUIRE(out["order"].size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(out["order"][i]["layer"] == result->order[i].layer);
    CHECK(out["order"][i]["kept"] == i + 1);
    near(out["order"][i]["cost"], result->order[i].outcome.loss);
    near(out["order"][i]["evenly"], result->evenly(static_cast<int>(i) + 1));
  }
  REQUIRE(out["random"].size() == 1);
  CHECK(out["random"][0]["order"].get<std::vector<int>>() == result->drawn_orders[0]);
  near(out["random"][0]["cost"][2], result->drawn[0][2].loss);
  CHECK(out["allowed"] == 2);
  CHECK(out["kept"].get<std::vector<int>>() == result->kept_layers(result->fewest(2)));
  const LoadedModel loaded = load_model(asked.run.model, backend);
  CHECK(out["finding"] == result->finding(2, [&](std::int32_t id) { return loaded.tokenizer->token(id).label; }));
  const LinearOutcome& these = *result->greedy_outcome(result->fewest(2));
  CHECK(out["answer"]["before"]["id"] == result->before.answer);
  CHECK(out["answer"]["with_these"]["id"] == these.answer);
  near(out["answer"]["kl"], these.kl);
  CHECK(parsed(with({"--by", "answer", "--random", "0", "--json"}))["measure"] == "kl");

  const Finished csv = with({"--random", "1", "--csv"});
  CHECK(csv.out.starts_with("kind,kept,layer,loss,kl\n"));
  CHECK(lines(csv.out) == 1 + 4 + 4 + 5 + 3 + 3);  // one linear, no attention, greedy from none, evenly, random
  const Finished table = with({"--method", "replace", "--random", "0"});
  CHECK(table.code == 0);
  CHECK(table.out.find("becomes linear") != std::string::npos);
  CHECK(table.out.find("No weight was trained on for it") != std::string::npos);
  const auto folder = scratch_dir("sweep-linear");
  CHECK(with({"-o", (folder / "layers.svg").string()}).code == 0);
  const std::string picture = read_file(folder / "layers.svg");
  for (const char* part : {"evenly spaced", "greedy", "no attention", "layers that keep softmax"})
    CHECK(picture.find(part) != std::string::npos);
  // Its file draws it again, though `sweep` may read nothing of this machine for a stranger.
  CHECK(run_cli({"render", "--again", (folder / "layers.svg").string()}).code == 0);

  CHECK(run_cli({"sweep", "linear", "-m", "tiny-gpt2", "-t", text, "--with", "saturation"}).code == 1);
  // Of an encoder-decoder it says which part was searched.
  const Finished encoder = run_cli({"sweep", "linear", "-m", "tiny-translate", "--source", "In the village", "-t",
                                    "Anna", "--part", "enc", "--random", "0"});
  CHECK(encoder.code == 0);
  CHECK(encoder.out.find("bart, encoder, ") != std::string::npos);
  const Finished softmax = run_cli({"sweep", "linear", "-m", "tiny-gpt2", "-t", text, "--with", "softmax"});
  CHECK(softmax.code == 1);
  CHECK(softmax.first_error().find("one that is linear: linear, ") != std::string::npos);
  CHECK(run_cli({"sweep", "linear", "-m", "tiny-bert", "-t", "Rosa sold signs.", "--with", "linear"})
            .first_error()
            .find("something that the model is asked for") != std::string::npos);
}

TEST_CASE("flops: the table of the library, of a model or of numbers, with where the curves cross") {
  const json own = parsed(run_cli({"flops", "-m", "tiny-gpt2", "--tokens", "4096", "--batch", "2", "--json"}));
  const HybridShape shape{4, 128, 4, 2, 4096};
  const auto rows = hybrid_cost_table(shape, 8);
  REQUIRE(own["rows"].size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(own["rows"][i]["model"] == rows[i].name);
    CHECK(own["rows"][i]["parameters"].get<double>() == doctest::Approx(rows[i].parameters));
    CHECK(own["rows"][i]["flops"].get<double>() == doctest::Approx(rows[i].flops));
    CHECK(own["rows"][i]["of_softmax"].get<double>() == doctest::Approx(rows[i].flops / rows[0].flops));
  }
  CHECK(own["shape"] ==
        json({{"layers", 4}, {"width", 128}, {"heads", 4}, {"batch", 2}, {"tokens", 4096}, {"every", 8}}));
  CHECK(own["tokens_for_half"].get<double>() == doctest::Approx(*hybrid_tokens_for_share(shape, 8, 0.5)));
  CHECK(own["crossings"] == hybrid_crossings(shape, 8));
  const json given = parsed(run_cli({"flops", "-m", "tiny-gpt2", "--d-model", "64", "--every", "2", "--json"}));
  CHECK(given["shape"]["width"] == 64);
  CHECK(given["shape"]["layers"] == 4);
  CHECK(given["rows"][2]["model"] == "hybrid 1 : 1");
  CHECK(given["tokens_for_half"].is_null());
  const auto folder = scratch_dir("flops");
  CHECK(run_cli({"flops", "-o", (folder / "flops.svg").string()}).code == 0);
  CHECK(read_file(folder / "flops.svg").find("hybrid 7 : 1") != std::string::npos);
  CHECK(run_cli({"render", "--again", (folder / "flops.svg").string()}).code == 0);
  CHECK(run_cli({"flops", "--heads", "0"}).code == 2);
}

TEST_CASE("numbers that are infinite or none at all are refused, in few words") {
  const auto refused = [](std::vector<std::string> words, const std::string& why) {
    const Finished finished = run_cli(words);
    CAPTURE(finished.err);
    CHECK(finished.code == 2);
    CHECK(finished.first_error().find(why) != std::string::npos);
    CHECK(finished.first_error().size() < 120);
  };
  const std::vector<std::string> linear{"sweep", "linear", "-m", "tiny-gpt2", "-t", "Anna sold pies", "--allow"};
  for (const char* value : {"nan", "inf", "-1", "-inf", "1e999", "much"}) {
    std::vector<std::string> words = linear;
    words.emplace_back(value);
    refused(words, fmt::format("Value {} is no finite number from 0 on", value));
  }
  refused({"expert", "-m", "tiny-gpt2", "-t", "Anna sold pies", "--rate", "inf"},
          "Value inf is no finite number above 0");
  refused({"expert", "-m", "tiny-gpt2", "-t", "Anna sold pies", "--rate", "0"}, "Value 0 is no finite number above 0");
  refused({"flops", "--layers", "nan"}, "Value nan not in range 1 to 1000000");
  refused({"flops", "--tokens", "nan"}, "Value nan not in range 1 to 1e+12");
  refused({"flops", "--every", "1"}, "Value 1 not in range 2 to 1000");
}

TEST_CASE("mistakes in a sweep are named before any work") {
  const Finished no_token =
      run_cli({"sweep", "ablate", "-m", "induction", "-t", clean, "--right", "Qu", "--wrong", "o"});
  CHECK(no_token.code == 1);
  CHECK(no_token.first_error().find("--right: expected one token, found 2") != std::string::npos);
  CHECK(run_cli({"sweep", "ablate", "-m", "induction", "-t", clean, "--right", "i"}).code == 2);
  CHECK(run_cli({"sweep"}).code == 2);
  CHECK(run_cli({"sweep", "patch", "-m", "induction", "--clean", "a", "--corrupted", "b", "--site", "embed"}).code ==
        2);
  const Finished same = run_cli({"sweep", "patch", "-m", "induction", "--clean", clean, "--corrupted", clean});
  CHECK(same.code == 1);
  CHECK(same.first_error().find("the same tokens") != std::string::npos);
}

}  // namespace headscope::sweep_command_test
