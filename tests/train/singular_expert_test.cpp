// Experts of singular values: their gradient is that of losses of whole runs with the edit, what is learnt is what the
// edits do, and nothing else of the model moves.

#include "core/train/singular_expert.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "core/analysis/singular_tuning.h"
#include "core/base/error.h"
#include "core/metrics/next_token.h"
#include "tests/support/paths.h"

namespace headscope::singular_expert_test {

using doctest::Approx;
using testing::reference;

namespace {

const std::vector<std::int32_t> ids{3, 14, 15, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2};

struct Bench {
  explicit Bench(const char* name) : folder(reference(name)), loaded(load_model(folder, backend)) {}
  /// Of a run with these edits, by way of their words.
  double loss(const std::vector<Intervention>& edits) {
    RunRequest request;
    request.model = folder;
    request.ids = ids;
    for (const Intervention& each : edits) request.edits.push_back(parse_intervention(describe(each), "test"));
    return mean_loss(*run(loaded, request, Ctx{backend}));
  }
  SingularLearner learner(const std::vector<WeightMatrix>& matrices, SingularLearner::Settings settings = {}) {
    return SingularLearner(Parameters::load(folder), matrices, settings, backend);
  }
  Backend backend{1};
  std::filesystem::path folder;
  LoadedModel loaded;
};

constexpr WeightMatrix every[] = {WeightMatrix::q,      WeightMatrix::k,        WeightMatrix::v,      WeightMatrix::o,
                                  WeightMatrix::mlp_in, WeightMatrix::mlp_gate, WeightMatrix::mlp_out};

}  // namespace

TEST_CASE("dL/dz of every matrix is the slope of the loss of whole runs with that value scaled") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Bench bench(name);
    SingularLearner learner = bench.learner({std::begin(every), std::end(every)});
    double loss = 0;
    const auto gradient = learner.gradient(text_batch(ids), loss);
    CHECK(loss == Approx(bench.loss({})).epsilon(1e-5));
    const auto& parts = learner.expert().parts;
    REQUIRE(gradient.size() == parts.size());
    CHECK(parts.size() == 2u * (std::string(name) == "gpt2-random" ? 6 : 7));  // GPT-2 has no gate
    for (std::size_t part = 0; part < parts.size(); ++part) {
      CAPTURE(part);
      REQUIRE(gradient[part].size() == parts[part].z.size());
      // The value that matters most, and the first.
      const auto most = static_cast<std::size_t>(
          std::ranges::max_element(gradient[part], {}, [](double g) { return std::abs(g); }) - gradient[part].begin());
      for (const std::size_t i : {most, std::size_t{0}}) {
        const auto at = [&](double z) {
          SingularExpert one{{parts[part]}};
          one.parts[0].z[i] = z;
          return bench.loss(expert_edits(one));
        };
        constexpr double h = 0.05;
        CHECK(gradient[part][i] == Approx((at(1 + h) - at(1 - h)) / (2 * h)).epsilon(0.02).scale(0.005));
      }
    }
  }
}

TEST_CASE("an expert learns a text; what it learnt is what its edits do, in another pass of the model") {
  for (const char* name : {"gpt2-random", "llama-gqa"}) {
    CAPTURE(name);
    Bench bench(name);
    SingularLearner learner = bench.learner({WeightMatrix::v, WeightMatrix::mlp_out}, {.rate = 0.05});
    const double before = learner.loss(text_batch(ids));
    double told = 0;
    for (int step = 0; step < 20; ++step) {
      const double expected = learner.loss(text_batch(ids));
      told = learner.step(text_batch(ids));
      CHECK(told == Approx(expected).epsilon(1e-6));  // before the step
    }
    const double after = learner.loss(text_batch(ids));
    CHECK(after < before - 0.2);
    const auto edits = expert_edits(learner.expert());
    CHECK(edits.size() == 4);
    CHECK(bench.loss(edits) == Approx(after).epsilon(1e-4));
    CHECK(bench.loss({}) == Approx(before).epsilon(1e-5));  // the model itself is as it was
    // The first step of Adam is the rate, whatever the gradient: each z by 0.05.
    SingularLearner again = bench.learner({WeightMatrix::v}, {.rate = 0.05});
    double loss = 0;
    const auto gradient = again.gradient(text_batch(ids), loss);
    again.step(text_batch(ids));
    for (std::size_t part = 0; part < gradient.size(); ++part)
      for (std::size_t i = 0; i < gradient[part].size(); ++i)
        if (std::abs(gradient[part][i]) > 1e-5)
          CHECK(again.expert().parts[part].z[i] == Approx(gradient[part][i] > 0 ? 0.95 : 1.05).epsilon(1e-3));
    // Back to the model as it was, and to what was learnt.
    SingularExpert none = learner.expert();
    for (auto& part : none.parts) std::ranges::fill(part.z, 1.0);
    CHECK(expert_edits(none).empty());
    const SingularExpert learnt = learner.expert();
    learner.set_expert(none);
    CHECK(learner.loss(text_batch(ids)) == Approx(before).epsilon(1e-6));
    learner.set_expert(learnt);
    CHECK(learner.loss(text_batch(ids)) == Approx(after).epsilon(1e-6));
  }
}

TEST_CASE("an expert is few numbers, stays within bounds, and what makes no sense is refused") {
  Bench bench("gpt2-random");
  // d_model 32: W_V is 32 × 32 in each of two layers.
  SingularLearner learner = bench.learner({WeightMatrix::v}, {.rate = 5, .most = 2});
  CHECK(learner.expert().numbers() == 64);
  for (int step = 0; step < 3; ++step) learner.step(text_batch(ids));
  for (const auto& part : learner.expert().parts)
    for (const double z : part.z) CHECK(std::abs(z) <= 2);
  CHECK(bench.learner({WeightMatrix::v, WeightMatrix::v}).expert().numbers() == 64);  // each once
  CHECK_THROWS_AS(bench.learner({WeightMatrix::mlp_gate}), Error);
  CHECK_THROWS_AS(bench.learner({WeightMatrix::v}, {.rate = 0}), Error);
  CHECK_THROWS_AS(bench.learner({WeightMatrix::v}, {.most = 0.5}), Error);
  std::stop_source stop;
  stop.request_stop();
  const SingularExpert before = learner.expert();
  CHECK_THROWS_AS(learner.step(text_batch(ids), stop.get_token()), Cancelled);
  for (std::size_t part = 0; part < before.parts.size(); ++part)
    CHECK(learner.expert().parts[part].z == before.parts[part].z);
}

}  // namespace headscope::singular_expert_test
