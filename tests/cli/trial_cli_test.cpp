// trial, as somebody types it.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

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
  CHECK(run_cli({"trial", "--list"}).out.find("heads") != std::string::npos);
  CHECK(run_cli({"trial"}).code == 2);
  CHECK(run_cli({"trial", "nothing"}).code == 1);
}

}  // namespace headscope::trial_cli_test
