#pragma once
// An edit at work in one pass: a rule for how heads look, tensors replaced at sites, or both. InterventionTap asks all
// steps of a pass in turn.

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/attention/rule_edits.h"
#include "core/edits/edit.h"
#include "core/edits/held_edits.h"
#include "core/edits/intervention.h"
#include "core/tensor/tensor.h"

namespace headscope {

class EditPass;

/// Where a step acts: the edit, and the positions it reaches in this text, both included.
struct EditPlace {
  EditPass& pass;
  Intervention edit;
  int first = 0, last = 0;
  std::string where() const { return "edit " + describe(edit); }
};

/// The tensor at a site while edits act on it: copied when one of them first writes.
class EditedTensor {
 public:
  explicit EditedTensor(const Tensor& given) : now_(given) {}
  const Tensor& read() const { return now_; }
  Tensor& write() {
    if (!own_) now_ = now_.copy();
    own_ = true;
    return now_;
  }
  /// Another tensor, which somebody else may hold too.
  void replace(Tensor by) {
    now_ = std::move(by);
    own_ = false;
  }

 private:
  Tensor now_;
  bool own_ = false;
};

class EditStep {
 public:
  explicit EditStep(EditPlace place)
      : place_(std::move(place)), needs_softmax_(!place_.edit.action->needs_of_softmax().empty()) {}
  EditStep(const EditStep&) = delete;
  EditStep& operator=(const EditStep&) = delete;
  virtual ~EditStep() = default;

  const HeadTarget& target() const { return place_.edit.target; }
  const EditAction& action() const { return place_.edit.action; }
  const Intervention& edit() const { return place_.edit; }
  bool needs_softmax() const { return needs_softmax_; }  ///< Edit::needs_of_softmax()
  int first() const { return place_.first; }
  int last() const { return place_.last; }

  // ---- How heads look. Steps of these kinds act together; of one kind the last that reaches a row holds there.
  virtual std::optional<HeldKind> held() const { return std::nullopt; }
  /// The rule of a head, given that of the kinds before it; `visible`: who sees whom, once that is known.
  virtual RulePtr rule(int head, RulePtr so_far, const AttentionRule* visible) const;
  virtual double temperature() const { return 1; }
  /// Whether its rule multiplies scores or adds to them.
  virtual bool changes_scores() const { return false; }

  // ---- Tensors, at sites of the layers it reaches.
  virtual bool acts(Site) const { return false; }
  /// In which turn: other positions before other edits see a tensor, or (queries and keys that are turned in a model
  /// without rotation) after all have made it; other weights make it anew before anything is done to it, and what an
  /// adapter adds is taken from that; all else in the order of the edits.
  enum class Turn { placed, anew, adjusted, in_order, placed_last };
  virtual Turn turn(SiteKind) const { return Turn::in_order; }
  virtual void act(Site, EditedTensor&) {}
  /// Sites whose tensors it has to know, as they are after every edit there.
  virtual bool sees(Site) const { return false; }
  virtual void see(Site, const Tensor&) {}
  /// It writes all weights of the rows it reaches; and one before it that holds on then acts once more.
  virtual bool writes_rows() const { return false; }
  virtual bool holds_on() const { return false; }

 protected:
  const EditPass& pass() const { return place_.pass; }
  EditPass& pass() { return place_.pass; }
  const EditPlace& place() const { return place_; }
  /// Rows of a tensor of this pass that it reaches; row 0 stands at the position of the pass's first row.
  int first_row() const;
  int last_row() const;
  /// body(head, row) for every row that it reaches of its heads among `heads`.
  template <class Body>
  void each_row(Index heads, Body body) const {
    for (Index head = 0; head < heads; ++head)
      if (!target().head || *target().head == head)
        for (int row = first_row(); row <= last_row(); ++row) body(head, Index{row});
  }
  /// The heads (or key heads) [first, second) of a (position, head, d_head) tensor of this layer that belong to its
  /// own; none where the layer lacks that head.
  std::pair<Index, Index> heads_of(const Tensor& value, int layer) const;

 private:
  EditPlace place_;
  bool needs_softmax_;
};

template <class Step>
std::unique_ptr<EditStep> step_of(EditPlace place) {
  return std::make_unique<Step>(std::move(place));
}

}  // namespace headscope
