#include "core/trace/token_alignment.h"

#include <doctest/doctest.h>

namespace headscope::token_alignment_test {

using Ids = std::vector<std::int32_t>;
using Pairs = std::vector<int>;

TEST_CASE("tokens pair as a difference of two texts pairs them") {
  CHECK(align_tokens(Ids{}, Ids{1}) == Pairs{});
  CHECK(align_tokens(Ids{1, 2}, Ids{}) == Pairs{-1, -1});
  CHECK(align_tokens(Ids{1, 2, 3}, Ids{1, 2, 3}) == Pairs{0, 1, 2});
  // one word for another, in the middle and at the end
  CHECK(align_tokens(Ids{1, 7, 3}, Ids{1, 2, 3}) == Pairs{0, 1, 2});
  CHECK(align_tokens(Ids{1, 7}, Ids{1, 2}) == Pairs{0, 1});
  // two tokens for one: nobody can say which is its partner
  CHECK(align_tokens(Ids{1, 7, 8, 3}, Ids{1, 2, 3}) == Pairs{0, -1, -1, 2});
  CHECK(align_tokens(Ids{1, 3}, Ids{1, 2, 3}) == Pairs{0, 2});
  // Mary and John change places around "and"
  CHECK(align_tokens(Ids{10, 5, 11, 9, 10}, Ids{11, 5, 10, 9, 10}) == Pairs{0, 1, 2, 3, 4});
  CHECK(align_tokens(Ids{1, 2, 3, 4}, Ids{2, 4, 9}) == Pairs{-1, 0, -1, 1});
}

}  // namespace headscope::token_alignment_test
