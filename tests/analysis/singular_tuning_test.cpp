// Tuning in steps is the learner's own, and its losses are those of runs.

#include "core/analysis/singular_tuning.h"

#include <doctest/doctest.h>

#include "core/base/error.h"
#include "core/metrics/next_token.h"
#include "tests/support/paths.h"

namespace headscope::singular_tuning_test {

using doctest::Approx;

TEST_CASE("an expert is tuned step by step as the learner does; edits of the text's run are left aside") {
  Backend backend(1);
  const auto folder = testing::source_dir() / "models" / "tiny-gpt2";
  SingularTuningAsked asked;
  asked.run.model = folder;
  asked.run.text = "Anna sold pies and Ben sold milk.";
  asked.run.edits = {parse_intervention("0.*: ablate zero", "test")};
  asked.matrices = {WeightMatrix::v};
  asked.steps = 5;
  asked.rate = 0.03;
  const LoadedModel loaded = load_model(folder, backend);
  SingularTuner tuner(loaded, asked);
  CHECK(tuner.total() == 0);
  CHECK_FALSE(tuner.result());
  int steps = 0;
  while (!tuner.finished()) tuner.step(Ctx{backend}), ++steps;
  CHECK(steps == 6);  // the first prepares
  CHECK(tuner.share() == 1);
  const auto result = tuner.result();
  REQUIRE(result->losses.size() == 6);

  RunRequest plain = asked.run;
  plain.edits.clear();
  const auto before = run(loaded, plain, Ctx{backend});
  CHECK(result->losses.front() == Approx(mean_loss(*before)).epsilon(1e-5));
  plain.edits = expert_edits(result->expert);
  CHECK(result->losses.back() == Approx(mean_loss(*run(loaded, plain, Ctx{backend}))).epsilon(1e-3));
  CHECK(result->losses.back() < result->losses.front());

  SingularLearner learner(Parameters::load(folder), asked.matrices, {.rate = asked.rate}, backend);
  for (int step = 0; step < 5; ++step)
    CHECK(learner.step(text_batch(before->ids())) ==
          Approx(result->losses[static_cast<std::size_t>(step)]).epsilon(1e-5));
  for (std::size_t part = 0; part < result->expert.parts.size(); ++part)
    for (std::size_t i = 0; i < result->expert.parts[part].z.size(); ++i)
      CHECK(learner.expert().parts[part].z[i] == Approx(result->expert.parts[part].z[i]).epsilon(0.02));
}

TEST_CASE("a model that tells no next token has no expert of a text, and says so") {
  Backend backend(1);
  const auto folder = testing::source_dir() / "models" / "tiny-bert";
  SingularTuningAsked asked;
  asked.run.model = folder;
  asked.run.text = "Rosa sold signs.";
  asked.matrices = {WeightMatrix::v};
  SingularTuner tuner(load_model(folder, backend), asked);
  CHECK_THROWS_AS(tuner.step(Ctx{backend}), Error);
}

}  // namespace headscope::singular_tuning_test
