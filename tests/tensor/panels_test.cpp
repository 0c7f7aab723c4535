#include "core/tensor/panels.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/base/random.h"
#include "core/tensor/tensor.h"

using namespace headscope;

namespace {
std::vector<float> some_numbers(Index count, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> all(static_cast<std::size_t>(count));
  for (float& number : all) number = random.normal();
  return all;
}
}  // namespace

TEST_CASE("a product that is read from memory part by part has the bits of one that is not") {
  constexpr Index stride = 1100, out_stride = 210;
  const std::vector<float> left = some_numbers(19 * stride, 1), right = some_numbers(1100 * 200, 2);
  for (const Index depth : {1, 32, 33, 255, 256, 257, 384, 1001})
    for (const Index columns : {1, 16, 40, 128, 200}) {
      Tensor matrix = Tensor::zeros({depth, columns});
      for (Index i = 0; i < depth; ++i)
        for (Index j = 0; j < columns; ++j) matrix.ref(i, j) = right[static_cast<std::size_t>(i * 200 + j)];
      Tensor packed = Tensor::zeros({panels::packed_size(depth, columns)});  // panels lie at whole cache lines
      panels::pack(matrix, packed.mutable_data());
      const Index panel_stride = depth * panels::width();
      for (const Index rows : {1, 2, 3, 8, 16, 19}) {
        CAPTURE(depth);
        CAPTURE(columns);
        CAPTURE(rows);
        std::vector<float> whole(static_cast<std::size_t>(rows * out_stride), 7.0f), parts = whole;
        panels::multiply({left.data(), stride}, rows, depth, packed.data(), panel_stride, columns, 0.3f, {},
                         whole.data(), out_stride);
        panels::multiply_streamed({left.data(), stride}, rows, depth, packed.data(), panel_stride, columns, 0.3f,
                                  parts.data(), out_stride);
        CHECK(whole == parts);  // what lies beside it untouched
      }
    }
}
