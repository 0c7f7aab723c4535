// headscope-cli expert tasks and expert choose: experts of somebody's own tasks, kept in a file, and two passes with
// it.

#include <doctest/doctest.h>

#include <cmath>

#include "app/state/session.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/edits/intervention.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::expert_adaptation_cli_test {

using namespace testing;
using doctest::Approx;
using nlohmann::json;

namespace {

struct Tasks {
  std::filesystem::path folder = scratch_dir("expert-tasks");
  std::string experts = (folder / "experts.json").string();
  Tasks() {
    std::string forth, back;
    for (const char* who : {"Tom", "Anna", "Ben", "Rosa", "Sam", "Lucy", "Max", "Ella"})
      for (const char* what : {"dog", "cat"}) {
        forth += std::string(who) + " saw a " + what + " and fed the " + what + ".\n";
        back += std::string(what) + " the fed and " + what + " a saw " + who + ".\n";
      }
    write_file_atomically(folder / "forth.txt", forth);
    write_file_atomically(folder / "back.txt", back);
    write_file_atomically(folder / "shots.txt", back.substr(0, back.find('\n', 200) + 1));
  }
  Finished learn(const std::vector<std::string>& more) const {
    std::vector<std::string> words{"expert",    "tasks",
                                   "-m",        "everyday-gpt2",
                                   "--task",    "forth=" + path("forth.txt"),
                                   "--task",    "back=" + path("back.txt"),
                                   "--steps",   "8",
                                   "--batch",   "4",
                                   "--rate",    "0.05",
                                   "--samples", "4",
                                   "--elites",  "2",
                                   "--rounds",  "2"};
    words.insert(words.end(), more.begin(), more.end());
    return run_cli(words);
  }
  Finished choose(const std::string& text, const std::vector<std::string>& more) const {
    std::vector<std::string> words{"expert", "choose",    "-m",    "everyday-gpt2", "-t",
                                   text,     "--experts", experts, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return run_cli(words);
  }
  std::string path(const char* name) const { return (folder / name).string(); }
};

double loss_of(const std::string& text, const json& edits) {
  std::vector<std::string> run{"run", "-m", "everyday-gpt2", "-t", text, "--json"};
  for (const json& edit : edits) run.insert(run.end(), {"--edit", edit.get<std::string>()});
  return json::parse(run_cli(run).out)["loss"].get<double>();
}

}  // namespace

TEST_CASE("expert tasks learns, measures and keeps experts; expert choose reads a prompt twice with them") {
  const Tasks tasks;
  const Finished done = tasks.learn({"-o", tasks.experts, "--json"});
  CAPTURE(done.err);
  REQUIRE(done.code == 0);
  const json out = json::parse(done.out);
  REQUIRE(out["losses"].size() == 3);
  CHECK(out["losses"][0]["expert"] == "none");
  CHECK(out["losses"][2]["expert"] == "back");
  CHECK(out["losses"][2]["back"].get<double>() < out["losses"][0]["back"].get<double>() - 0.3);
  CHECK(out["curves"]["back"].size() == 8);
  CHECK(out["curves"]["classifier of tasks"].size() == 16);  // eight for each task
  CHECK(out["chance"] == 0.5);
  REQUIRE(out["ways"].size() == 6);  // three ways, two tasks
  REQUIRE(out["few_shot"].size() == 2);
  CHECK(out["few_shot"][1]["best"].size() == 2);
  CHECK(out["few_shot"][1]["weights"].size() == 2);
  const json& way = out["ways"][1];
  CHECK(way["task"] == "back");
  CHECK(way["way"] == "prompt");
  CHECK(way["right"] == 1);  // no other text of the file begins so
  CHECK(way["loss"] == out["losses"][2]["back"]);
  CHECK(way["own"] == out["losses"][2]["back"]);
  CHECK(way["model"] == out["losses"][0]["back"]);
  CHECK(out["chosen"]["prompt"]["back"] == json::array({0, 0, 4}));
  const Finished table = tasks.learn({});
  CHECK(table.out.find(
            "everyday-gpt2: 2 of 2 experts of 1024 numbers z each (W_V, W_out of every layer), 8 steps of 4") !=
        std::string::npos);
  CHECK(table.out.find("by chance 50 %") != std::string::npos);

  const std::string prompt = "cat the fed and cat a saw";
  const Finished by_prompt = tasks.choose(prompt, {"-o", tasks.path("session.json")});
  CAPTURE(by_prompt.err);
  REQUIRE(by_prompt.code == 0);
  const json two = json::parse(by_prompt.out);
  CHECK(two["chosen"] == "back");
  REQUIRE(two["first_pass"].size() == 3);
  CHECK(two["first_pass"][0]["loss"].get<double>() == Approx(loss_of(prompt, json::array())).epsilon(1e-4));
  CHECK(two["first_pass"][2]["loss"].get<double>() == Approx(loss_of(prompt, two["edits"])).epsilon(1e-4));
  CHECK(two["first_pass"][2]["loss"] < two["first_pass"][1]["loss"]);
  CHECK(two["first_pass"][1]["label"].get<double>() + two["first_pass"][2]["label"].get<double>() == Approx(1));
  CHECK(two["next"][0]["after"].get<double>() >= two["next"][1]["after"].get<double>());
  CHECK(two["next"].size() == 8);
  const Session session = session_from_json(read_file(tasks.path("session.json")), "session.json");
  CHECK(session.document.text == prompt);
  CHECK(session.document.edits.size() == 8);     // two matrices of four layers
  CHECK(session.window.workspace == "Explore");  // where the edits are seen

  const json labelled = json::parse(tasks.choose(prompt, {"--by", "classifier"}).out);
  CHECK(labelled["chosen"] == (two["first_pass"][2]["label"] > 0.5 ? "back" : "forth"));
  const json mixed =
      json::parse(tasks.choose(prompt, {"--by", "shots", "--shots", tasks.path("shots.txt"), "--rounds", "3"}).out);
  REQUIRE(mixed["best"].size() == 3);
  CHECK(mixed["best"][2] <= mixed["best"][0]);
  CHECK(mixed["best"][2] < mixed["before"].get<double>() - 0.3);
  CHECK(mixed["weights"].size() == 2);

  // The file belongs to this model, and is read strictly.
  const Finished other =
      run_cli({"expert", "choose", "-m", "tiny-gpt2", "-t", "Anna sold", "--experts", tasks.experts});
  CHECK(other.code == 1);
  CHECK(other.first_error().find("experts of tiny-gpt2, whose matrices are") != std::string::npos);
  json file = json::parse(read_file(tasks.experts));
  file["experts"][0]["parts"][0]["z"].erase(0);
  write_file_atomically(tasks.experts, file.dump());
  const Finished short_one = tasks.choose(prompt, {});
  CHECK(short_one.code == 1);
  CHECK(short_one.first_error().find("1024 numbers z of 8 matrices") != std::string::npos);
}

TEST_CASE("expert tasks and choose: words that make no sense are told apart from files that do not") {
  const Tasks tasks;
  CHECK(run_cli({"expert", "tasks"}).code == 2);
  CHECK(tasks.learn({"--task", "third"}).code == 2);
  CHECK(tasks.learn({"--task", "=x"}).code == 2);
  CHECK(tasks.learn({"--elites", "9"}).code == 2);
  CHECK(tasks.learn({"--task", "third=" + tasks.path("none.txt")}).code == 1);
  CHECK(tasks.learn({"--task", "back=" + tasks.path("forth.txt")}).first_error().find("back twice") !=
        std::string::npos);
  write_file_atomically(tasks.folder / "few.txt", "Tom saw a dog.\n");
  CHECK(tasks.learn({"--task", "few=" + tasks.path("few.txt")}).first_error().find("at least four texts") !=
        std::string::npos);
  write_file_atomically(tasks.folder / "latin.txt", "Tom saw a dog.\nAnna saw a caf\xE9.\n");
  CHECK(tasks.learn({"--task", "latin=" + tasks.path("latin.txt")}).first_error().find("latin.txt, line 2: ") !=
        std::string::npos);
  CHECK(tasks.choose("Tom", {"--by", "shots"}).code == 2);
  CHECK(tasks.choose("Tom", {}).code == 1);  // no such file
  CHECK(run_cli({"expert", "tasks", "-m", "tiny-bert"}).first_error().find("a decoder") != std::string::npos);
  CHECK(run_cli({"expert", "tasks", "-m", "induction-2l"}).first_error().find("a model whose language is known") !=
        std::string::npos);
}

TEST_CASE("expert reward and expert compose: both ways of learning, and two together, told in tables and as JSON") {
  const Tasks tasks;
  const auto command = [&](const std::string& name, const std::vector<std::string>& more) {
    std::vector<std::string> words{"expert",  name,
                                   "-m",      "everyday-gpt2",
                                   "--task",  "forth=" + tasks.path("forth.txt"),
                                   "--task",  "back=" + tasks.path("back.txt"),
                                   "--steps", "6",
                                   "--batch", "4",
                                   "--rate",  "0.05"};
    words.insert(words.end(), more.begin(), more.end());
    return run_cli(words);
  };
  const Finished reward = command("reward", {"--price", "0.3", "--json"});
  CAPTURE(reward.err);
  REQUIRE(reward.code == 0);
  const json rewarded = json::parse(reward.out);
  REQUIRE(rewarded["tasks"].size() == 2);
  CHECK(rewarded["price"] == 0.3);
  REQUIRE(rewarded["steps"]["back"]["rewards"].size() == 6);
  CHECK(rewarded["steps"]["back"]["losses"].size() == 6);
  CHECK(rewarded["steps"]["back"]["rewards"][0]["kl"].get<double>() == Approx(0).epsilon(1e-6));
  CHECK(rewarded["steps"]["back"]["losses"][5] < rewarded["steps"]["back"]["losses"][0]);
  CHECK(rewarded["tasks"][1]["taught_kl"] > 0.01);
  CHECK(command("reward", {}).out.find("draws 8 tokens behind every prompt") != std::string::npos);
  CHECK(command("reward", {"--price", "-1"}).code == 2);

  const Finished compose = command("compose", {"--rank", "2", "--json"});
  CAPTURE(compose.err);
  REQUIRE(compose.code == 0);
  const json composed = json::parse(compose.out);
  CHECK(composed["expert_numbers"] == 1024);
  CHECK(composed["adapter_numbers"] == 2 * 3584);
  REQUIRE(composed["single"].size() == 4);
  REQUIRE(composed["pairs"].size() == 4);
  const json& half = composed["pairs"][1];
  CHECK(half["first_weight"] == 0.5);
  CHECK(half["second_weight"] == 0.5);
  CHECK(composed["half_and_half"]["experts"].get<double>() ==
        Approx((half["experts_first"].get<double>() + half["experts_second"].get<double>()) / 2));
  CHECK(composed["half_and_half"]["own_adapter"].get<double>() ==
        Approx((composed["single"][0]["adapter"].get<double>() + composed["single"][3]["adapter"].get<double>()) / 2));
  CHECK(command("compose", {}).out.find("1024 numbers z of an expert, 3584 of an adapter of rank 1") !=
        std::string::npos);
  CHECK(command("compose", {"--rank", "300"}).first_error().find("a rank of 1 … 128") != std::string::npos);
}

}  // namespace headscope::expert_adaptation_cli_test
