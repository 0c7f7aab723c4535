// headscope-cli words check: what it says of a table, and what it ends with.

#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/base/file.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::words_cli_test {

using namespace testing;

namespace {
std::filesystem::path table(const std::map<std::string, std::string>& entries) {
  const auto file = scratch_dir("words-cli") / "xx.json";
  write_file_atomically(file, nlohmann::json(entries).dump());
  return file;
}
}  // namespace

TEST_CASE("the English table has nothing wrong, and a whole translation has not") {
  const auto english = source_dir() / "assets/words/en.json";
  const Finished checked = run_cli({"words", "check", english.string()});
  CHECK(checked.code == 0);
  auto entries = nlohmann::json::parse(read_file(english)).get<std::map<std::string, std::string>>();
  const std::string all = std::to_string(entries.size());
  CHECK(checked.out == all + " of " + all + " texts are said: 0 missing, 0 refused, 0 unknown\n");
  for (auto& [text, said] : entries) said = "⟦" + text + "⟧";
  CHECK(run_cli({"words", "check", table(entries).string()}).code == 0);
}

TEST_CASE("what a table lacks is told, and is no fault; what cannot be used is one") {
  const auto english = source_dir() / "assets/words/en.json";
  const auto all = nlohmann::json::parse(read_file(english)).size();
  const auto some = table({{"Settings", "Einstellungen"}, {"Close", ""}});
  const Finished partly = run_cli({"words", "check", some.string()});
  CHECK(partly.code == 0);
  CHECK(partly.out.find("missing: “") != std::string::npos);
  CHECK(partly.out.find("missing: and " + std::to_string(all - 1 - 10) + " more (--json lists them)") !=
        std::string::npos);
  CHECK(partly.out.find("1 of " + std::to_string(all) + " texts are said: " + std::to_string(all - 1) +
                        " missing, 0 refused, 0 unknown\n") != std::string::npos);
  const auto wrong = table({{"Settings", "Einstellungen"}, {"step {} of {}", "Schritt {}"}, {"no such text", "x"}});
  const Finished checked = run_cli({"words", "check", wrong.string()});
  CHECK(checked.code == 1);
  CHECK(checked.out.find("refused: “step {} of {}”: expected the fields {0} {1}, found {0}\n") != std::string::npos);
  CHECK(checked.out.find("unknown: “no such text”: the window has no such text\n") != std::string::npos);
  CHECK(checked.err.find("2 faults") != std::string::npos);
  const Finished scripts = run_cli({"words", "check", "--json", wrong.string()});
  CHECK(scripts.code == 1);
  const auto json = nlohmann::json::parse(scripts.out);
  CHECK(json.at("said") == 1);
  CHECK(json.at("all") == all);
  CHECK(json.at("refused") == 1);
  CHECK(json.at("unknown") == 1);
  CHECK(json.at("missing") == all - 2);
  CHECK(json.at("texts").size() == all);  // a line for each that is not said, and for the unknown one
  CHECK(json.at("texts").at(0).at("state") == "refused");
  CHECK(json.at("texts").at(0).at("english") == "step {} of {}");
}

TEST_CASE("a file that is no table is an error that names it") {
  const auto file = scratch_dir("words-cli-none") / "xx.json";
  write_file_atomically(file, "[]");
  const Finished checked = run_cli({"words", "check", file.string()});
  CHECK(checked.code == 1);
  CHECK(checked.err.find("xx.json: expected a table of words") != std::string::npos);
  CHECK(run_cli({"words", "check", "/nowhere/xx.json"}).code == 1);
  CHECK(run_cli({"words", "check"}).code == 2);
}

}  // namespace headscope::words_cli_test
