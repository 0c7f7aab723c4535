// Sinusoidal, binary and learned positions: what is added to embeddings.

#include <doctest/doctest.h>

#include <cmath>

#include "core/attention/positions/binary_code.h"
#include "core/attention/positions/learned.h"
#include "core/attention/positions/position_methods.h"
#include "core/attention/positions/sinusoidal.h"
#include "tests/support/worst.h"

namespace headscope::added_positions_test {

using testing::Worst;

TEST_CASE("four sinusoids: position 0 is [0, 1, 0, 1], position 1 about [0.84, 0.54, 0.01, 1.00]") {
  const Tensor table = sinusoidal_positions(0, 2, 4);
  const float zero[] = {0, 1, 0, 1};
  const double one[] = {0.8415, 0.5403, 0.0100, 1.0000};
  for (Index c = 0; c < 4; ++c) {
    CHECK(table.at(0, c) == zero[c]);
    CHECK(static_cast<double>(table.at(1, c)) == doctest::Approx(one[c]).epsilon(1e-3));
  }
}

TEST_CASE("PE(pos + k) is a rotation of PE(pos), the same for every pos") {
  const int d = 32;
  const Tensor table = sinusoidal_positions(0, 200, d);
  for (const int shift : {1, 7, 100}) {
    const Tensor turn = sinusoidal_shift(shift, d);
    Worst most;
    for (Index p = 0; p < 100; ++p)
      for (Index c = 0; c < d; ++c) {
        double sum = 0;
        for (Index a = 0; a < d; ++a) sum += static_cast<double>(table.at(p, a)) * static_cast<double>(turn.at(a, c));
        most.add(std::abs(sum - static_cast<double>(table.at(p + shift, c))));
      }
    CHECK(most.value() < 1e-5);
    // A rotation: M Mᵀ = 1.
    for (Index a = 0; a < d; ++a)
      for (Index b = 0; b < d; ++b) {
        double sum = 0;
        for (Index c = 0; c < d; ++c) sum += static_cast<double>(turn.at(a, c)) * static_cast<double>(turn.at(b, c));
        CHECK(sum == doctest::Approx(a == b ? 1 : 0).epsilon(1e-6));
      }
  }
}

TEST_CASE("every sinusoidal row has length √(d/2), and its likeness to another depends on the distance alone") {
  const Tensor table = sinusoidal_positions(5, 60, 16);
  const Tensor norms = row_norms(table), likeness = cosine_similarity(table);
  for (Index p = 0; p < 60; ++p) CHECK(static_cast<double>(norms.at(p)) == doctest::Approx(std::sqrt(8.0)));
  for (Index p = 0; p + 10 < 60; ++p)
    CHECK(static_cast<double>(likeness.at(p, p + 10)) ==
          doctest::Approx(static_cast<double>(likeness.at(0, 10))).epsilon(1e-4));
}

TEST_CASE("sixteen positions in four bits") {
  const Tensor table = binary_table(16, 4);
  const char* expected[] = {"0000", "1000", "0100", "1100", "0010", "1010", "0110", "1110",
                            "0001", "1001", "0101", "1101", "0011", "1011", "0111", "1111"};
  for (Index p = 0; p < 16; ++p)
    for (Index b = 0; b < 4; ++b) CHECK(table.at(p, b) == (expected[p][b] == '1' ? 1.0f : 0.0f));
}

TEST_CASE("cosine similarity by hand; a common mean can be taken off; a row of zeros is like nothing") {
  const float rows[] = {3, 4, 4, 3, 0, 0};
  const Tensor table = Tensor::from({3, 2}, rows);
  const Tensor likeness = cosine_similarity(table);
  CHECK(static_cast<double>(likeness.at(0, 1)) == doctest::Approx(24.0 / 25));
  CHECK(static_cast<double>(likeness.at(1, 1)) == doctest::Approx(1));
  CHECK(likeness.at(0, 2) == 0.0f);
  const float two[] = {1, 5, 3, 5};
  CHECK(static_cast<double>(cosine_similarity(Tensor::from({2, 2}, two), true).at(0, 1)) == doctest::Approx(-1));
}

TEST_CASE("the list of methods names each once") {
  CHECK(position_methods().size() == 13);
  for (const PositionMethod& each : position_methods()) {
    CHECK(find_position_method(each.id) == &each);
    CHECK_FALSE(each.formula.empty());
    CHECK_FALSE(each.source.empty());
  }
  CHECK(find_position_method("clock") == nullptr);
}

}  // namespace headscope::added_positions_test
