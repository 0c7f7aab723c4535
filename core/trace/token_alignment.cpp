#include "core/trace/token_alignment.h"

#include <algorithm>

namespace headscope {
namespace {

using Ids = std::span<const std::int32_t>;
constexpr std::size_t most_cells = 25'000'000;
// One token for another costs less than dropping one and adding one, more than half: equal tokens are kept equal.
constexpr std::int32_t add_or_drop = 2, exchange = 3;

/// Marks in `pairs` (by position in a; offsets added) the equal tokens of a cheapest edit of a into b.
void pair_common(Ids a, Ids b, int a_offset, int b_offset, std::vector<int>& pairs) {
  const std::size_t n = a.size(), m = b.size();
  if (n == 0 || m == 0) return;
  const auto pair = [&](std::size_t i, std::size_t j) {
    pairs[static_cast<std::size_t>(a_offset) + i] = b_offset + static_cast<int>(j);
  };
  if (n * m > most_cells) {
    for (std::size_t i = 0; i < std::min(n, m); ++i) pair(i, i);
    return;
  }
  // cost[i][j]: of turning a[i…] into b[j…]
  const std::size_t width = m + 1;
  std::vector<std::int32_t> cost((n + 1) * width);
  for (std::size_t i = n + 1; i-- > 0;)
    for (std::size_t j = m + 1; j-- > 0;) {
      std::int32_t& best = cost[i * width + j];
      if (i == n || j == m) {
        best = add_or_drop * static_cast<std::int32_t>(n - i + m - j);
        continue;
      }
      best = cost[(i + 1) * width + j + 1] + (a[i] == b[j] ? 0 : exchange);
      best = std::min({best, cost[(i + 1) * width + j] + add_or_drop, cost[i * width + j + 1] + add_or_drop});
    }
  for (std::size_t i = 0, j = 0; i < n && j < m;) {
    const std::int32_t here = cost[i * width + j];
    if (here == cost[(i + 1) * width + j + 1] + (a[i] == b[j] ? 0 : exchange)) {
      if (a[i] == b[j]) pair(i, j);
      ++i, ++j;
    } else if (here == cost[(i + 1) * width + j] + add_or_drop) {
      ++i;
    } else {
      ++j;
    }
  }
}

}  // namespace

std::vector<int> align_tokens(Ids a, Ids b) {
  std::vector<int> pairs(a.size(), -1);
  const std::size_t shorter = std::min(a.size(), b.size());
  std::size_t head = 0, tail = 0;
  while (head < shorter && a[head] == b[head]) ++head;
  while (tail < shorter - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail]) ++tail;
  for (std::size_t i = 0; i < head; ++i) pairs[i] = static_cast<int>(i);
  for (std::size_t i = 0; i < tail; ++i) pairs[a.size() - 1 - i] = static_cast<int>(b.size() - 1 - i);
  pair_common(a.subspan(head, a.size() - head - tail), b.subspan(head, b.size() - head - tail), static_cast<int>(head),
              static_cast<int>(head), pairs);

  // Stretches without partners, of equal length on both sides.
  int next_b = 0;
  for (std::size_t i = 0; i < a.size();) {
    if (pairs[i] >= 0) {
      next_b = pairs[i++] + 1;
      continue;
    }
    std::size_t end = i;
    while (end < a.size() && pairs[end] < 0) ++end;
    const int until = end < a.size() ? pairs[end] : static_cast<int>(b.size());
    const bool equal = until - next_b == static_cast<int>(end - i);
    for (; i < end; ++i)
      if (equal) pairs[i] = next_b++;
  }
  return pairs;
}

}  // namespace headscope
