// Tuning in steps is the learner's own, and its losses are those of runs.

#include "core/analysis/singular_tuning.h"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>

#include "core/base/error.h"
#include "core/edits/singular_edit.h"
#include "core/metrics/next_token.h"
#include "tests/support/paths.h"

namespace headscope::singular_tuning_test {

using doctest::Approx;

namespace {
constexpr WeightMatrix every[] = {WeightMatrix::q,      WeightMatrix::k,        WeightMatrix::v,      WeightMatrix::o,
                                  WeightMatrix::mlp_in, WeightMatrix::mlp_gate, WeightMatrix::mlp_out};

std::string refusal(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}
/// Of this process; 0 where the system does not tell.
std::ptrdiff_t threads_now() {
  std::error_code none;
  const std::filesystem::directory_iterator all("/proc/self/task", none);
  return none ? 0 : std::distance(begin(all), end(all));
}
}  // namespace

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
  CHECK(result->losses.back() == Approx(mean_loss(*run(loaded, plain, Ctx{backend}))).epsilon(1e-5));
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

TEST_CASE("in every family an expert is refused in words, or a run takes its edits and has the loss that was told") {
  Backend backend(1);
  int learnt = 0, cut = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testing::reference("families"))) {
    const std::string name = entry.path().filename().string();
    CAPTURE(name);
    LoadedModel loaded;
    loaded.model = Model::load(entry.path(), backend);
    RunRequest plain;
    plain.model = entry.path();
    plain.ids = {3, 17, 8, 21, 40, 3, 17, 9};
    plain.capture.maps = MapStorage::none;
    const auto learner = [&](const std::vector<WeightMatrix>& matrices) {
      return singular_learner(loaded, entry.path(), matrices, {.rate = 0.05}, 8, backend);
    };
    std::vector<WeightMatrix> usable;
    for (const WeightMatrix matrix : every) {
      RunRequest edited = plain;
      edited.edits = {{{0, {}}, ScaleSingular{matrix, {{1, 1, 0.5}}}}};
      if (loaded.model->config().clip_qkv > 0 && matrix <= WeightMatrix::v) {
        CHECK(refusal([&] { learner({matrix}); }).find("whose products are used as they are") != std::string::npos);
        CHECK(refusal([&] { run(loaded, edited, Ctx{backend}); }).find("whose products are used as they are") !=
              std::string::npos);
        ++cut;
      } else {
        usable.push_back(matrix);
      }
    }
    std::unique_ptr<SingularLearner> one;
    const std::string why = refusal([&] { one = learner(usable); });
    if (!one) {
      CAPTURE(why);
      CHECK((why.find("a decoder, which tells every token") != std::string::npos ||
             why.find("reordered or multiplied") != std::string::npos));
      continue;
    }
    ++learnt;
    const Batch batch = text_batch(plain.ids);
    for (int step = 0; step < 3; ++step) one->step(batch);
    one->set_expert(as_written(one->expert()));
    RunRequest edited = plain;
    for (const Intervention& each : expert_edits(one->expert()))
      edited.edits.push_back(parse_intervention(describe(each), "test"));
    REQUIRE_FALSE(edited.edits.empty());
    CHECK(std::abs(mean_loss(*run(loaded, edited, Ctx{backend})) - one->loss(batch)) < 1e-5);
  }
  CHECK(learnt > 30);
  CHECK(cut == 15);  // MPT, OLMo, OLMoE, DBRX twice
}

TEST_CASE("an expert is refused where memory is too short, stops when asked to, and takes no more threads than given") {
  Backend backend(1);
  SingularTuningAsked asked;
  asked.run.model = testing::reference("gpt2-random");
  asked.run.ids = {3, 5, 2, 7, 9};
  asked.matrices = {WeightMatrix::v};
  asked.steps = 1;
  const LoadedModel loaded = load_model(asked.run.model, backend);
  const auto within = [&](std::uint64_t bytes) {
    return refusal([&] { singular_learner(loaded, asked.run.model, asked.matrices, {}, 5, backend, {}, bytes); });
  };
  CHECK(within(1000).find("a training that fits into 1 kB of free memory") != std::string::npos);
  CHECK(within(std::uint64_t{1} << 30) == "");
  const TrainingMemory need = SingularLearner::memory(*loaded.model, asked.matrices, 5);
  CHECK(need.weights >= 4.0 * static_cast<double>(loaded.model->info().parameters));
  CHECK(SingularLearner::memory(*loaded.model, {std::begin(every), std::end(every)}, 5).weights > need.weights);
  CHECK(SingularLearner::memory(*loaded.model, asked.matrices, 10).attention == Approx(4 * need.attention));

  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(singular_learner(loaded, asked.run.model, asked.matrices, {}, 5, backend, stop.get_token()),
                  Cancelled);

  const std::ptrdiff_t before = threads_now();
  SingularTuner tuner(loaded, asked);
  tuner.step(Ctx{backend});
  CHECK(threads_now() == before);
}

}  // namespace headscope::singular_tuning_test
