// Panels that rows are added to hold what packing all rows at once writes, whatever came before.

#include "core/tensor/growing_panels.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/tensor/panels.h"
#include "tests/support/random_tensor.h"

namespace headscope::growing_panels_test {

using testing::random_tensor;

namespace {

/// Columns of head `head` that the first n rows take, as pack() writes them, equal these.
bool equals_packed(const GrowingPanels& panels, const Tensor& rows, Index head) {
  const Index n = rows.dim(0), d = rows.dim(2), width = panels::width();
  std::vector<float> packed(static_cast<std::size_t>(panels::packed_size(d, n)));
  panels::pack(rows.select(1, head).transpose(0, 1), packed.data());
  for (Index row = 0; row < n; ++row)
    for (Index i = 0; i < d; ++i) {
      const Index place = row / width * width * d + i * width + row % width;
      if (panels.of(head)[place] != packed[static_cast<std::size_t>(place)]) return false;
    }
  return true;
}

}  // namespace

TEST_CASE("rows that come a few at a time stand in the panels that all of them are packed into") {
  ThreadPool pool(2);
  const Tensor rows = random_tensor({150, 3, 20}, 1);
  for (const Index step : {1, 5, 16, 40}) {
    CAPTURE(step);
    GrowingPanels panels;
    for (Index n = step; n <= 150; n += step) {
      const Tensor some = rows.slice(0, 0, n);
      panels.put(some, 100, pool);  // beyond the room too
      for (Index head = 0; head < 3; ++head) REQUIRE(equals_packed(panels, some, head));
    }
  }
}

TEST_CASE("forgotten rows are packed as they are now, the others stay; a copy takes nothing over") {
  ThreadPool pool(1);
  Tensor rows = random_tensor({70, 2, 8}, 1);
  GrowingPanels panels;
  panels.put(rows, 70, pool);
  for (const Index from : {69, 33, 32, 5, 0}) {
    CAPTURE(from);
    const Tensor others = random_tensor({70, 2, 8}, 100 + static_cast<std::uint64_t>(from));
    std::copy_n(others.data() + from * 16, (70 - from) * 16, &rows.ref(from, 0, 0));
    panels.forget(from);
    panels.put(rows, 70, pool);
    for (Index head = 0; head < 2; ++head) CHECK(equals_packed(panels, rows, head));
  }
  const float* const before = panels.of(0);
  GrowingPanels copy = panels;
  CHECK(copy.bytes() == 0);
  copy.put(rows.slice(0, 0, 3), 3, pool);
  CHECK(copy.of(0) != before);
  CHECK(panels.of(0) == before);
}

}  // namespace headscope::growing_panels_test
