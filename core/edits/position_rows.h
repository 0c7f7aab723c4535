#pragma once
// What other positions do to the tensors of a pass: which sites they change in which model, and to what.

#include <utility>

#include "core/attention/rotary.h"
#include "core/attention/rule_edits.h"
#include "core/edits/position_edit.h"
#include "core/model/model.h"
#include "core/trace/tap.h"

namespace headscope {

/// The positions that some rows have: the last edit that replaces the model's own (may be null), moved by `shift`.
struct PositionsHeld {
  const SetPositions* own = nullptr;
  int shift = 0;
};

/// Whether they change the tensor at such a site of this model.
bool positions_act_at(const PositionsHeld& held, const ModelConfig& model, SiteKind site);

/// What stands before a rotation in the layer that is running.
struct BeforeRotation {
  Tensor q, k;
};

/// Rows of a tensor that an edit reaches: [first, last]; row 0 stands at position `offset` of the text (cached tokens
/// before it).
struct RowsReached {
  int first = 0, last = 0;
  Index offset = 0;
};

/// Those rows of heads [heads.first, heads.second) of `value` with these positions. `value` is the tensor at `site`,
/// `given` what it was before any row was placed; embeddings have no heads. A shift has nothing to move where positions
/// are none or relative, and no edit in a layer of a rotary model that does not rotate.
void set_positions(const PositionsHeld& held, const Model& model, Site site, const BeforeRotation& before,
                   const Tensor& given, std::pair<Index, Index> heads, const RowsReached& rows, Tensor& value);

/// Cosines and sines of the distances below `count`, times the magnitudes of a query and a key.
RotaryTable distance_table(const RotaryConfig& config, int d_head, Index count);

/// The unscaled score of a query and a key as if they stood `distance` apart: ⟨R(δ) q, k⟩ = Σ over pairs of
/// (q·k) cos δθ + (q × k) sin δθ, with the distance_table(). What is not rotated counts as it is.
float score_at_distance(const BeforeRotation& before, const RotaryTable& table, RotaryLayout layout, Index query,
                        Index head, Index key, Index key_head, Index distance);

/// What ALiBi, as this model has it, takes from every key's score for a query at `position`, up to what depends on the
/// key alone.
double alibi_of_query(const ModelConfig& model, Index head, Index position);

/// Scores (head, query, key) of one head with every distance re-mapped by dual chunk attention, rows [first, last] of
/// the whole text, by the head's rule.
void rescore_in_chunks(const BeforeRotation& before, const ModelConfig& config, int layer, Index chunk, Index head,
                       const HeadRule& rule, int first, int last, Tensor& scores);

}  // namespace headscope
