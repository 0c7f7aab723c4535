// headscope-cli expert: what is learnt is what its edits do in another run, and the session that it writes opens.

#include <doctest/doctest.h>

#include "app/state/session.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/edits/intervention.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::expert_cli_test {

using namespace testing;
using nlohmann::json;

TEST_CASE("expert: a text is learnt by a few numbers, another is told what that costs it, edits carry it out") {
  const std::string text = "Anna sold pies and Ben sold milk.", other = "Every morning, she sold cakes.";
  const auto folder = scratch_dir("expert");
  const std::string file = (folder / "expert.json").string();
  const Finished done = run_cli({"expert", "-m", "tiny-gpt2", "-t", text, "--matrices", "v,o", "--steps", "8", "--rate",
                                 "0.03", "--other", other, "-o", file, "--json"});
  CAPTURE(done.err);
  REQUIRE(done.code == 0);
  const json out = json::parse(done.out);
  CHECK(out["numbers"] == 2 * 4 * 128);  // W_V and W_O, 128 × 128, of four layers
  REQUIRE(out["loss"].size() == 9);
  CHECK(out["loss"][8].get<double>() < out["loss"][0].get<double>());
  REQUIRE(out["edits"].size() == 8);
  const auto loss_of = [](const std::string& words, const json& edits) {
    std::vector<std::string> run{"run", "-m", "tiny-gpt2", "-t", words, "--json"};
    for (const json& edit : edits) run.insert(run.end(), {"--edit", edit.get<std::string>()});
    return json::parse(run_cli(run).out)["loss"].get<double>();
  };
  const json none = json::array();
  CHECK(out["loss"][0].get<double>() == doctest::Approx(loss_of(text, none)).epsilon(1e-4));
  CHECK(out["loss"][8].get<double>() == doctest::Approx(loss_of(text, out["edits"])).epsilon(1e-5));
  CHECK(out["others"][0]["before"].get<double>() == doctest::Approx(loss_of(other, none)).epsilon(1e-4));
  CHECK(out["others"][0]["after"].get<double>() == doctest::Approx(loss_of(other, out["edits"])).epsilon(1e-5));
  const Session session = session_from_json(read_file(file), file);
  CHECK(session.document.text == text);
  REQUIRE(session.document.edits.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) CHECK(describe(session.document.edits[i]) == out["edits"][i]);
  CHECK(session.window.pages.at("Analyse") == "singular");

  const Finished table = run_cli({"expert", "-m", "tiny-gpt2", "-t", text, "--steps", "1"});
  CHECK(table.out.find("nats in 1 step\n") != std::string::npos);
  CHECK(table.out.find("Learnt by the gradient") != std::string::npos);
  CHECK(run_cli({"expert", "-m", "tiny-bert", "-t", "Rosa sold signs."}).first_error().find("a decoder") !=
        std::string::npos);
  CHECK(run_cli({"expert", "-m", "tiny-gpt2", "-t", text, "--matrices", "w"}).code == 2);
  CHECK(run_cli({"expert", "-m", "tiny-gpt2", "-t", text, "--edit", "0.0: ablate zero"}).code == 2);
}

TEST_CASE("expert: what no edit could carry out is refused, and no session of it is written") {
  const std::string file = (scratch_dir("expert-refused") / "expert.json").string();
  const auto expert = [&](const std::string& model, const std::vector<std::string>& more) {
    std::vector<std::string> words{"expert", "-m",    reference(model).string(), "--ids", "3,5,2,7,9", "--no-bos", "-o",
                                   file,     "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_cli(words);
  };
  const Finished cut = expert("families/olmo", {"--matrices", "v"});
  CHECK(cut.code == 1);
  CHECK(cut.first_error().find("a matrix whose products are used as they are, found W_V, whose products olmo cuts") !=
        std::string::npos);
  const Finished nothing = expert("gpt2-random", {"--rate", "1e-6", "--steps", "3"});
  CHECK(nothing.code == 1);
  CHECK(nothing.first_error().find("none after 3 steps") != std::string::npos);
  for (const char* rate : {"1e300", "1.01", "0", "-0.1"})
    CHECK(expert("gpt2-random", {"--rate", rate, "--steps", "1"}).code == 2);
  CHECK_FALSE(std::filesystem::exists(file));
  const Finished twice = expert("gpt2-random", {"--matrices", "v,v", "--steps", "1"});
  REQUIRE(twice.code == 0);
  CHECK(json::parse(twice.out)["numbers"] == 64);  // 32 of each of two layers
  CHECK(json::parse(twice.out)["edits"].size() == 2);
}

}  // namespace headscope::expert_cli_test
