#pragma once
// Of several edits of one kind the last that reaches a row holds there; rows that it does not reach keep what an
// earlier one set. These kinds make the rule by which a head looks, so that they act together whatever their order; all
// other edits act one after another on the tensors of a pass.

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/nth.h"
#include "core/edits/head_target.h"

namespace headscope {

class EditStep;

enum class HeldKind {
  mask,
  positions,  ///< what stands in place of the model's own: none, rope, sinusoidal, alibi, t5, chunks
  shift,      ///< of whatever positions there are
  alibi_on_top,
  t5_on_top,  ///< biases on top add to the positions and to each other
  drop_first,
  pattern,
  length,
  temperature
};
inline constexpr std::size_t held_kinds = 9;

/// Rows of one head, up to `end` (not included) from the end of the part before, and the step of each kind that holds
/// there, null = none.
struct HeldRows {
  int end = 0;
  std::array<const EditStep*, held_kinds> step = {};
  const EditStep* of(HeldKind kind) const { return nth(step, kind); }
};

/// All `rows` of a head in as few parts as hold the same edits; at least one part when rows > 0. `reaches` says whether
/// an edit with this target counts.
std::vector<HeldRows> held_rows(const std::vector<std::unique_ptr<EditStep>>& steps, int rows,
                                const std::function<bool(const EditStep&)>& reaches);

}  // namespace headscope
