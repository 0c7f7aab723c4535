// One model that is fetched beside everything else, and the list of those that are here.

#include "app/state/pull_controller.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "app/state/model_list.h"
#include "app/state/settings.h"
#include "core/base/file.h"
#include "tests/support/environment.h"
#include "tests/support/fake_hub.h"
#include "tests/support/paths.h"

namespace headscope::pull_controller_test {

using testing::FakeHub;
using State = PullController::State;
namespace fs = std::filesystem;

namespace {

bool until(JobRunner& jobs, const std::function<bool()>& done) {
  for (int i = 0; i < 20'000 && !done(); ++i) {
    jobs.frame();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return done();
}

struct Fixture {
  explicit Fixture(const std::string& name) : home(testing::scratch_dir(name)) {
    environment.use_hub(home, hub.url());
    hub.take_folder(testing::reference("gpt2-random").string(), 10'000);
  }
  testing::Environment environment;
  FakeHub hub;
  fs::path home;
  JobRunner jobs{1, {}};
  PullController pull;
  void start(const std::string& model) { pull.start(jobs, HubSettings::from_environment(), PullRequest::parse(model)); }
};

}  // namespace

TEST_CASE("a model comes beside what computes: not busy, no message, its progress in words, taken once") {
  Fixture f("pull-controller");
  CHECK(f.pull.state() == State::idle);
  f.hub.pause_ms = 30;  // a second for the weights
  f.start("someone/small");
  CHECK(f.pull.state() == State::under_way);
  CHECK_FALSE(f.jobs.busy());
  f.start("someone/else");  // one at a time
  CHECK(f.pull.request().model == "someone/small");
  std::string text;
  REQUIRE(until(f.jobs, [&] {
    text = f.pull.progress_text();
    return f.pull.progress().number == 4 && text.find("/s") != std::string::npos;
  }));
  CHECK(text.starts_with("file 4 of 4 · "));
  REQUIRE(until(f.jobs, [&] { return f.pull.state() == State::done; }));
  const auto pulled = f.pull.take_done();
  REQUIRE(pulled.has_value());
  CHECK(fs::exists(pulled->folder / "model.safetensors"));
  CHECK_FALSE(f.pull.take_done().has_value());
  CHECK_FALSE(f.jobs.message().has_value());
}

TEST_CASE("stopped at once, what came stays; a failure is kept with the question") {
  Fixture f("pull-controller-stop");
  f.hub.pause_ms = 50;
  f.start("someone/small");
  REQUIRE(until(f.jobs, [&] { return f.pull.progress().file_done > 0 && f.pull.progress().number == 4; }));
  f.pull.stop(f.jobs);
  CHECK(f.pull.state() == State::stopped);
  f.start("someone/small");
  REQUIRE(until(f.jobs, [&] { return f.pull.state() == State::done; }));
  const auto pulled = f.pull.take_done();
  REQUIRE(pulled.has_value());
  CHECK(pulled->files.back().how == PulledFile::How::resumed);
  f.start("someone/nowhere");
  REQUIRE(until(f.jobs, [&] { return f.pull.state() == State::failed; }));
  CHECK(f.pull.error().find("401") != std::string::npos);
  CHECK_FALSE(f.jobs.message().has_value());
  f.pull.clear();
  CHECK(f.pull.state() == State::idle);
}

TEST_CASE("the list of models has the user's folders, the bundled ones and the cache, and what is offered") {
  Fixture f("model-list");
  f.start("someone/small");
  REQUIRE(until(f.jobs, [&] { return f.pull.state() == State::done; }));
  const fs::path folder = f.home / "mine";
  fs::create_directories(folder / "some-bert");
  write_file_atomically(folder / "some-bert" / "config.json", R"({"model_type": "bert"})");
  fs::copy_file(testing::reference("gpt2-random") / "model.safetensors", folder / "some-bert" / "model.safetensors");
  ModelList list;
  list.look(f.jobs, {folder, f.home / "nowhere"});
  CHECK(list.under_way());
  REQUIRE(until(f.jobs, [&] { return !list.under_way(); }));
  REQUIRE(list.last());
  const auto find = [&](const std::string& name) {
    const auto& all = list.last()->models;
    const auto found = std::ranges::find_if(all, [&](const ListedModel& each) { return each.model.name == name; });
    REQUIRE(found != all.end());
    return *found;
  };
  CHECK(find("some-bert").model.refusal.find("bert") != std::string::npos);
  CHECK(find("some-bert").place == folder.string());
  CHECK(find("tiny-gpt2").model.refusal.empty());
  CHECK(find("someone/small").place == "Hugging Face cache");
  CHECK(shape_text(find("someone/small").model).starts_with("2 × 4 heads · 1"));
  CHECK(list.last()->offered.size() >= 10);
  for (const OfferedModel& each : list.last()->offered) CHECK(each.here == InCache::none);
}

TEST_CASE("a snapshot is called as its model, anything else as its file") {
  CHECK(model_label("/c/hub/models--org--name/snapshots/0123") == "org/name");
  CHECK(model_label("/c/models/tiny-gpt2") == "tiny-gpt2");
  CHECK(model_label("/c/snapshots/a.gguf") == "a.gguf");
}

TEST_CASE("settings keep folders of models, and refuse what is none") {
  Settings settings;
  settings.model_folders = {"/data/models", "/home/me/more"};
  CHECK(settings_from_json(to_json(settings), "s.json") == settings);
  CHECK_THROWS(settings_from_json(R"({"type": "headscope settings", "model_folders": "/data"})", "s.json"));
}

}  // namespace headscope::pull_controller_test
