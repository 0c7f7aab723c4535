// scan and streaming, as somebody types them, beside what the library says.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "core/analysis/findings.h"
#include "core/analysis/past_context.h"
#include "core/generate/streaming.h"
#include "tests/support/paths.h"
#include "tests/support/process.h"

namespace headscope::scan_cli_test {

using testing::run_cli;
using testing::source_dir;

namespace {
const char* const text = "One day, Anna sold pies. Tom sold milk. One day, Anna";

std::string out_of(std::vector<std::string> words) {
  const auto finished = run_cli(std::move(words));
  INFO(finished.err);
  REQUIRE(finished.code == 0);
  return finished.out;
}
bool says(const std::string& all, const std::string& words) {
  return all.find(words) != std::string::npos;
}
double mean(const std::vector<double>& values, std::size_t from) {
  double sum = 0;
  for (std::size_t i = from; i < values.size(); ++i) sum += values[i];
  return sum / static_cast<double>(values.size() - from);
}
}  // namespace

TEST_CASE("scan tells what the library found, for people and for scripts") {
  Backend backend(1);
  RunRequest request;
  request.model = source_dir() / "models" / "tiny-gpt2";
  request.text = text;
  FindingsSweep sweep(load_model(request.model, backend), {.run = request});
  while (!sweep.finished()) sweep.step(Ctx{backend});
  const auto found = sweep.result();
  REQUIRE(found->all.size() >= 3);
  const std::string people = out_of({"scan", "-m", "tiny-gpt2", "-t", text});
  const auto script = nlohmann::json::parse(out_of({"scan", "-m", "tiny-gpt2", "-t", text, "--json"}));
  CHECK(script["complete"] == true);
  REQUIRE(script["findings"].size() == found->all.size());
  for (std::size_t i = 0; i < found->all.size(); ++i) {
    CHECK(says(people, found->all[i].sentence.text()));
    CHECK(says(people, found->all[i].provenance.text()));
    CHECK(script["findings"][i]["effect"].get<double>() == doctest::Approx(found->all[i].effect).epsilon(1e-4));
    CHECK(says(script["findings"][i]["sentence"].get<std::string>(), found->all[i].sentence.text()));
  }
  // Of an encoder-decoder the decoder is asked: no other part can be named.
  CHECK(run_cli({"scan", "-m", "tiny-translate", "--source", "the kind mice", "-t", "kar", "--part", "enc"}).code == 2);
}

TEST_CASE("streaming reads texts past the context, its own and the stories, and says when nothing is evicted") {
  Backend backend(1);
  const auto folder = source_dir() / "models" / "tiny-llama";
  const LoadedModel loaded = load_model(folder, backend);
  const auto ids = learnt_texts(loaded, folder, 1, 300).front();
  REQUIRE(static_cast<int>(ids.size()) > loaded.model->config().context);
  std::string numbers;
  for (const std::int32_t id : ids) numbers += (numbers.empty() ? "" : ",") + std::to_string(id);
  const std::string own = out_of({"streaming", "-m", "tiny-llama", "--ids", numbers, "--no-bos", "--window", "32"});
  CHECK(own == out_of({"streaming", "-m", "tiny-llama", "--tokens", "300", "--window", "32"}));
  const StreamingSettings settings{32, 4};
  for (const auto& [policy, name] : {std::pair{CachePolicy::window, "window only "}, {CachePolicy::sinks, "sinks "}})
    CHECK(says(own,
               name + fmt::format("{:.4f}", mean(streaming_losses(loaded, ids, policy, settings, Ctx{backend}), 32))));

  const std::string shorter =
      out_of({"streaming", "-m", "tiny-llama", "-t", "Long ago, Rosa lived.", "--window", "64"});
  CHECK(says(shorter, "nothing is evicted"));
  CHECK_FALSE(says(shorter, "nan"));
  CHECK(run_cli({"streaming", "-m", "tiny-llama", "-t", text, "--edit", "*: ablate zero"}).code == 2);
  const auto encoder = run_cli({"streaming", "-m", "tiny-bert", "-t", "Rosa sold signs."});
  CHECK(encoder.code == 1);
  CHECK(says(encoder.err, "writes a text token by token"));
}

TEST_CASE("past the trained length: edits act, a text of one's own is read past the context, a short one is refused") {
  const auto rows = [](std::vector<std::string> more) {
    std::vector<std::string> words{"positions", "past"};
    words.insert(words.end(), more.begin(), more.end());
    return out_of(words);
  };
  std::string numbers;
  for (int i = 0; i < 60; ++i) numbers += (i ? "," : "") + std::to_string(3 + i % 7);
  // A family whose context is 40: its own text of 60 is past it.
  const std::string family = (testing::reference("families") / "mistral").string();
  const auto own = rows({"-m", family, "--ids", numbers});
  const auto edited = rows({"-m", family, "--ids", numbers, "--edit", "0.0: ablate zero"});
  CHECK(own != edited);
  // One whose own positions are no table either (ALiBi) reads on, too.
  const auto lines = rows({"-m", (testing::reference("families") / "mpt").string(), "--ids", numbers});
  CHECK(says(lines, "ALiBi"));
  CHECK_FALSE(says(lines, "own table"));
  const auto refused = run_cli({"positions", "past", "-m", family, "--ids", "3,4,5"});
  CHECK(refused.code == 1);
  CHECK(says(refused.err, "found 3 tokens"));
  CHECK(run_cli({"positions", "naive", "-m", "tiny-vit"}).code == 1);
}

}  // namespace headscope::scan_cli_test
