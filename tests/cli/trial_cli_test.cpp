// trial, as somebody types it.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/train/trial.h"
#include "tests/support/process.h"

namespace headscope::trial_cli_test {

using testing::run_cli;

TEST_CASE("the command runs a trial, lists them and refuses others") {
  const auto out = run_cli({"trial", "copy", "--steps", "1", "--json"});
  REQUIRE(out.code == 0);
  const auto json = nlohmann::json::parse(out.out);
  REQUIRE(json["models"].size() == trial_plan("copy").contestants.size());
  CHECK(json["models"][0]["model"] == "attention");
  CHECK(json["models"][0]["loss"].get<double>() > json["models"][0]["floor"].get<double>());
  // A trial of other models prints the same columns.
  const auto pairs = run_cli({"trial", "bottleneck", "--steps", "1", "--json"});
  REQUIRE(pairs.code == 0);
  const auto recurrent = nlohmann::json::parse(pairs.out);
  const TrialPlan& plan = trial_plan("bottleneck");
  REQUIRE(recurrent["models"].size() == 3);
  for (const auto& model : recurrent["models"]) {
    CHECK(model["floor"] == 0);
    CHECK(model["loss"].get<double>() > 4);  // ln 640 = 6.46 of one that knows nothing
    for (const int size : plan.sizes) {
      const double right = model["accuracy_" + std::to_string(size)].get<double>();
      CHECK((right >= 0 && right < 0.5));
    }
  }
  CHECK(recurrent["models"][0]["parameters"] == recurrent["models"][1]["parameters"]);
  CHECK(recurrent["models"][2]["parameters"] > recurrent["models"][0]["parameters"]);
  CHECK(recurrent["models"][0]["state"] == 64);
  const auto said = run_cli({"trial", "bottleneck", "--steps", "1"});
  CHECK(said.out.find("written at their place") != std::string::npos);
  CHECK(said.out.find("by words of the source") != std::string::npos);
  CHECK(run_cli({"trial", "copy", "--steps", "1"}).out.find("share of certain tokens that come first, chance 0.01") !=
        std::string::npos);
  CHECK(run_cli({"trial", "--list"}).out.find("heads") != std::string::npos);
  CHECK(run_cli({"trial"}).code == 2);
}

}  // namespace headscope::trial_cli_test
