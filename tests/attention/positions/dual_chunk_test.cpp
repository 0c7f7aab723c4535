#include "core/attention/positions/dual_chunk.h"

#include <doctest/doctest.h>

namespace headscope::dual_chunk_test {

TEST_CASE("dual chunk attention: the re-mapped distances of the paper's example, chunks of 6, context 10") {
  // P_k = [0 1 2 3 4 5 0 1 2 3 4 5], P_q intra the same, successive [6 7 8 9 9 9], inter 9 (An et al., figures 2 to 4).
  const Index keys[] = {0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}, successive[] = {6, 7, 8, 9, 9, 9};
  for (Index i = 0; i < 18; ++i)
    for (Index j = 0; j <= i && j < 12; ++j) {
      CAPTURE(i);
      CAPTURE(j);
      const Index back = i / 6 - j / 6;
      const Index place = back == 0 ? i % 6 : back == 1 ? successive[i % 6] : 9;
      CHECK(dual_chunk_distance(i, j, 6, 10) == place - keys[j]);
      CHECK(chunk_part(i, j, 6) == (back == 0   ? ChunkPart::intra
                                    : back == 1 ? ChunkPart::successive
                                                : ChunkPart::inter));
    }
}

TEST_CASE("no distance is beyond the context, none is negative, and near ones are true") {
  for (const Index chunk : {1, 5, 100, 191}) {
    const Index context = 192;
    for (Index i = 0; i < 900; i += 7)
      for (Index j = 0; j <= i; ++j) {
        const Index distance = dual_chunk_distance(i, j, chunk, context);
        CHECK(distance >= 0);
        CHECK(distance < context);
        // Within c − s tokens nothing is re-mapped, whether or not a boundary lies between.
        if (i - j < context - chunk && chunk_part(i, j, chunk) != ChunkPart::inter && i % chunk < context - chunk)
          CHECK(distance == i - j);
      }
  }
  // A text of one chunk is read as it always was.
  for (Index i = 0; i < 100; ++i)
    for (Index j = 0; j <= i; ++j) CHECK(dual_chunk_distance(i, j, 100, 192) == i - j);
}

}  // namespace headscope::dual_chunk_test
