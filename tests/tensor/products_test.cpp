#include "core/tensor/products.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/thread_pool.h"
#include "tests/support/random_tensor.h"
#include "tests/support/worst.h"

namespace headscope::products_test {

using testing::random_tensor;
using testing::Worst;

namespace {

/// A (rows, columns) matrix in a buffer that is wider, stored either way round.
Tensor strided(Index rows, Index columns, bool turned, std::uint64_t seed) {
  return turned ? random_tensor({columns + 2, rows + 3}, seed)
                      .slice(0, 1, columns + 1)
                      .slice(1, 2, rows + 2)
                      .transpose(0, 1)
                : random_tensor({rows + 2, columns + 3}, seed).slice(0, 1, rows + 1).slice(1, 2, columns + 2);
}

}  // namespace

TEST_CASE("products equal the definition in double, across blocks, strips and panels, whichever way they are stored") {
  ThreadPool pool(2), alone(1), many(5);
  struct Case {
    Index rows, depth, columns;
  };
  for (const Case c : {Case{1, 1, 1}, {7, 129, 33}, {25, 300, 64}, {300, 128, 96}, {128, 700, 130}, {520, 40, 31}}) {
    CAPTURE(c.rows);
    for (int way = 0; way < 4; ++way) {
      CAPTURE(way);
      const Tensor a = strided(c.rows, c.depth, way & 1, 1), b = strided(c.depth, c.columns, way & 2, 2),
                   bias = random_tensor({c.columns}, 3), before = random_tensor({c.rows, c.columns}, 4);
      for (const bool add : {false, true}) {
        CAPTURE(add);
        const auto result = [&](ThreadPool& threads) {
          // Inside a wider matrix whose other elements nobody may touch.
          Tensor wide = Tensor::full({c.rows, c.columns + 5}, 7.0f);
          Tensor inside = wide.slice(1, 2, c.columns + 2);
          if (add)
            for (Index i = 0; i < c.rows; ++i)
              for (Index j = 0; j < c.columns; ++j) inside.ref(i, j) = before.at(i, j);
          const Product product{a, b, add ? Tensor() : bias, inside, add};
          multiply(std::span(&product, 1), threads);
          return wide;
        };
        const Tensor wide = result(pool);
        Worst worst;
        for (Index i = 0; i < c.rows; ++i)
          for (Index j = 0; j < c.columns; ++j) {
            double sum = add ? before.at(i, j) : bias.at(j);
            for (Index k = 0; k < c.depth; ++k) sum += static_cast<double>(a.at(i, k)) * b.at(k, j);
            worst.add(std::abs(sum - wide.at(i, j + 2)));
          }
        CHECK(worst.value() < 1e-4);
        for (Index i = 0; i < c.rows; ++i)
          for (const Index j : {Index{0}, Index{1}, c.columns + 2, c.columns + 3, c.columns + 4})
            if (wide.at(i, j) != 7.0f) FAIL("written beside the result at row ", i, ", column ", j);
        CHECK(std::ranges::equal(wide.values(), result(alone).values()));
        CHECK(std::ranges::equal(wide.values(), result(many).values()));
      }
    }
  }
}

TEST_CASE("several products side by side give what each gives alone") {
  ThreadPool pool(2);
  const Tensor x = random_tensor({200, 96}, 1), w = random_tensor({96, 160}, 2), dy = random_tensor({200, 160}, 3);
  const auto made = [](Index rows, Index columns) { return Tensor::full({rows, columns}, std::nanf("")); };
  const std::vector<Product> together{{x.transpose(0, 1), dy, {}, made(96, 160)},
                                      {dy, w.transpose(0, 1), {}, made(200, 96)},
                                      {x, w, {}, made(200, 160)}};
  multiply(together, pool);
  for (const Product& each : together) {
    const Product alone{each.a, each.b, {}, made(each.c.dim(0), each.c.dim(1))};
    multiply(std::span(&alone, 1), pool);
    CHECK(std::ranges::equal(each.c.values(), alone.c.values()));
  }
}

}  // namespace headscope::products_test
