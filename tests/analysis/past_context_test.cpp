// Texts past the trained length beside passes made by hand.

#include "core/analysis/past_context.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/generate/streaming.h"
#include "core/metrics/next_token.h"
#include "tests/support/paths.h"

namespace headscope::past_context_test {

using doctest::Approx;
using testing::source_dir;

namespace {

double mean(const std::vector<double>& values, std::size_t from, std::size_t to) {
  double sum = 0;
  for (std::size_t i = from; i < to; ++i) sum += values[i];
  return sum / static_cast<double>(to - from);
}

const LongRun::Line& line_of(const LongRun& run, const std::string& title) {
  for (const LongRun::Line& line : run.lines)
    if (line.title == title) return line;
  FAIL("no line " << title);
  return run.lines.front();
}

}  // namespace

TEST_CASE("a rotary model past its length: every method is the pass with its edit, and within it YaRN's ramps differ") {
  Backend backend(1);
  const auto folder = source_dir() / "models/tiny-llama";
  const LoadedModel model = load_model(folder, backend);
  PastContextSettings settings;
  settings.times = 2;
  const LongRun run = past_context(model, folder, {}, {}, settings, Ctx{backend});
  REQUIRE(run.refusal == "");
  CHECK(run.context == 256);
  CHECK(run.tokens == 512);
  CHECK(run.texts == 3);
  std::vector<std::string> titles;
  for (const LongRun::Line& line : run.lines) titles.push_back(line.title);
  CHECK(titles == std::vector<std::string>{"none", "linear (PI)", "NTK", "YaRN", "Llama 3", "chunks", "NoPE", "ALiBi"});
  const auto texts = learnt_texts(model, folder, 3, 512);
  for (const auto& [title, edit] : {std::pair{"YaRN", "*: position rope scaling yarn 4 ramp whole"},
                                    {"none", "*: position rope"},
                                    {"chunks", "*: position chunks 192"},
                                    {"NoPE", "*: position none"}}) {
    CAPTURE(title);
    double bin = 0, within = 0, beyond = 0;
    for (const auto& ids : texts) {
      RunRequest request;
      request.ids = ids;
      request.ids_are_whole = true;
      request.capture.all_logits = true;
      request.edits = {parse_intervention(edit, "test")};
      const auto losses = token_losses(*headscope::run(model, request, Ctx{backend}));
      bin += mean(losses, 288, 320) / 3;
      within += mean(losses, 0, 256) / 3;
      beyond += mean(losses, 256, 511) / 3;
    }
    CHECK(line_of(run, title).loss[9] == Approx(bin).epsilon(1e-6));
    CHECK(line_of(run, title).by_part[0] == Approx(within).epsilon(1e-6));
    CHECK(line_of(run, title).by_part[1] == Approx(beyond).epsilon(1e-6));
  }
  // Beyond its length the model as it is loses most of what it knows; the framed one is the least of its column.
  CHECK(line_of(run, "none").by_part[1] > line_of(run, "none").by_part[0] + 0.5);
  for (const LongRun::Line& line : run.lines)
    CHECK(line.by_part[1] >= run.lines[static_cast<std::size_t>(run.best(1))].by_part[1]);
  settings.ramp = RotaryConfig::Ramp::turns;
  const LongRun paper = past_context(model, folder, {}, {}, settings, Ctx{backend});
  CHECK(std::abs(line_of(paper, "YaRN").by_part[1] - line_of(run, "YaRN").by_part[1]) > 1e-3);
}

TEST_CASE("a table of positions ends, and its model with it; a model without stories asks for a text") {
  Backend backend(1);
  const auto folder = source_dir() / "models/tiny-gpt2";
  const LoadedModel model = load_model(folder, backend);
  PastContextSettings settings;
  settings.times = 2;
  const LongRun run = past_context(model, folder, {}, {}, settings, Ctx{backend});
  REQUIRE(run.refusal == "");
  CHECK(!std::isnan(line_of(run, "own table").by_part[0]));
  CHECK(std::isnan(line_of(run, "own table").by_part[1]));
  CHECK(std::isnan(line_of(run, "NoPE").by_part[1]));  // no text of such a model is longer
  CHECK(run.lines[static_cast<std::size_t>(run.best(0))].title == "own table");
  CHECK(run.best(1) == -1);
  const LoadedModel other = load_model(testing::reference("gpt2-random"), backend);
  CHECK(past_context(other, testing::reference("gpt2-random"), {}, {1, 2, 3}, settings, Ctx{backend})
            .refusal.text()
            .find("Open a text of more than") == 0);
}

TEST_CASE("a stream of many windows: a rotary model reads past its context, in the cache as in a text that it knows") {
  Backend backend(1);
  const auto folder = source_dir() / "models/tiny-llama";
  const LoadedModel model = load_model(folder, backend);
  const auto ids = learnt_texts(model, folder, 1, 600).front();
  const StreamingSettings settings{64, 4};
  const Ctx ctx{backend};
  const auto window = streaming_losses(model, ids, CachePolicy::window, settings, ctx);
  REQUIRE(window.size() == 599);
  // A window is the same window wherever it stands: the last 256 tokens read alone give the same, once it is full in
  // all layers: 3 layers reach 3 windows back.
  const std::span<const std::int32_t> last = std::span(ids).last(256);
  const auto alone = streaming_losses(model, last, CachePolicy::window, settings, ctx);
  for (std::size_t i = 200; i < alone.size(); ++i) CHECK(window[344 + i] == Approx(alone[i]).epsilon(2e-3));
  // The whole cache meets distances that it never saw; a window does not.
  const auto whole = streaming_losses(model, ids, CachePolicy::whole, settings, ctx);
  CHECK(mean(whole, 450, 599) > mean(window, 450, 599) + 0.3);
  CHECK(mean(whole, 0, 64) == Approx(mean(window, 0, 64)).epsilon(1e-4));
}

TEST_CASE("the best way of a part is the one of least loss among those that have any") {
  LongRun run;
  run.lines = {{"a", {}, {std::nan(""), 3, std::nan("")}},
               {"b", {}, {2, 1, std::nan("")}},
               {"c", {}, {1, 1, std::nan("")}},
               {"d", {}, {1.5, std::nan(""), std::nan("")}}};
  CHECK(run.best(0) == 2);
  CHECK(run.best(1) == 1);  // of equals the first
  CHECK(run.best(2) == -1);
}

TEST_CASE("a model without stories reads the text that is open, in whole bins and what is left") {
  Backend backend(1);
  const auto folder = testing::reference("gpt2-random");
  const LoadedModel model = load_model(folder, backend);
  const int context = model.model->config().context;
  std::vector<std::int32_t> own;
  for (int i = 0; i < context + 2; ++i) own.push_back(1 + i * 7 % 50);
  const LongRun run = past_context(model, folder, {}, own, {}, Ctx{backend});
  REQUIRE(run.refusal == "");
  CHECK(run.source == "your text, " + std::to_string(context + 2) + " tokens");
  CHECK(run.texts == 1);
  CHECK(run.tokens == context + 2);
  for (const LongRun::Line& line : run.lines) {
    CHECK(line.loss.size() == static_cast<std::size_t>((context + 1 + 31) / 32));
    CHECK(line.by_part.size() == 2);
  }
  own.resize(static_cast<std::size_t>(context) + 1);
  const LongRun shorter = past_context(model, folder, {}, own, {}, Ctx{backend});
  for (const LongRun::Line& line : shorter.lines) CHECK(line.by_part.size() == 1);
  REQUIRE(context < 64);
  const std::vector<std::int32_t> whole(65, 7);  // 64 losses: two bins of 32, and none begun
  const LongRun two = past_context(model, folder, {}, whole, {}, Ctx{backend});
  for (const LongRun::Line& line : two.lines) CHECK(line.loss.size() == 2);
  own.pop_back();
  CHECK(past_context(model, folder, {}, own, {}, Ctx{backend}).refusal.text().find("Open a text of more than") == 0);
}

}  // namespace headscope::past_context_test
