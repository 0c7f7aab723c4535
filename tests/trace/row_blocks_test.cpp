#include "core/trace/row_blocks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "core/trace/attention_map.h"

namespace headscope::row_blocks_test {

namespace {

/// Row r, column c: 1000 · r + c of what a token sees, else 0.
Tensor triangle(Index rows, Index first = 0, float sign = 1) {
  Tensor out = Tensor::zeros({rows, first + rows});
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c <= first + r; ++c) out.ref(r, c) = sign * static_cast<float>(1000 * (first + r) + c + 1);
  return out;
}

/// Where rows from `changed` on have the other sign.
void check_is(const RowBlocks& blocks, Index n, Index changed) {
  REQUIRE(blocks.rows() == n);
  REQUIRE(blocks.columns() == n);
  const Tensor all = blocks.tile({0, n}, {0, n});
  bool right = true;
  for (Index r = 0; r < n; ++r)
    for (Index c = 0; c < n; ++c) {
      const float expected = c > r ? 0.0f : (r < changed ? 1.0f : -1.0f) * static_cast<float>(1000 * r + c + 1);
      right = right && blocks.at(r, c) == expected && all.at(r, c) == expected;
    }
  CHECK(right);
}

}  // namespace

TEST_CASE("a map that grows has its rows, and those that it shares with the one before") {
  const RowBlocks start(triangle(100));
  check_is(start, 100, 100);
  RowBlocks grown = start;
  for (Index n = 101; n <= 300; ++n) grown = grown.with(n - 1, triangle(1, n - 1));
  check_is(grown, 300, 300);
  CHECK(grown.tile({0, 64}, {0, 64}).shape() == Shape({64, 64}));
  CHECK(grown.at(299, 299) == 299300);
  // Ten rows at once, where one block ends; then some are others; then most are gone.
  const RowBlocks more = grown.with(256, triangle(10, 256, -1));
  check_is(more, 266, 256);
  check_is(more.with(260, triangle(3, 260)).with(70, triangle(4, 70, -1)), 74, 70);
  check_is(more.with(0, triangle(5, 0, -1)), 5, 0);
  check_is(grown, 300, 300);  // nobody wrote to it
  check_is(start, 100, 100);
  const Tensor part = grown.tile({90, 140}, {95, 120});
  CHECK(part.at(0, 0) == 0);
  CHECK(part.at(10, 5) == 100101);
  CHECK(part.at(49, 24) == 139120);
}

TEST_CASE("a map that grows word by word shares what stands, and holds no memory for rows that went") {
  RowBlocks grown(triangle(1000));
  const std::size_t before = grown.bytes();
  CHECK(before == 4u * 1000 * 1000);
  for (Index n = 1001; n <= 1100; ++n) grown = grown.with(n - 1, triangle(1, n - 1));
  // The rows as they were, of which 992 are looked at, a block for each 16 behind them, as wide as the map was then.
  std::size_t numbers = 1000 * 1000 + 12 * 1100;
  for (std::size_t end = 1008; end <= 1088; end += 16) numbers += 16 * end;
  CHECK(grown.bytes() == 4 * numbers);
  const RowBlocks few = grown.with(300, triangle(1, 300));
  CHECK(few.bytes() == 4u * 301 * 301);
  const RowBlocks half = grown.with(520, triangle(1, 520));  // a quarter of the numbers that the first block has
  CHECK(half.bytes() == 4u * 521 * 521);
  CHECK_FALSE(few.holds(grown.view({0, 1})));
}

TEST_CASE("rows of one block as wide as the matrix are a view of it") {
  const Tensor whole = triangle(10);
  const RowBlocks one(whole);
  CHECK(one.view({2, 10}).storage() == whole.storage());
  CHECK(one.holds(whole.select(0, 3)));
  const RowBlocks two = RowBlocks(triangle(70)).with(64, triangle(6, 64));
  CHECK(two.view({64, 70}).defined());
  CHECK(two.view({64, 70}).at(0, 63) == 64064);
  CHECK_FALSE(two.view({60, 70}).defined());
  CHECK_FALSE(RowBlocks().view({0, 0}).defined());
}

TEST_CASE("a map in blocks answers as the same map in one piece does") {
  const Tensor whole = triangle(200);
  RowBlocks blocks(triangle(90));
  for (const Index n : {91, 130, 131, 200})
    blocks = blocks.with(blocks.rows(), triangle(n - blocks.rows(), blocks.rows()));
  const auto stats = stats_of_weights(whole, nullptr);
  const AttentionMap one = AttentionMap::dense({}, whole, causal_rule(), stats),
                     many = AttentionMap::dense({}, blocks, causal_rule(), stats);
  CHECK(many.n_query() == 200);
  CHECK(many.n_key() == 200);
  CHECK_FALSE(many.is_factored());
  for (const Index bin : {1, 3, 64}) {
    const Tensor a = one.pooled({5, 200}, {0, 180}, bin), b = many.pooled({5, 200}, {0, 180}, bin);
    REQUIRE(a.shape() == b.shape());
    CHECK(std::ranges::equal(a.values(), b.values()));
  }
  std::vector<float> row(200);
  many.row(131, row);
  CHECK(row[131] == one.weight(131, 131));
  CHECK(many.weight(199, 7) == one.weight(199, 7));
  CHECK(many.overview(200).bin == 1);
  CHECK(std::ranges::equal(many.overview(200).values.values(), one.overview(200).values.values()));
}

}  // namespace headscope::row_blocks_test
