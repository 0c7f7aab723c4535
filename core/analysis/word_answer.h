#pragma once
// "Which word does “she” look at?" in a sentence or two. A head is worth telling where its weight on one other token is
// large, beside an even head and beside what the other queries give to that token (a sink gets as much from all); of
// those heads the one comes first whose part at the word the answer needs most: the model is run without each.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/analysis/cell_sweep.h"
#include "core/analysis/finding_words.h"
#include "core/edits/ablate_edit.h"
#include "core/trace/head_id.h"

namespace headscope {

struct WordRequest {
  RunRequest run;                   ///< its edits stay in force
  Index row = 0;                    ///< the word: a query of the decoder, or of the only stack
  Ablate ablate{Ablate::By::mean};  ///< what a head that is taken out leaves behind
  int most_heads = 8;               ///< that are taken out in turn
  bool operator==(const WordRequest&) const = default;
};

/// A head that looks from the word at one token much more than others do.
struct WordLook {
  HeadId head;
  Index key = 0;
  double weight = 0;  ///< of the word's row on `key`
  double even = 0;    ///< what an even head gives it
  double usual = 0;   ///< mean weight of the other queries that may see `key`, its own apart; 0 where there are none
  double effect =
      0;  ///< nats of the answer that the head's absence at the word costs; NaN while it is not known, or without one
  double special() const { return weight - usual; }
};

/// The head without its part at the word: what the sentence tells of.
Intervention without_look(const WordRequest& request, HeadId head);

struct WordAnswer {
  WordRequest request;
  std::shared_ptr<const Trace> trace;  ///< the run as it is
  std::vector<WordLook> looks;         ///< told first: the one that the answer needs most, then by special()
  std::string sentence, provenance;
};

class WordSweep final : public CellSweep {
 public:
  using Result = WordAnswer;
  WordSweep(LoadedModel loaded, WordRequest request);
  /// What can be said so far; null before the first step.
  std::shared_ptr<const WordAnswer> result() const;

 private:
  EditProbe prepare(std::vector<std::vector<Intervention>>& cells, const Ctx& ctx) override;
  void measure(const EditProbe& probe, int index, const std::vector<Intervention>& edits, const Ctx& ctx) override;
  std::optional<WordLook> look_of(const AttentionMap& map) const;

  LoadedModel loaded_;
  WordRequest request_;
  std::shared_ptr<const Trace> trace_;
  std::vector<WordLook> looks_;        // by special(), the largest first
  std::vector<AnswerChange> changes_;  // of the first of them, as far as they were measured
  std::optional<NextToken> answer_;    // before
};

}  // namespace headscope
