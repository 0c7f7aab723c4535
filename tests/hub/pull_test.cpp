// Fetching from a hub on this machine: what comes, where it lies, and everything that goes wrong on the way.

#include "core/hub/pull.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/base/error.h"
#include "core/base/file.h"
#include "core/hub/cache_entry.h"
#include "tests/support/fake_hub.h"
#include "tests/support/paths.h"

namespace headscope::pull_test {

using testing::FakeHub;
using testing::first_commit;
using testing::scratch_dir;
using testing::second_commit;
namespace fs = std::filesystem;

namespace {

using How = PulledFile::How;

/// Not one letter over and over: a part in the wrong place has to be seen.
std::string text_of(std::size_t bytes, unsigned seed = 1) {
  std::string text(bytes, ' ');
  for (char& c : text) c = static_cast<char>('a' + ((seed = seed * 1664525 + 1013904223) >> 16) % 26);
  return text;
}

struct Fixture {
  explicit Fixture(const std::string& name) {
    settings.endpoint = hub.url();
    settings.cache = scratch_dir(name) / "hub";
    options.patience = {.tries = 3, .most = 20, .first_wait = 0.01, .longest_wait = 0.02, .silence = 5};
    options.progress = [this](const PullProgress& at) { told.push_back(at); };
    hub.files["config.json"] = {R"({"model_type": "gpt2"})"};
    hub.files["tokenizer.json"] = {text_of(3000, 3)};
    hub.files["model.safetensors"] = {weights, true};
    hub.files["tf_model.h5"] = {"not wanted", true};
  }
  const std::string weights = text_of(200'000);
  FakeHub hub;
  HubSettings settings;
  PullRequest request{.model = "someone/small"};
  PullOptions options;
  std::vector<PullProgress> told;
  std::stop_source stop;

  Pulled pull() { return headscope::pull(settings, request, options, stop.get_token()); }
  std::string refusal() {
    try {
      pull();
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  fs::path entry() const { return settings.cache / "models--someone--small"; }
  fs::path blob(const std::string& file) const { return entry() / "blobs" / hub.tag_of(hub.files.at(file)); }
  fs::path part(const std::string& file) const { return blob(file).string() + ".incomplete"; }
  How how(const Pulled& pulled, const std::string& file) const {
    const auto found = std::ranges::find(pulled.files, file, &PulledFile::name);
    REQUIRE(found != pulled.files.end());
    return found->how;
  }
  /// What lies among the blobs besides whole files.
  std::vector<std::string> leftovers() const {
    std::vector<std::string> names;
    std::error_code gone;
    for (const auto& item : fs::directory_iterator(entry() / "blobs", gone))
      if (item.path().extension() == ".incomplete") names.push_back(item.path().filename().string());
    return names;
  }
  void leave_part(const std::string& file, const std::string& bytes) {
    fs::create_directories(entry() / "blobs");
    write_file_atomically(part(file), bytes);
  }
};

}  // namespace

TEST_CASE("a whole model: blobs under their digests, relative links from its snapshot, the revision's commit") {
  Fixture f("pull-whole");
  const Pulled pulled = f.pull();
  CHECK(pulled.commit == first_commit);
  CHECK(pulled.folder == f.entry() / "snapshots" / first_commit);
  CHECK(pulled.remarks.empty());
  CHECK(pulled.fetched == f.weights.size() + 3000 + f.hub.files["config.json"].content.size());
  REQUIRE(pulled.files.size() == 3);  // not tf_model.h5
  CHECK(pulled.files.back().name == "model.safetensors");
  for (const PulledFile& file : pulled.files) {
    CAPTURE(file.name);
    CHECK(file.how == How::fetched);
    CHECK(read_file(pulled.folder / file.name) == f.hub.files[file.name].content);
    CHECK(fs::read_symlink(pulled.folder / file.name) ==
          fs::path("../../blobs") / f.hub.tag_of(f.hub.files[file.name]));
  }
  CHECK(read_file(f.entry() / "refs" / "main") == first_commit);
  CHECK(f.leftovers().empty());
  CHECK(fs::exists(f.settings.cache / ".locks" / "models--someone--small" /
                   (f.hub.tag_of(f.hub.files["model.safetensors"]) + ".lock")));
  REQUIRE_FALSE(f.told.empty());
  const PullProgress last = f.told.back();
  CHECK(last.done == last.total);
  CHECK(last.number == 3);
  CHECK(last.of == 3);

  f.hub.forget();
  const Pulled again = f.pull();
  CHECK(again.fetched == 0);
  for (const PulledFile& file : again.files) CHECK(file.how == How::here);
  CHECK(f.hub.targets().size() == 1);  // only what the revision is at
}

TEST_CASE("another revision links what it shares, and has a name of its own") {
  Fixture f("pull-revision");
  f.pull();
  f.hub.revisions["step/1000"] = second_commit;
  f.hub.revisions["step%2F1000"] = second_commit;  // as it stands in an address
  f.hub.files["model.safetensors"].content = text_of(1000, 9);
  f.request.revision = "step/1000";
  const Pulled pulled = f.pull();
  CHECK(pulled.commit == second_commit);
  CHECK(f.how(pulled, "config.json") == How::linked);
  CHECK(f.how(pulled, "model.safetensors") == How::fetched);
  CHECK(pulled.fetched == 1000);
  CHECK(read_file(f.entry() / "refs" / "step" / "1000") == second_commit);
  CHECK(read_file(f.entry() / "refs" / "main") == first_commit);
  CHECK(read_file(f.entry() / "snapshots" / first_commit / "model.safetensors") == f.weights);
  f.request.revision = second_commit;
  CHECK(f.pull().fetched == 0);
  CHECK_FALSE(fs::exists(f.entry() / "refs" / second_commit));
}

TEST_CASE("a transfer that breaks goes on where it ended, in this run and in the next") {
  Fixture f("pull-resume");
  f.hub.break_after["model.safetensors"] = {50'000, 70'000};
  const Pulled pulled = f.pull();
  CHECK(f.how(pulled, "model.safetensors") == How::resumed);
  CHECK(read_file(pulled.folder / "model.safetensors") == f.weights);
  CHECK(pulled.fetched == f.weights.size() + 3000 + f.hub.files["config.json"].content.size());  // no byte twice
  std::vector<std::string> ranges;
  for (const auto& asked : f.hub.asked_of_store()) ranges.push_back(asked.header("range"));
  CHECK(ranges == std::vector<std::string>{"", "bytes=50000-", "bytes=120000-"});

  Fixture g("pull-resume-later");
  g.leave_part("model.safetensors", g.weights.substr(0, 123'456));
  CHECK(g.how(g.pull(), "model.safetensors") == How::resumed);
  CHECK(read_file(g.blob("model.safetensors")) == g.weights);
  CHECK(g.hub.asked_of_store().at(0).header("range") == "bytes=123456-");

  Fixture h("pull-resume-complete");  // all of it had come; only its name was missing
  h.leave_part("model.safetensors", h.weights);
  h.pull();
  CHECK(read_file(h.blob("model.safetensors")) == h.weights);
  CHECK(h.hub.asked_of_store().empty());
}

TEST_CASE("where a server sends the whole file although a part was asked for, it starts over") {
  Fixture f("pull-no-ranges");
  f.hub.ignores_ranges = true;
  f.leave_part("model.safetensors", f.weights.substr(0, 100'000));
  const Pulled pulled = f.pull();
  CHECK(f.how(pulled, "model.safetensors") == How::fetched);
  CHECK(read_file(f.blob("model.safetensors")) == f.weights);
  CHECK(f.leftovers().empty());
}

TEST_CASE("a part of other content, or longer than the file, is thrown away and fetched anew") {
  for (const std::string& wrong : {std::string(100'000, 'x'), std::string(300'000, 'x')}) {
    Fixture f("pull-wrong-part");
    f.leave_part("model.safetensors", wrong);
    const Pulled pulled = f.pull();
    CHECK(f.how(pulled, "model.safetensors") == How::fetched);
    CHECK(read_file(f.blob("model.safetensors")) == f.weights);
  }
  Fixture f("pull-other-tag");  // the file has become another: the old part is of no use, and in nobody's way
  f.leave_part("model.safetensors", f.weights.substr(0, 1000));
  f.hub.files["model.safetensors"].content = text_of(5000, 77);
  f.pull();
  CHECK(f.hub.asked_of_store().at(0).header("range").empty());
  CHECK(read_file(f.blob("model.safetensors")) == text_of(5000, 77));
}

TEST_CASE("content that is not what its digest says is not kept, and nothing points at it") {
  for (const char* file : {"model.safetensors", "tokenizer.json"}) {
    CAPTURE(file);
    Fixture f("pull-wrong-digest");
    f.hub.files[file].tag = std::string(f.hub.files[file].large ? 64 : 40, 'd');
    const std::string why = f.refusal();
    CHECK(why.find(std::string(40, 'd')) != std::string::npos);
    CHECK(why.find(file) != std::string::npos);
    CHECK(f.leftovers().empty());
    CHECK_FALSE(fs::exists(f.blob(file)));
    CHECK_FALSE(fs::exists(f.entry() / "refs" / "main"));
    CHECK_FALSE(fs::exists(f.entry() / "snapshots" / first_commit / file));
  }
  Fixture f("pull-no-digest");
  f.hub.files["tokenizer.json"].tag = "abc-17";
  const Pulled pulled = f.pull();
  REQUIRE(pulled.remarks.size() == 1);
  CHECK(pulled.remarks[0].find("could not be checked") != std::string::npos);
}

TEST_CASE("the token goes to the endpoint and to no server that it leads to") {
  Fixture f("pull-token");
  f.hub.token = f.settings.token = "hf_secret";
  f.pull();
  for (const auto& asked : f.hub.asked()) CHECK(asked.header("authorization") == "Bearer hf_secret");
  REQUIRE_FALSE(f.hub.asked_of_store().empty());
  for (const auto& asked : f.hub.asked_of_store()) CHECK(asked.header("authorization").empty());

  Fixture g("pull-no-token");
  g.hub.token = "hf_secret";
  std::string why = g.refusal();
  CHECK(why.find("401 Unauthorized") != std::string::npos);
  CHECK(why.find("set HF_TOKEN") != std::string::npos);
  CHECK(why.find(g.hub.url() + "/someone/small") != std::string::npos);
  g.settings.token = "hf_other";
  why = g.refusal();
  CHECK(why.find("hf_other") == std::string::npos);
  CHECK(why.find("accept its terms") != std::string::npos);
}

TEST_CASE("errors name address, status and what to do; what passes is tried again, so often and no more") {
  Fixture f("pull-errors");
  const std::string api = "/api/models/someone/small";
  f.hub.statuses[api] = {503, 429, 200};
  f.hub.statuses["/someone/small/resolve"] = {500, 200};
  f.pull();
  CHECK(std::ranges::any_of(f.told, [](const PullProgress& at) {
    return at.phase == PullProgress::Phase::waiting && at.remark.find("503 Service Unavailable") != std::string::npos;
  }));

  Fixture g("pull-errors-for-good");
  g.hub.statuses[api] = std::vector<int>(50, 503);
  CHECK(g.refusal().find("503 Service Unavailable") != std::string::npos);
  CHECK(g.hub.targets().size() == 3);
  g.hub.forget();
  g.hub.statuses[api] = {404};
  CHECK(g.refusal().find("404 Not Found") != std::string::npos);
  CHECK(g.hub.targets().size() == 1);  // another try would not help
  g.request.revision = "step7";
  std::string why = g.refusal();
  CHECK(why.find("revision/step7") != std::string::npos);
  CHECK(why.find("Invalid rev id") != std::string::npos);
  CHECK(why.find("/tree/main") != std::string::npos);
  g.request = {.model = "someone/else"};
  why = g.refusal();
  CHECK(why.find("401") != std::string::npos);
  CHECK(why.find("there is no such model, or it is private") != std::string::npos);

  Fixture h("pull-errors-gated");
  h.hub.statuses["/someone/small/resolve"] = {403};
  why = h.refusal();
  CHECK(why.find("403 Forbidden") != std::string::npos);
  CHECK(why.find("accept its terms at " + h.hub.url() + "/someone/small") != std::string::npos);

  Fixture i("pull-errors-store");  // a signature is nobody's business
  i.hub.files["model.safetensors"].large = true;
  i.hub.break_after["model.safetensors"] = std::vector<std::size_t>(50, 0);
  why = i.refusal();
  CHECK(why.find(i.hub.store_url()) != std::string::npos);
  CHECK(why.find("secret") == std::string::npos);
  CHECK(i.leftovers().empty());

  Fixture j("pull-nobody-there");
  j.settings.endpoint = "http://127.0.0.1:1";
  CHECK(j.refusal().find("is this machine online?") != std::string::npos);
}

TEST_CASE("a hub that lies about names is refused before anything is written") {
  Fixture f("pull-lies");
  f.hub.files["../../outside.json"] = {"x"};
  CHECK(f.refusal().find("below the model's folder") != std::string::npos);
  f.hub.files.erase("../../outside.json");
  f.hub.files["config.json"].tag = "../../../outside";
  CHECK(f.refusal().find("X-Linked-Etag") != std::string::npos);
  f.hub.files["config.json"].tag = "";
  f.hub.revisions["main"] = "../../outside";
  CHECK(f.refusal().find("40 hexadecimal digits") != std::string::npos);
  f.hub.revisions["main"] = first_commit;
  CHECK_FALSE(fs::exists(f.settings.cache / "outside"));
  CHECK(f.refusal().empty());
  for (const char* name : {"gpt2", "a/b/c", "../b", "a/..", "a/b c", "/b", "a/", "-a/b", "a/b--c"})
    CHECK_THROWS_AS(PullRequest::parse(name), Error);
  for (const char* revision : {"a/b@", "a/b@../x", "a/b@/etc", "a/b@x//y", "a/b@x y"})
    CHECK_THROWS_AS(PullRequest::parse(revision), Error);
  CHECK(PullRequest::parse("a/b@refs/pr/1").revision == "refs/pr/1");
  CHECK(PullRequest::parse("a/b").revision == "main");
}

TEST_CASE("offline nothing is asked") {
  Fixture f("pull-offline");
  f.settings.offline = true;
  CHECK(f.refusal().find("a network that may be used") != std::string::npos);
  CHECK(f.hub.targets().empty());
}

TEST_CASE("stopped, it ends soon and leaves what came; the next run goes on from there") {
  Fixture f("pull-stop");
  f.hub.pause_ms = 20;  // a second for the weights
  f.options.progress = [&](const PullProgress& at) {
    if (at.file == "model.safetensors" && at.file_done > 20'000) f.stop.request_stop();
  };
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(f.pull(), Cancelled);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(10));
  REQUIRE(fs::exists(f.part("model.safetensors")));
  const auto came = fs::file_size(f.part("model.safetensors"));
  CHECK(came > 20'000);
  CHECK(came < f.weights.size());
  CHECK(read_file(f.part("model.safetensors")) == f.weights.substr(0, came));
  CHECK_FALSE(fs::exists(f.entry() / "refs"));
  f.stop = {};
  f.hub.pause_ms = 0;
  f.options.progress = {};
  const Pulled pulled = f.pull();
  CHECK(f.how(pulled, "model.safetensors") == How::resumed);
  CHECK(pulled.fetched == f.weights.size() - came);

  Fixture g("pull-stop-while-waiting");
  g.options.patience = {.tries = 5, .first_wait = 60, .longest_wait = 60};
  g.hub.statuses["/api"] = {503};
  g.options.progress = [&](const PullProgress& at) {
    if (at.phase == PullProgress::Phase::waiting) g.stop.request_stop();
  };
  CHECK_THROWS_AS(g.pull(), Cancelled);
}

TEST_CASE("a file that another program fetches is waited for, and then is here") {
  Fixture f("pull-lock");
  const CacheEntry entry(f.settings.cache, "someone/small");
  entry.make_folders(first_commit, "config.json");
  const std::string tag = f.hub.tag_of(f.hub.files["model.safetensors"]);
  const int lock = ::open(entry.lock(tag).c_str(), O_RDWR | O_CREAT, 0644);
  REQUIRE(::flock(lock, LOCK_EX) == 0);
  std::jthread other;
  f.options.progress = [&](const PullProgress& at) {
    if (at.phase != PullProgress::Phase::waiting || other.joinable()) return;
    CHECK(at.remark.find("another program") != std::string::npos);
    other = std::jthread([&] {
      write_file_atomically(entry.blob(tag), f.weights);
      ::close(lock);
    });
  };
  const Pulled pulled = f.pull();
  CHECK(other.joinable());
  CHECK(f.how(pulled, "model.safetensors") == How::linked);
  CHECK(f.hub.asked_of_store().empty());
}

TEST_CASE("a hub that tells no sizes is believed for what it sends") {
  Fixture f("pull-no-sizes");
  f.hub.no_sizes = true;
  const Pulled pulled = f.pull();
  CHECK(read_file(pulled.folder / "model.safetensors") == f.weights);
  CHECK(f.told.back().done == f.told.back().total);
}

}  // namespace headscope::pull_test
