#pragma once
// Which heads and positions an edit reaches.

#include <optional>
#include <string>
#include <string_view>

#include "core/trace/head_id.h"
#include "core/trace/stack.h"

namespace headscope {

/// Positions first … last, both included; below 0 they count from the end of the text.
struct PositionRange {
  int first = 0, last = -1;
  bool operator==(const PositionRange&) const = default;
};

/// A position of a text of n tokens; below 0 it counts from the end.
inline int from_end(int position, int n) {
  return position < 0 ? position + n : position;
}

/// What an intervention reaches. An absent number means every one: {} all heads, {3, {}} layer 3, {{}, 1} head 1 of
/// every layer. Heads are those of `stack`; `only` is the decoder in a model of two. Positions are queries (rows of a
/// pattern, rows of z or of the residual stream).
struct HeadTarget {
  std::optional<int> layer = {}, head = {};
  std::optional<PositionRange> positions = {};
  Stack stack = Stack::only;
  bool reaches(HeadId of) const { return reaches_layer(of.layer) && (!head || *head == of.head); }
  bool reaches_layer(int of) const { return !layer || *layer == of; }
  bool operator==(const HeadTarget&) const = default;
};

/// "cross.1.0" before all else where the stack has a name; "1.0", "1.*" (a layer), "*.0", "*" (all heads), with
/// positions "1.0@3..7", "*@-1". parse also takes "1" for a layer and "@3.." for all from 3 on; throws Error at
/// `where`.
std::string text_of(const HeadTarget& target);
HeadTarget parse_head_target(std::string_view text, const std::string& where);

}  // namespace headscope
