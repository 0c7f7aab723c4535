// The recurrent mechanisms of the catalogue beside what they are made of, and their limits.

#include <doctest/doctest.h>

#include <cmath>

#include "core/attention/neural_memory.h"
#include "core/attention/recurrent_cells.h"
#include "core/attention/state_space.h"
#include "core/base/error.h"
#include "tests/attention/mechanisms/input.h"

namespace headscope::memory_mechanism_test {

using namespace testing;

TEST_CASE("the state space of the catalogue is the worked example, as kernel, weights, recurrence and transforms") {
  MechanismInput in = random_head(6, 6, 4, 1, "causal");
  in.v = Tensor::zeros({6, 1});
  in.v.ref(0, 0) = 1;
  const MechanismResult result = run("state-space", in, Detail::steps);
  const double expected[] = {0.5, 0.45, 0.405, 0.3645, 0.32805, 0.295245};
  for (Index t = 0; t < 6; ++t) {
    CHECK(result.output.at(t, 0) == doctest::Approx(expected[t]));
    CHECK(result.weights.at(t, 0) == doctest::Approx(expected[t]));
    CHECK(step_of(result, "kernel").value.at(0, t) == doctest::Approx(expected[t]));
  }
  for (const char* spec : {"state-space", "state-space system=hippo size=6 step=0.1"}) {
    const MechanismInput random = random_head(20, 20, 4, 3, "causal");
    const MechanismChoice choice = parse_mechanism(spec);
    const Tensor parallel = run(spec, random, Detail::steps).output;
    CHECK(gap(choice.mechanism->recurrent(random, choice.values).output, parallel) < 1e-5);
    CHECK(gap(choice.mechanism->output(random, choice.values), parallel) < 1e-5);
  }
}

TEST_CASE("a memory that learns with θ = ½ and nothing else is the delta rule") {
  const MechanismInput in = random_head(16, 16, 5, 3, "causal");
  const MechanismResult titans = run("titans learning=0.5 momentum=0 forgetting=0", in, Detail::steps),
                        delta = run("delta", in, Detail::steps);
  CHECK(gap(titans.output, delta.output) < 1e-5);
  CHECK(gap(titans.weights, delta.weights) < 1e-5);
  CHECK(run("titans hidden=8 learning=0.05", in, Detail::steps).output.shape() == in.v.shape());
  CHECK(step_of(run("titans form=context persistent=3", in, Detail::steps), "mask").value.dim(1) == 3 + 2 * 16);
  CHECK(step_of(run("titans form=gate persistent=3", in, Detail::steps), "mask").value.dim(1) == 3 + 16);
}

TEST_CASE("Mamba's weights without selectivity fade alike, and a decay of nothing is linear attention") {
  const MechanismInput in = random_head(12, 12, 4, 3, "causal");
  const MechanismResult flat = run("mamba steps=shared sensitivity=0", in, Detail::steps);
  const Tensor& delta = step_of(flat, "delta").value;
  for (Index t = 1; t < 12; ++t) CHECK(delta.at(t, 0) == delta.at(0, 0));
  const MechanismResult slow = run("mamba steps=shared sensitivity=0 rate=0.001", in, Detail::steps);
  for (Index t = 0; t < 12; ++t)
    for (Index s = 0; s <= t; ++s) {
      double score = 0;
      for (Index c = 0; c < 4; ++c)
        score += static_cast<double>(in.scale * in.q.at(t, c)) * static_cast<double>(in.k.at(s, c));
      CHECK(static_cast<double>(slow.weights.at(t, s)) ==
            doctest::Approx(static_cast<double>(delta.at(0, 0)) * score).epsilon(0.02));
    }
}

TEST_CASE("the cells' weights are their influence, and the curve's last point is the first token's") {
  const MechanismInput in = random_head(10, 10, 4, 3, "causal");
  for (const char* id : {"rnn", "lstm"}) {
    const MechanismResult result = run(id, in, Detail::steps);
    REQUIRE(result.curves.size() == 1);
    REQUIRE(result.curves[0].lines.size() == 3);
    const auto& line = result.curves[0].lines[id == std::string("rnn") ? 0 : 1];
    CHECK(line.y.back() == doctest::Approx(std::log10(static_cast<double>(result.weights.at(9, 0)))));
    CHECK(line.x.back() == 9);
  }
}

}  // namespace headscope::memory_mechanism_test
