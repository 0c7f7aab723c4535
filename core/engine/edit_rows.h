#pragma once
// What single edits do to the rows of one site: pure functions that InterventionTap calls where its steps act.

#include <map>
#include <span>
#include <utility>

#include "core/attention/rule_edits.h"
#include "core/engine/edit_action.h"
#include "core/tensor/tensor.h"

namespace headscope {

/// A position of a text of n tokens; below 0 it counts from the end.
inline int from_end(int position, int n) {
  return position < 0 ? position + n : position;
}

/// The rule under which every row of `base` has the pattern `shape` (uniform over what it sees, or one key).
RulePtr shaped(RulePtr base, ForcePattern::Shape shape);

/// Sets softmax(scores)[key] = weight, leaving the ratios of the others: s_key = ln(w / (1 − w)) + ln Σ_{j≠key}
/// e^{s_j}. A row that sees no other key stays as it is.
void set_weight(std::span<float> scores, Index key, double weight);

/// The same for a row of weights that no softmax follows any more: the others keep their ratios, the row its sum.
void set_final_weight(std::span<float> weights, Index key, double weight);

/// Gives row `query` the weights of `source` at paired keys (see FreezePattern); partner[key] is the key of `source`,
/// or −1. A row of which no weight finds its key stays as it is.
void freeze_row(std::span<const float> source, std::span<const int> partner, Index query, std::span<float> row);

/// `value` (position, head, d): rows [first, last] of the heads [first, second) by what the action says. `reference`:
/// the same tensor of each text of action.from.
void ablate(const Ablate& action, std::span<const Tensor> reference, Tensor& value, std::pair<Index, Index> heads,
            int first, int last);

/// What heads of one layer put out that their weights do not tell (weights · v is something else), until the site z. A
/// row that a later edit gives other weights is what those say again.
class OwnOutputs {
 public:
  bool empty() const { return rows_.empty(); }
  /// Row `query` of `output` (query, d_head) stands for what `head` writes there.
  void keep(Index head, Index query, const Tensor& output);
  void forget(Index head, Index query) { rows_.erase({head, query}); }
  /// Into z (query, head, d_head); then all are forgotten.
  void put(Tensor& z);

 private:
  std::map<std::pair<Index, Index>, Tensor> rows_;  // (head, query) → (d_head)
};

}  // namespace headscope
