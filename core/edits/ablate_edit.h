#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/edits/edit.h"

namespace headscope {

/// What the heads read (z) is replaced.
///   zero
///   mean      by its mean over this position and those before it: nothing that comes later is told. `over_text`: over
///             all positions of this text, later ones too. `from`: over all positions of reference texts, each counting
///             once (mean ablation over a data set, as in Wang et al., Interpretability in the Wild, 2023).
///   resample  by that of another position of this text, later ones too (a permutation drawn with `seed`). `from`: of
///             one position of the reference texts, drawn with `seed` for each position.
struct Ablate {
  enum class By { zero, mean, resample } by = By::zero;
  std::uint64_t seed = 1;
  bool over_text = false;
  std::vector<std::string> from = {};  ///< the reference texts; empty = this text
  /// Whether a row may get something of positions after it.
  bool tells_future() const { return from.empty() && (by == By::resample || (by == By::mean && over_text)); }
  bool operator==(const Ablate&) const = default;
};
std::shared_ptr<const Edit> edit_of(Ablate value);

}  // namespace headscope
