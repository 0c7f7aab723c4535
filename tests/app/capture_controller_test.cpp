// Captured attention in the window's state: it stands where a model stands, and its folder is watched.
#include <doctest/doctest.h>

#include <chrono>
#include <fstream>

#include "core/base/file.h"
#include "tests/app/explorer_controller.h"

namespace headscope::capture_controller_test {

using testing::Controller;
namespace fs = std::filesystem;

namespace {
fs::path fixture(const char* name) {
  return testing::reference("attention") / name;
}

/// A capture as a script leaves it, the later the newer.
fs::path put(const fs::path& folder, const char* name, const char* like, int second) {
  const fs::path path = folder / name;
  std::ofstream(path, std::ios::binary) << read_file(fixture(like));
  fs::last_write_time(path, fs::file_time_type::clock::now() + std::chrono::seconds(second));
  return path;
}

void wait(Controller& t) {
  t.now += 1;  // longer than the pause between two looks
  t.settle();
}
}  // namespace

TEST_CASE("a capture stands where a model stands: heads and numbers, nothing that needs the model") {
  Controller t;
  t.explorer.captures.open(fixture("cross.npz"));
  t.settle();
  CHECK(t.message() == "");
  const Results& results = t.results();
  REQUIRE(results.capture != nullptr);
  CHECK(results.run == results.capture);
  CHECK(results.model.model == nullptr);
  CHECK(t.document().model == fixture("cross.npz"));
  CHECK(results.run->trace->between_texts());
  CHECK(results.run->word_tokens == nullptr);
  REQUIRE(results.facts != nullptr);
  CHECK(results.facts->trace == results.run->trace);
  CHECK(results.facts->table.value.size() == 2);
  CHECK(results.detail == nullptr);
  CHECK(results.losses == nullptr);
  CHECK(results.effect == nullptr);
  CHECK_FALSE(t.explorer.run.behind());
  t.explorer.run.run_again();
  t.explorer.editor.pin(Index{2}, Index{1});
  t.settle();
  CHECK(t.document().query == 2);  // three queries, two keys
  t.explorer.editor.pin(Index{3}, Index{1});
  t.settle();
  CHECK_FALSE(t.document().query.has_value());
  CHECK(t.message() == "");
}

TEST_CASE("queries that are the last of a text are rows of their own in the window") {
  Controller t;
  t.explorer.captures.open(fixture("tail.npz"));
  t.settle();
  REQUIRE(t.results().capture != nullptr);
  const Trace& trace = *t.results().run->trace;
  CHECK(trace.query_tokens.size() == 2);
  CHECK(trace.query_tokens[0].label == "a");
  CHECK(trace.maps.front().place().offset == 0);
  CHECK(trace.maps.front().weight(1, 3) == 0.25f);
}

TEST_CASE("the newest of a folder is shown as it comes, until somebody chooses") {
  const fs::path folder = testing::scratch_dir("captures-follow");
  Controller t;
  t.explorer.captures.open(folder);  // nothing is there yet
  t.settle();
  CHECK(t.explorer.captures.watching());
  CHECK(t.results().run == nullptr);
  CHECK(t.message() == "");

  const fs::path a = put(folder, "a.npz", "cross.npz", 1);
  wait(t);
  CHECK(t.document().model == a);
  const fs::path b = put(folder, "b.npz", "picture.npz", 2);
  wait(t);
  CHECK(t.document().model == b);
  CHECK(t.results().run->trace->picture != nullptr);
  CHECK(t.explorer.captures.files().size() == 2);
  CHECK(t.explorer.captures.following());

  t.explorer.captures.choose(a);
  t.settle();
  CHECK(t.document().model == a);
  CHECK(t.results().run->trace->between_texts());
  const fs::path c = put(folder, "c.npz", "batch_of_one.npz", 3);
  wait(t);
  CHECK(t.document().model == a);
  CHECK(t.explorer.captures.files().front().path == c);
  t.explorer.captures.follow();
  t.settle();
  CHECK(t.document().model == c);
  CHECK(t.results().run->trace->model.dims.layers == 2);

  // A file that is being written does not disturb.
  const std::string whole = read_file(fixture("cross.npz"));
  std::ofstream(folder / "d.npz", std::ios::binary) << whole.substr(0, 200);
  fs::last_write_time(folder / "d.npz", fs::file_time_type::clock::now() + std::chrono::seconds(4));
  wait(t);
  CHECK(t.document().model == c);
  CHECK(t.message() == "");
  put(folder, "d.npz", "cross.npz", 5);
  wait(t);
  wait(t);
  CHECK(t.document().model == folder / "d.npz");
}

TEST_CASE("a model that is opened takes the capture's place, and undo brings it back") {
  const fs::path folder = testing::scratch_dir("captures-model");
  const fs::path a = put(folder, "a.npz", "picture.npz", 1);
  Controller t;
  t.explorer.captures.open(folder);
  t.settle();
  REQUIRE(t.document().model == a);
  t.explorer.run.open_model(testing::example(), [](Document& document) { document.text = testing::story; });
  t.settle();
  CHECK_FALSE(t.explorer.captures.watching());
  CHECK(t.results().capture == nullptr);
  REQUIRE(t.results().model.model != nullptr);
  CHECK(t.results().run->trace->maps.size() == 8);
  CHECK(t.results().losses != nullptr);
  t.explorer.editor.undo();
  t.settle();
  CHECK(t.document().model == a);
  REQUIRE(t.results().capture != nullptr);
  CHECK(t.results().run->trace->picture != nullptr);
  CHECK(t.results().losses == nullptr);
}

TEST_CASE("what cannot be opened says why, and a path to captures is known") {
  Controller t;
  t.explorer.captures.open(fixture("bad_infinite.npz"));
  t.settle();
  CHECK(t.message().find("expected finite weights, found inf at head 1") != std::string::npos);
  CHECK(t.results().run == nullptr);
  CHECK(leads_to_captures(fixture("cross.npz")));
  CHECK(leads_to_captures(fixture("cross_bf16.safetensors")));
  CHECK(leads_to_captures(testing::reference("attention")));
  CHECK_FALSE(leads_to_captures(testing::example()));
  CHECK_FALSE(leads_to_captures(testing::example() / "model.safetensors"));
  CHECK_FALSE(leads_to_captures(testing::reference("attention") / "absent.npz"));
}

}  // namespace headscope::capture_controller_test
