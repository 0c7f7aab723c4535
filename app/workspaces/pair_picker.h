#pragma once
// Two texts token over token, and their pairs changed by hand: a click on a token above and one on a token below pair
// the two, or part them. Thread rule: the UI thread.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/workspaces/scene_slot.h"
#include "core/base/words.h"
#include "core/trace/trace.h"

namespace headscope {

/// Immutable; traces need no more than tokens.
struct PairedTexts {
  std::shared_ptr<const Trace> a, b;
  std::vector<int> partner;  ///< position of b by position of a, −1 = none
  Worded name_a = std::string("A"), name_b = std::string("B");
};

/// A pair for every position of `partner` that has one: how pairs made by hand are written.
std::vector<std::pair<int, int>> pairs_of(const std::vector<int>& partner);
/// The same pairs from the other text's side, which has `size` positions.
std::vector<int> inverted(const std::vector<int>& partner, std::size_t size);

/// The first position of a whose token is not the same as its partner; −1 = none.
int first_difference(const PairedTexts& texts);

class PairPicker {
 public:
  explicit PairPicker(const std::string& tag) : slot_(tag) {}
  /// In a child as high as the pairs need, at most `most` window pixels. The changed partners once two tokens were
  /// clicked. Tokens are named "ID/a.3", "ID/b.4".
  std::optional<std::vector<int>> draw(Ui& ui, JobRunner& jobs, const char* id,
                                       const std::shared_ptr<const PairedTexts>& texts, float most);
  /// "9 of 12 and 14 tokens paired · click …"
  std::string remark(const PairedTexts& texts) const;

 private:
  SceneSlot slot_;
  std::shared_ptr<const PairedTexts> of_;  // what the picked ones belong to
  int picked_a_ = -1, picked_b_ = -1;
  bool other_words_ = true;  // other texts than the last: what differs in them comes into sight
};

}  // namespace headscope
