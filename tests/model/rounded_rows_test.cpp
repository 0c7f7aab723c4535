// What models of few bits round, row by row, against the definition.

#include "core/model/rounded_rows.h"

#include <doctest/doctest.h>

#include <cmath>

#include "core/tensor/tape.h"

namespace headscope::rounded_rows_test {

TEST_CASE("each row is rounded to whole numbers of a step of its own, ties to the even one") {
  Backend backend;
  const float numbers[] = {1, -0.5f, 0.25f, 0, -8, 3, 0.03f, 7.99f, 1e-7f, -4e-6f, 0, 0};
  const Tensor x = Tensor::from({3, 4}, numbers);
  CHECK(rounded_rows(backend, x, 0).data() == x.data());
  const Tensor out = rounded_rows(backend, x, 8);
  // 127, −63.5, 31.75, 0 of 1 ÷ 127; −127, 47.625, 0.47625, 126.84 of 8 ÷ 127; 1.27, −50.8 of 1e-5 ÷ 127.
  const double expected[] = {127 / 127.0,     -64 / 127.0, 32 / 127.0,       0, -8, 48 * 8 / 127.0, 0,
                             127 * 8 / 127.0, 1e-5 / 127,  -51 * 1e-5 / 127, 0, 0};
  for (Index i = 0; i < 12; ++i) {
    CAPTURE(i);
    CHECK(std::abs(static_cast<double>(out.values()[static_cast<std::size_t>(i)]) - expected[i]) <=
          1e-6 * std::abs(expected[i]));
  }
  // Two bits are −2 … 1, of which a row has −1 … 1.
  CHECK(rounded_rows(backend, x, 2).at(0, 1) == 0);
  CHECK(rounded_rows(backend, x, 2).at(1, 3) == 8);
}

}  // namespace headscope::rounded_rows_test
