#pragma once
// What the steps of a pass share: the scene, who holds in which row, how every head looks, and outputs that weights do
// not tell.

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/nth.h"
#include "core/edits/edit_scene.h"
#include "core/edits/edit_step.h"
#include "core/trace/tap.h"

namespace headscope {

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

/// Edits that make the rule by which a head looks (held_edits.h: mask, positions, first tokens dropped, pattern,
/// scaling, temperature) act together. Scores are ((q·k/√d + biases) · ln n / ln m) / τ, over the keys that mask and
/// drop leave.
class EditPass {
 public:
  /// Throws as check() and check_targets() do. `scene` is kept by reference.
  EditPass(const std::vector<Intervention>& edits, const EditScene& scene);
  EditPass(const EditPass&) = delete;  // steps know it
  EditPass& operator=(const EditPass&) = delete;

  const EditScene& scene() const { return scene_; }
  const std::vector<std::unique_ptr<EditStep>>& steps() const { return steps_; }
  /// Scene's model and backend. Throws Error at `where` when it is not the pass of a model.
  const Model& model(const std::string& where) const;
  /// Between two matrices that are taken apart or put together. Throws Cancelled.
  void go_on() const;

  /// Whether queries (keys) stand here as they meet: after norm and rotation, in a model that has them.
  bool meeting_q(SiteKind site) const { return site == meeting(false); }
  bool meeting_k(SiteKind site) const { return site == meeting(true); }

  /// Whether a step does anything in a layer (below 0: outside the blocks): an edit of all layers leaves those alone
  /// that have not what it needs.
  bool reaches_layer(const EditStep& step, int layer) const;

  /// What holds in the rows of a head; and in those of embeddings, which belong to no layer.
  std::vector<HeldRows> held(HeadId head) const;
  std::vector<HeldRows> held_in_embeddings() const;
  /// Who sees whom: `usual`, or the mask that stands in its place, without dropped tokens.
  RulePtr visible_rule(const HeldRows& rows, int head, RulePtr usual) const;
  /// The same, and of those the keys that a forced pattern looks at.
  RulePtr seen_rule(const HeldRows& rows, int head, RulePtr usual) const;
  /// Which edit but temperature multiplies scores or adds to them; null = none.
  const EditStep* score_edit(const HeldRows& rows) const;

  struct Looks {
    HeadRule rule;          ///< with all edits
    RulePtr usual;          ///< without any
    float temperature = 1;  ///< what the scale was divided by
  };
  /// Of the layer that is being computed, once head_rule() was asked.
  const Looks& looks(int head) const { return nth(looks_, head); }
  HeadRule head_rule(HeadId head, HeadRule usual);

  OwnOutputs outputs;

 private:
  SiteKind meeting(bool keys) const;
  RulePtr fold(std::initializer_list<HeldKind> kinds, const HeldRows& rows, int head, RulePtr rule,
               const AttentionRule* visible) const;

  const EditScene& scene_;
  std::vector<std::unique_ptr<EditStep>> steps_;
  std::vector<Looks> looks_;
};

double temperature_of(const HeldRows& rows);

}  // namespace headscope
