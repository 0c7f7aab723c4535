#include "core/generate/teacher_forcing.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/metrics/next_token.h"
#include "tests/support/paths.h"

namespace headscope::teacher_forcing_test {

TEST_CASE("forced losses are those of one pass, free ones those of the model's own text") {
  Backend backend(1);
  const LoadedModel model = load_model(testing::reference("gpt2-random"), backend);
  const Ctx ctx{backend};
  const std::vector<std::int32_t> text = {3, 14, 15, 9, 2, 6, 5, 3, 5, 8};
  const Generator::Choice greedy{{.temperature = 0}, 1};
  const ForcedAndFree out = force_and_run_free(model, text, 4, {}, greedy, ctx);
  CHECK(out.target == std::vector<std::int32_t>{2, 6, 5, 3, 5, 8});

  RunRequest request;
  request.ids = text;
  request.add_bos = false;
  const auto trace = run(model, request, ctx);
  const auto losses = token_losses(*trace);
  REQUIRE(out.forced_loss.size() == 6);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(out.forced_loss[i] == doctest::Approx(losses[i + 3]).epsilon(1e-5));
    CHECK(out.guessed[i] == top_next(*trace, 1, static_cast<int>(i) + 3).front().id);
  }

  // Free running is greedy generation from the first four tokens; the first step is still the same.
  Generator generator(model, RunRequest{}, false);
  std::vector<std::int32_t> own(text.begin(), text.begin() + 4);
  for (std::size_t i = 0; i < 6; ++i) {
    RunRequest prefix;
    prefix.ids = own;
    prefix.add_bos = false;
    const auto now = run(model, prefix, ctx);
    const Tensor last = now->logits.select(0, now->logits.dim(0) - 1);
    CHECK(out.free_loss[i] == doctest::Approx(next_token_loss(last, text[i + 4])).epsilon(1e-5));
    own.push_back(generator.step(ctx, own, i, greedy)->token);
    CHECK(out.written[i] == own.back());
  }
  CHECK(out.free_loss[0] == doctest::Approx(out.forced_loss[0]));
}

TEST_CASE("on its own text the model is taught what it does anyway") {
  Backend backend(1);
  const LoadedModel model = load_model(testing::reference("llama-gqa"), backend);
  const Ctx ctx{backend};
  const Generator::Choice greedy{{.temperature = 0}, 1};
  Transcript transcript{{3, 14, 15}, {}};
  Generator generator(model, RunRequest{}, false);
  for (int i = 0; i < 7; ++i) transcript.steps.push_back(generator.step(ctx, transcript, greedy));
  const ForcedAndFree out = force_and_run_free(model, transcript.ids(), 3, {}, greedy, ctx);
  CHECK(out.guessed == out.target);
  CHECK(out.written == out.target);
  CHECK(out.free_loss == out.forced_loss);
  CHECK_THROWS_AS(force_and_run_free(model, transcript.ids(), 10, {}, greedy, ctx), Error);
  CHECK_THROWS_AS(force_and_run_free(model, transcript.ids(), 0, {}, greedy, ctx), Error);
}

}  // namespace headscope::teacher_forcing_test
