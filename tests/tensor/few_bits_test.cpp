#include "core/tensor/few_bits.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/base/nth.h"
#include "core/base/random.h"

using namespace headscope;

TEST_CASE("Numbers of 1 to 8 bits are found bit by bit, along a stream and across many") {
  Random random(3);
  for (int bits = 1; bits <= 8; ++bits) {
    constexpr Index count = 77, columns = 5;
    const Index words = few_bits::words_of(bits, count);
    CHECK(words == (77 * bits + 31) / 32);
    std::vector<std::uint32_t> across(static_cast<std::size_t>(words * columns));
    for (std::uint32_t& word : across) word = static_cast<std::uint32_t>(random.next());
    for (Index j = 0; j < columns; ++j) {
      std::vector<std::uint32_t> stream;
      for (Index w = 0; w < words; ++w) stream.push_back(nth(across, w * columns + j));
      std::vector<float> along(count);
      few_bits::unpack(stream.data(), bits, count, along.data());
      for (Index k = 0; k < count; ++k) {
        CAPTURE(bits);
        CAPTURE(k);
        unsigned expected = 0;
        for (Index b = 0; b < bits; ++b) {
          const Index at = k * bits + b;
          expected |= ((nth(stream, at / 32) >> (at % 32)) & 1u) << b;
        }
        CHECK(nth(along, k) == static_cast<float>(expected));
        std::vector<float> row(columns);
        few_bits::unpack_across(across.data(), bits, k, columns, row.data());
        CHECK(nth(row, j) == static_cast<float>(expected));
      }
    }
  }
}
