// The real command line against a hub on this machine.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "core/base/file.h"
#include "tests/support/environment.h"
#include "tests/support/fake_hub.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::pull_cli_test {

using testing::FakeHub;
using testing::Finished;
using testing::first_commit;
using testing::run_cli;
namespace fs = std::filesystem;

namespace {

struct Fixture {
  explicit Fixture(const std::string& name, const std::string& model = "llama-gqa") : home(testing::scratch_dir(name)) {
    environment.use_hub(home, hub.url());
    hub.take_folder(testing::reference(model).string(), 10'000);
  }
  testing::Environment environment;
  FakeHub hub;
  fs::path home;
  fs::path entry() const { return home / "hub" / "models--someone--small"; }
};

}  // namespace

TEST_CASE("pull fetches a model, says where it lies and that it opens, and by its name it runs") {
  Fixture f("cli-pull");
  const Finished pulled = run_cli({"pull", "someone/small"});
  CAPTURE(pulled.err);
  REQUIRE(pulled.code == 0);
  CHECK(pulled.err.empty());  // no terminal, no progress
  CHECK(pulled.out.find("commit: " + first_commit) != std::string::npos);
  CHECK(pulled.out.find((f.entry() / "snapshots" / first_commit).string()) != std::string::npos);
  CHECK(pulled.out.find("It opens: llama, ") != std::string::npos);
  CHECK(run_cli({"inspect", "someone/small"}).code == 0);
  CHECK(run_cli({"inspect", "someone/small@main"}).code == 0);

  const Finished again = run_cli({"pull", "someone/small", "--json"});
  const auto json = nlohmann::json::parse(again.out);
  CHECK(json["fetched_bytes"] == 0);
  CHECK(json["opens"] == true);
  for (const auto& file : json["files"]) CHECK(file["how"] == "here already");

  const Finished named = run_cli({"pull", "someone/small@" + first_commit, "--file", "expected*"});
  CHECK(named.code == 0);
  CHECK(fs::exists(f.entry() / "snapshots" / first_commit / "expected.safetensors"));
}

TEST_CASE("a revision has a name of its own, and opens by it") {
  Fixture f("cli-pull-revision");
  f.hub.revisions["step1000"] = testing::second_commit;
  REQUIRE(run_cli({"pull", "someone/small", "--revision", "step1000"}).code == 0);
  CHECK(read_file(f.entry() / "refs" / "step1000") == testing::second_commit);
  CHECK(run_cli({"inspect", "someone/small@step1000"}).code == 0);
  CHECK(run_cli({"inspect", "someone/small@step2000"}).code == 1);
  CHECK(run_cli({"pull", "someone/small@main", "--revision", "step1000"}).code == 2);
}

TEST_CASE("the token file of HF_HOME is sent, never said, and not to where the endpoint leads") {
  Fixture f("cli-pull-token");
  write_file_atomically(f.home / "token", "hf_from_the_file\n");
  f.hub.token = "hf_from_the_file";
  const Finished pulled = run_cli({"pull", "someone/small"});
  CHECK(pulled.code == 0);
  CHECK((pulled.out + pulled.err).find("hf_from") == std::string::npos);
  for (const auto& asked : f.hub.asked_of_store()) CHECK(asked.header("authorization").empty());
  f.environment.set("HF_TOKEN", "hf_wrong");  // goes before the file
  const Finished refused = run_cli({"pull", "someone/small"});
  CHECK(refused.code == 1);
  CHECK(refused.err.find("401 Unauthorized") != std::string::npos);
  CHECK(refused.err.find("hf_wrong") == std::string::npos);
  f.environment.set("HF_TOKEN", "two words");
  CHECK(run_cli({"pull", "someone/small"}).err.find("HF_TOKEN") != std::string::npos);
}

TEST_CASE("offline, mistaken names and addresses are refused in words, without a request") {
  Fixture f("cli-pull-refused");
  f.environment.set("HF_HUB_OFFLINE", "1");
  const Finished offline = run_cli({"pull", "someone/small"});
  CHECK(offline.code == 1);
  CHECK(offline.err.find("HF_HUB_OFFLINE is set") != std::string::npos);
  f.environment.set("HF_HUB_OFFLINE", "");
  const Finished alone = run_cli({"pull", "gpt2"});
  CHECK(alone.code == 1);
  CHECK(alone.err.find("openai-community/gpt2") != std::string::npos);
  CHECK(run_cli({"pull"}).code == 2);
  CHECK(run_cli({"pull", "../x"}).code == 1);
  f.environment.set("HF_ENDPOINT", "http://me:password@127.0.0.1");
  const Finished endpoint = run_cli({"pull", "someone/small"});
  CHECK(endpoint.code == 1);
  CHECK(endpoint.err.find("HF_ENDPOINT") != std::string::npos);
  CHECK(endpoint.err.find("password") == std::string::npos);
  CHECK(f.hub.targets().empty());
}

TEST_CASE("a full disk and a closed pipe leave what came, and the next run goes on") {
  Fixture f("cli-pull-full", "gpt2-random");
  f.hub.files["model.safetensors"].large = true;
  const auto whole = static_cast<long>(f.hub.files["model.safetensors"].content.size());
  const Finished full = run_cli({"pull", "someone/small"}, {.file_limit = whole / 2});
  CHECK(full.code == 1);
  CHECK(full.err.find("pull again, it goes on from there") != std::string::npos);
  CHECK_FALSE(fs::exists(f.entry() / "refs"));
  CHECK(run_cli({"pull", "someone/small"}, {.out = testing::Stream::closed}).code == 1);
  f.hub.forget();
  const Finished rest = run_cli({"pull", "someone/small"});
  CHECK(rest.code == 0);
  CHECK(f.hub.asked_of_store().empty());  // the one whose output was closed had fetched all of it
  CHECK(read_file(f.entry() / "snapshots" / first_commit / "model.safetensors") ==
        f.hub.files["model.safetensors"].content);
}

TEST_CASE("the list of models is there without a network, and says what is here") {
  Fixture f("cli-pull-list");
  const Finished list = run_cli({"pull", "--list", "--json"});
  REQUIRE(list.code == 0);
  const auto json = nlohmann::json::parse(list.out);
  CHECK(json["models"].size() >= 10);
  for (const auto& model : json["models"]) CHECK(model["here"] == "no");
  CHECK(f.hub.targets().empty());
  f.hub.name = "openai-community/gpt2";
  REQUIRE(run_cli({"pull", "openai-community/gpt2"}).code == 0);
  CHECK(run_cli({"pull", "--list"}).out.find("yes") != std::string::npos);
}

}  // namespace headscope::pull_cli_test
