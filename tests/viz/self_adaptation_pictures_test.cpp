#include "app/render/self_adaptation_pictures.h"

#include <doctest/doctest.h>

#include "core/base/nth.h"
#include "viz/scene/scene.h"

namespace headscope::self_adaptation_pictures_test {

namespace {
SelfAdaptation two_tasks() {
  SelfAdaptation out;
  out.tasks = {{"first", "", {}, {}, {}}, {"second", "", {}, {}, {}}};
  // Tasks are not equally hard: 1 and 6 nats without an expert.
  out.losses = {{1.0, 6.0}, {0.5, 7.0}, {1.25}};
  return out;
}
}  // namespace

TEST_CASE("the losses of experts are written as they are, in the colour of what each changes on its task") {
  const Matrix table = expert_loss_matrix(two_tasks());
  REQUIRE(table.values.dim(0) == 3);
  REQUIRE(table.values.dim(1) == 2);
  CHECK(table.diverging);
  const float changes[3][2] = {{0, 0}, {-0.5f, 1}, {0.25f, 0}};
  const char* const written[3][2] = {{"1.000", "6.000"}, {"0.500", "7.000"}, {"1.250", ""}};
  for (Index e = 0; e < 3; ++e)
    for (Index t = 0; t < 2; ++t) {
      CAPTURE(e);
      CAPTURE(t);
      const bool known = e < 2 || t == 0;
      CHECK(nth(table.pending, 2 * e + t) == !known);
      CHECK(nth(table.texts, 2 * e + t) == written[e][t]);
      if (known) CHECK(table.values.at(e, t) == changes[e][t]);
    }
}

TEST_CASE("two experts or adapters together are compared with each task's own one alone") {
  ExpertComposition found;
  found.tasks = two_tasks().tasks;
  found.experts = {{0.5, 7}, {1.25, 4}};
  found.adapters = {{0.25, 8}, {3, 2}};
  found.pairs = {{0, 1, {{0, 0}, {0.75, 5}, {0, 0}, {1, 3}}, {{0, 0}, {2, 2.5}, {0, 0}, {0.125, 2}}}};
  const Matrix table = composition_matrix(found);
  REQUIRE(table.values.dim(0) == 2);
  REQUIRE(table.values.dim(1) == 6);
  CHECK(table.diverging);
  // own, half, sum on the first task; own, half, sum on the second
  const double losses[2][6] = {{0.5, 0.75, 1, 4, 5, 3}, {0.25, 2, 0.125, 2, 2.5, 2}};
  for (Index row = 0; row < 2; ++row)
    for (Index i = 0; i < 6; ++i) {
      const double own = losses[row][i < 3 ? 0 : 3];
      CHECK(table.values.at(row, i) == static_cast<float>(losses[row][i] - own));
      CHECK(std::stod(nth(table.texts, row * 6 + i)) == losses[row][i]);
    }
}

}  // namespace headscope::self_adaptation_pictures_test
