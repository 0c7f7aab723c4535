#pragma once
// How a SetPositions edit acts in a pass: which sites it changes in which model, and to what. InterventionTap asks.

#include <string>

#include "core/attention/rule_edits.h"
#include "core/engine/intervention.h"
#include "core/model/model.h"
#include "core/trace/tap.h"

namespace headscope {

/// Throws Error at `where` when this model cannot follow: a head of its own where heads share keys, one layer where the
/// embeddings change, a shift past the end of a learned table.
void check_positions(const SetPositions& edit, const HeadTarget& target, const Model& model, int tokens,
                     const std::string& where);

/// Whether the edit changes the tensor at such a site of this model.
bool positions_act_at(const SetPositions& edit, PositionKind own, SiteKind site);

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

/// Those rows of heads [heads.first, heads.second) of `value` as the edit has them. `value` is the tensor at `site`;
/// embeddings have no heads.
void set_positions(const SetPositions& edit, const Model& model, SiteKind site, const BeforeRotation& before,
                   std::pair<Index, Index> heads, const RowsReached& rows, Tensor& value);

/// Scores (head, query, key) of one head with every distance re-mapped by dual chunk attention, rows [first, last] of
/// the whole text, by the head's rule.
void rescore_in_chunks(const BeforeRotation& before, const ModelConfig& config, Index chunk, Index head,
                       const HeadRule& rule, int first, int last, Tensor& scores);

/// What the edit adds to the scores of a head: `rule` itself, or with a bias.
RulePtr positions_rule(const SetPositions& edit, int head, int heads, RulePtr rule);

/// True when some enabled edit sets all positions of a rotary model by a rule that knows no longest text, so that texts
/// past the trained context can be read.
bool reads_past_context(const std::vector<Intervention>& edits, const ModelConfig& model);

}  // namespace headscope
