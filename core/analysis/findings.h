#pragma once
// "What is here?": what is most worth telling of a model on one text, as sentences. Nothing is said of a pattern alone
// (Jain & Wallace, Attention is not Explanation, 2019): the model is run again without what a sentence speaks of, and
// the sentence says what that changed, or that it changed nothing.
//   cause    the head whose removal costs the answer most
//   pattern  the head that chance would do least, by the classes of core/metrics/head_class.h; those whose cells all
//            lie on the first token apart, of which `sink` tells
//   copy     a token that stood in the text already and is told through a head that looks there: the one whose
//            probability falls most without the head
//   sink     how many heads rest on the first token, and what the text costs when nobody may see it
//   token    the token of the text whose hiding from every head costs the answer most
// Effects are differences of −ln p, in nats. What a model has nothing to say of (an encoder that is asked for no token,
// weights that are no probabilities) is left out.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/analysis/cell_sweep.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/ablate_edit.h"
#include "core/metrics/head_class.h"
#include "core/metrics/next_token.h"
#include "core/trace/head_id.h"
#include "core/trace/model_heads.h"

namespace headscope {

struct FindingsRequest {
  RunRequest run;                   ///< its edits stay in force
  Ablate ablate{Ablate::By::mean};  ///< what a head that is taken out leaves behind
  Index most_tokens = 64;           ///< that are hidden in turn; of a longer text those that get most attention
  bool operator==(const FindingsRequest&) const = default;
};

struct Finding {
  enum class Kind { cause, pattern, copy, sink, token } kind = Kind::cause;
  Worded title;                      ///< "What the answer hangs on"
  Worded sentence = {};              ///< one to three sentences, every number of this run
  Worded looks = {};                 ///< … and where that head looks meanwhile; may be empty
  Worded provenance = {};            ///< which tensors, which formula, what was run again
  std::optional<HeadId> head = {};   ///< of which it speaks
  std::vector<Evidence> cells = {};  ///< of that head, the strongest first
  std::optional<Index> token = {};   ///< of which it speaks
  double effect = 0;                 ///< nats that its absence costs: of the answer, the copied token, or the text
};

struct Findings {
  FindingsRequest request;
  std::shared_ptr<const Trace> trace;  ///< the run as it is: maps, all logits
  std::vector<Finding> all;            ///< in the order of Finding::Kind; best of what is known so far
};

class FindingsSweep final : public CellSweep {
 public:
  using Result = Findings;
  FindingsSweep(LoadedModel loaded, FindingsRequest request);
  /// What can be said so far; null before the first step.
  std::shared_ptr<const Findings> result() const;

 private:
  /// What one pass says of everything that was asked of the first.
  struct Said {
    std::vector<double> losses;  ///< −ln p of each asked token
    double loss = 0;             ///< mean over the text; NaN without targets
    NextToken best;              ///< the most probable answer
  };
  /// The class of a head that chance would do least.
  struct Strange {
    HeadId head;
    HeadVerdict verdict;
  };
  /// A token that stands where this head looked, and whose probability falls by so much without it.
  struct Copy {
    int head = 0;
    std::size_t asked = 0;
    double fall = 0;
  };
  EditProbe prepare(std::vector<std::vector<Intervention>>& cells, const Ctx& ctx) override;
  void measure(const EditProbe& probe, int index, const std::vector<Intervention>& edits, const Ctx& ctx) override;
  Said told_by(const Trace& trace) const;
  void find_strangest(const std::stop_token& stop);
  void look_for_copy(int head);
  void add_cause(Findings& out) const;
  void add_pattern(Findings& out) const;
  void add_copy(Findings& out) const;
  void add_sink(Findings& out) const;
  void add_token(Findings& out) const;
  /// The head taken out in cell `i`, as it is in the run as it is.
  const AttentionMap& map(int i) const;
  /// In which cell that is.
  int cell_of(HeadId head) const { return head_index(trace_->model.dims, head); }
  HeadId head_of(int i) const { return nth(every_head(trace_->model.dims), i); }
  Worded in_quotes(std::int32_t id) const;
  Worded place(Index position) const;
  /// "falls from 0.94 to 0.12, and “milk” (0.55) comes first"
  Worded fall(const Said& after) const;

  LoadedModel loaded_;
  FindingsRequest request_;
  std::shared_ptr<const Trace> trace_;
  TextMarks text_;             // of its tokens
  std::vector<Target> asked_;  // of every row whose token is known; then, where the model answers, the answer
  bool answers_ = false;       // the last of asked_ is the answer
  Said before_;
  int heads_ = 0;              // cells 0 … heads_ − 1 take one head out each
  std::vector<Index> hidden_;  // then one cell for each of these tokens
  std::vector<Said> after_;    // cell by cell; the last of all hides the first token from everybody
  std::optional<Strange> strangest_;
  std::optional<Copy> copy_;  // of the heads that were taken out so far
};

}  // namespace headscope
