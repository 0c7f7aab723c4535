// What is measured and how it is carried on, whatever the clock says.

#include "core/analysis/mechanism_timing.h"

#include <doctest/doctest.h>

#include "core/tensor/backend.h"

namespace headscope::mechanism_timing_test {

namespace {
MechanismChoice choice(const char* id) {
  const Mechanism* const mechanism = find_mechanism(id);
  REQUIRE(mechanism);
  return {mechanism, mechanism->usual()};
}

std::vector<double> doubling(int count) {
  std::vector<double> out;
  for (int i = 0; i < count; ++i) out.push_back(static_cast<double>(16 << i));
  return out;
}
}  // namespace

TEST_CASE("where any time is too long each line is one measurement, and theory goes through it") {
  Backend backend{1};
  MechanismTiming timing(choice("linear"), 4, 3, 0);
  CHECK(timing.total() == 26);
  CHECK(timing.share() == 0);
  timing.step(Ctx{backend});
  CHECK(timing.done() == 13);
  CHECK(timing.share() == 0.5);
  CHECK_FALSE(timing.finished());
  timing.step(Ctx{backend});
  CHECK(timing.finished());
  CHECK(timing.share() == 1);
  const auto times = timing.result();
  CHECK(times->id == "linear");
  CHECK(times->mask == "causal");
  CHECK(times->d == 4);
  CHECK(times->d_v == 3);
  for (const MechanismTimes::Line* line : {&times->softmax, &times->mechanism}) {
    CHECK(line->n == doubling(1));
    REQUIRE(line->seconds.size() == 1);
    CHECK(line->seconds[0] > 0);
    CHECK(line->theory_n == doubling(13));
    CHECK(line->theory[0] == doctest::Approx(line->seconds[0]));
  }
  // Multiply-adds of softmax grow with n², those of linear attention with n.
  CHECK(times->softmax.theory[1] == doctest::Approx(4 * times->softmax.seconds[0]));
  CHECK(times->softmax.theory[12] == doctest::Approx(4096.0 * 4096 * times->softmax.seconds[0]));
  CHECK(times->mechanism.theory[12] == doctest::Approx(4096.0 * times->mechanism.seconds[0]));
}

TEST_CASE("known times of softmax are taken over where shape, mask and reach are the same, and only there") {
  MechanismTimes known;
  known.softmax.n = {16, 32}, known.softmax.seconds = {1, 4};
  known.mechanism.n = {16};
  known.d = 2, known.d_v = 3, known.most_seconds = 5, known.mask = "causal";
  const auto taken = [&](const MechanismTimes& from) {
    const MechanismTiming timing(choice("linear"), 2, 3, 5, &from);
    const bool over = timing.result()->softmax.seconds == std::vector<double>{1, 4};
    CHECK(timing.done() == (over ? 13 : 0));
    CHECK(timing.result()->softmax.n.empty() != over);
    return over;
  };
  CHECK(taken(known));
  const auto but = [&](auto change) {
    MechanismTimes other = known;
    change(other);
    return taken(other);
  };
  CHECK_FALSE(but([](MechanismTimes& t) { t.d = 3; }));
  CHECK_FALSE(but([](MechanismTimes& t) { t.d_v = 2; }));
  CHECK_FALSE(but([](MechanismTimes& t) { t.most_seconds = 4; }));
  CHECK_FALSE(but([](MechanismTimes& t) { t.mask = "full"; }));
  CHECK_FALSE(but([](MechanismTimes& t) { t.softmax.n.clear(); }));
  CHECK_FALSE(but([](MechanismTimes& t) { t.mechanism.n.clear(); }));
}

TEST_CASE("a mechanism that holds a matrix of all pairs stops at 4096 tokens, however quick it is") {
  MechanismTimes known;
  known.softmax.n = {16}, known.softmax.seconds = {1};
  known.mechanism.n = {16};
  known.d = 1, known.d_v = 1, known.most_seconds = 1e9, known.mask = "causal";
  const MechanismChoice cosine = choice("cosine");
  REQUIRE((cosine.mechanism->output == nullptr));
  Backend backend{1};
  MechanismTiming timing(cosine, 1, 1, 1e9, &known);
  while (!timing.finished()) timing.step(Ctx{backend});
  CHECK(timing.result()->mechanism.n == doubling(9));
  CHECK(timing.result()->mechanism.n.back() == 4096);
}

}  // namespace headscope::mechanism_timing_test
