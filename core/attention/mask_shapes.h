#pragma once
// The shapes of mask_entries.cpp. A shape says which keys can matter to a query (`bounds`, cut to the text by who asks)
// and, inside them, which it sees: `sees`, or `row`, for shapes whose rows are worth preparing. `solid` shapes see all
// of them.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <vector>

#include "core/base/random.h"
#include "core/trace/attention_rule.h"

namespace headscope::mask_shapes {

struct Causal {
  static constexpr bool solid = true;
  KeyRange bounds(Index i, Index) const { return {0, i + 1}; }
  bool sees(Index, Index) const { return true; }
};
struct Full {
  static constexpr bool solid = true;
  KeyRange bounds(Index, Index n) const { return {0, n}; }
  bool sees(Index, Index) const { return true; }
};
struct Window {
  static constexpr bool solid = true;
  Index width;
  KeyRange bounds(Index i, Index) const { return {i - width + 1, i + 1}; }
  bool sees(Index, Index) const { return true; }
};
struct Around {
  static constexpr bool solid = true;
  Index width;
  KeyRange bounds(Index i, Index) const { return {i - width + 1, i + width}; }
  bool sees(Index, Index) const { return true; }
};
struct Chunks {
  static constexpr bool solid = true;
  Index size;
  KeyRange bounds(Index i, Index) const { return {i / size * size, i + 1}; }
  bool sees(Index, Index) const { return true; }
};
struct Dilated {
  static constexpr bool solid = false;
  Index count, step;
  KeyRange bounds(Index i, Index) const { return {i - (count - 1) * step, i + 1}; }
  bool sees(Index i, Index j) const { return (i - j) % step == 0; }
};
struct Strided {
  static constexpr bool solid = false;
  Index stride;
  KeyRange bounds(Index i, Index) const { return {0, i + 1}; }
  bool sees(Index i, Index j) const { return i - j < stride || (i - j) % stride == 0; }
};
struct Global {
  static constexpr bool solid = false;
  Index tokens, width;
  KeyRange bounds(Index i, Index n) const {
    if (i < tokens) return {0, n};
    return {tokens > 0 ? 0 : i - width + 1, std::max(tokens, i + width)};
  }
  bool sees(Index i, Index j) const { return j < tokens || i < tokens || std::abs(i - j) < width; }
};
struct RandomKeys {
  static constexpr bool solid = false;
  double share;
  std::uint64_t seed;
  KeyRange bounds(Index i, Index) const { return {0, i + 1}; }
  bool sees(Index i, Index j) const {
    // One generator per cell, so that a cell's fate depends on nothing but its place.
    Random cell(Random(seed ^ static_cast<std::uint64_t>(i) << 32).next() ^ static_cast<std::uint64_t>(j));
    return i == j || cell.uniform() < share;
  }
};
struct Prefix {
  static constexpr bool solid = true;
  Index length;
  KeyRange bounds(Index i, Index) const { return {0, std::max(i + 1, length)}; }
  bool sees(Index, Index) const { return true; }
};
struct Sink {
  static constexpr bool solid = false;
  Index tokens, width;
  KeyRange bounds(Index i, Index) const { return {tokens > 0 ? 0 : i - width + 1, i + 1}; }
  bool sees(Index i, Index j) const { return j < tokens || i - j < width; }
};
struct Padding {
  static constexpr bool solid = true;
  Index tokens;
  KeyRange bounds(Index, Index n) const { return {0, n - tokens}; }
  bool sees(Index, Index) const { return true; }
};
struct Hidden {
  static constexpr bool solid = false;
  double share;
  std::uint64_t seed;
  KeyRange bounds(Index, Index n) const { return {0, n}; }
  bool sees(Index, Index j) const { return Random(seed ^ static_cast<std::uint64_t>(j) << 32).uniform() >= share; }
};
struct Chosen {
  static constexpr bool solid = false;
  std::vector<Index> tokens;  // sorted
  Index width;
  bool chosen(Index i) const { return std::ranges::binary_search(tokens, i); }
  KeyRange bounds(Index i, Index n) const {
    if (chosen(i)) return {0, n};
    return {tokens.empty() ? i - width + 1 : std::min(tokens.front(), i - width + 1),
            tokens.empty() ? i + width : std::max(tokens.back() + 1, i + width)};
  }
  bool sees(Index i, Index j) const { return chosen(i) || chosen(j) || std::abs(i - j) < width; }
};
struct Blocks {
  static constexpr bool solid = false;
  Index block, width, global, random;
  std::uint64_t seed;
  KeyRange bounds(Index i, Index n) const {
    const Index own = i / block;
    if (own < global) return {0, n};
    return {global > 0 || random > 0 ? 0 : (own - width + 1) * block, std::max(global, own + width) * block};
  }
  /// What the query i sees: its random blocks are drawn once for the whole row.
  struct Row {
    Index own, block, width, global;
    std::vector<Index> drawn;  // sorted
    bool sees(Index j) const {
      const Index other = j / block;
      return std::abs(own - other) < width || own < global || other < global ||
             std::ranges::binary_search(drawn, other);
    }
  };
  Row row(Index i) const {
    Row out{i / block, block, width, global, {}};
    // Drawn without repetition from the earlier blocks that are neither global nor in the window, so that a longer text
    // does not change what was drawn (Floyd's sampling; Bentley & Floyd, Programming Pearls, 1987).
    const Index choices = out.own - width + 1 - global;
    Random draws(seed ^ static_cast<std::uint64_t>(out.own) << 32);
    for (Index t = std::max<Index>(choices - random, 0); t < choices; ++t) {
      const Index block_drawn = global + static_cast<Index>(draws.below(static_cast<std::uint64_t>(t + 1)));
      const bool again = std::ranges::find(out.drawn, block_drawn) != out.drawn.end();
      out.drawn.push_back(again ? global + t : block_drawn);
    }
    std::ranges::sort(out.drawn);
    return out;
  }
};
struct Documents {
  static constexpr bool solid = true;
  std::vector<Index> starts;  // sorted
  KeyRange bounds(Index i, Index n) const {
    const auto next = std::ranges::upper_bound(starts, i);
    return {next == starts.begin() ? 0 : *std::prev(next), next == starts.end() ? n : *next};
  }
  bool sees(Index, Index) const { return true; }
};

}  // namespace headscope::mask_shapes
