// headscope-cli sweep and detect: the numbers of the library, and mistakes that are named.

#include <doctest/doctest.h>

#include <sstream>

#include "core/analysis/head_ablation.h"
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
