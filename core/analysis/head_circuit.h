#pragma once
// A small set of heads that is enough for a logit difference, found greedily.
//
// remove: begins with all heads. In every round each head that is left is taken out on trial, beside those already out;
//   the one whose loss leaves the logit difference nearest to the whole model's goes for good. Until none is left.
// add: begins with none. In every round each head that is out is put back on trial; the one that brings the logit
//   difference nearest to the whole model's comes back for good. Until all are back.
// Taken out means: its z is replaced. By its mean over this position and those before, unless asked otherwise; or, so
//   that the share below means something, by the first of several under which the answer goes when every head is out.
// Either way gives an order of all H heads in H (H + 1) / 2 passes, and one set of every size. Greedy: the set of a
// size need not be the best of that size, nor the smallest that does.
// Faithfulness is the normalised one, (m − none) / (whole − none), of Hanna, Pezzelle & Belinkov, Have Faith in
// Faithfulness, 2024 and Marks et al., Sparse Feature Circuits, 2024. Wang et al., Interpretability in the Wild (IOI),
// 2023, § 4, from whom the word comes, take the plain difference |whole − m|, and discuss why a greedy set can miss
// heads that stand in for one another.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/analysis/edit_probe.h"
#include "core/analysis/sweep.h"
#include "core/edits/ablate_edit.h"
#include "core/trace/head_id.h"

namespace headscope {

struct HeadCircuitRequest {
  RunRequest run;  ///< its edits stay in force
  /// What z of a head that is out becomes. Empty: the first of mean, zero, mean over text, resample that leaves less
  /// than half of the logit difference without any head; where none does, the one that leaves least.
  std::optional<Ablate> ablate = Ablate{Ablate::By::mean, 1};
  enum class Method { remove, add } method = Method::remove;
  std::optional<AnswerPair> answers;  ///< else the two most probable next tokens
  Stack stack = Stack::only;          ///< whose heads
  bool operator==(const HeadCircuitRequest&) const = default;
};

struct HeadCircuit {
  struct Step {
    HeadId id;                    ///< taken out, or put back
    double logit_difference = 0;  ///< after that
  };
  HeadCircuitRequest request;
  Ablate ablate;  ///< as asked, or as it was chosen
  /// The logit difference with every head out, for what was tried; one of them is `ablate`.
  std::vector<std::pair<Ablate, double>> baselines;
  std::shared_ptr<const Trace> before_trace;
  AnswerPair answers;
  double whole = 0;         ///< logit difference with every head
  double none = 0;          ///< … with every head taken out, by `ablate`
  std::vector<Step> order;  ///< as far as it is known
  int heads = 0;            ///< H
  bool complete() const { return static_cast<int>(order.size()) == heads; }

  /// (x − none) / (whole − none): 1 = all of the difference is kept.
  double faithfulness(double logit_difference) const;
  /// Of the set of `kept` heads, 0 … H; NaN while it is not known.
  double faithfulness_of(int kept) const;
  /// The set of `kept` heads. REQUIRES that it is known.
  std::set<HeadId> kept(int kept) const;
  /// The fewest heads whose faithfulness is at least `threshold`; −1 while no known set reaches it.
  int fewest(double threshold) const;
  /// What keeps the share from saying what one reads in it, a sentence each: a baseline that answers by itself, a set
  /// that keeps more than all heads do. Empty = nothing does.
  std::vector<std::string> caveats(double threshold) const;
};

class HeadCircuitSearch final : public Sweep {
 public:
  using Result = HeadCircuit;
  HeadCircuitSearch(LoadedModel loaded, HeadCircuitRequest request);
  /// The first step throws Error when taking every head out does not change the logit difference.
  void step(const Ctx& ctx) override;
  int done() const override { return tried_; }
  int total() const override { return known_.heads * (known_.heads + 1) / 2; }
  bool finished() const override { return probe_ && known_.complete(); }
  double share() const override { return total() ? static_cast<double>(tried_) / total() : 0; }
  std::shared_ptr<const HeadCircuit> result() const;

 private:
  std::vector<Intervention> without(const std::vector<HeadId>& heads) const;
  void prepare(const Ctx& ctx);

  LoadedModel loaded_;
  std::optional<EditProbe> probe_;
  HeadCircuit known_;
  std::vector<HeadId> out_;                        // heads taken out for good
  std::vector<HeadId> left_;                       // heads that this round tries …
  std::size_t next_ = 0;                           // … and the next of them
  std::optional<std::pair<HeadId, double>> best_;  // so far in this round, with its logit difference
  int tried_ = 0;
};

}  // namespace headscope
