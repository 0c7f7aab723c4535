#pragma once
// "Which word does “she” look at?" in a sentence or two. A head is worth telling where it looks at one other word more
// than at any, and more than an even head, than other queries look at that word (a sink gets as much from all), and
// than other queries look as far back (as heads do that go by position alone). Marks that begin, end or part texts are
// no words. What such a look does for the answer is told by running the model without it: the weight of that one cell
// is 0 and its row shares the rest (attention knockout, Geva et al., Dissecting Recall of Factual Associations in
// Auto-Regressive Language Models, 2023). The look that the answer needs most comes first.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/analysis/cell_sweep.h"
#include "core/analysis/finding_words.h"
#include "core/trace/head_id.h"

namespace headscope {

struct WordRequest {
  RunRequest run;      ///< its edits stay in force
  Index row = 0;       ///< the word: a query of the decoder, or of the only stack
  int most_looks = 8;  ///< that are taken out in turn
  bool operator==(const WordRequest&) const = default;
};

/// A head that looks from the word at one other word.
struct WordLook {
  HeadId head;
  Index key = 0;
  double weight = 0;  ///< of the word's row on `key`
  double even = 0;    ///< what an even head gives it
  double usual = 0;   ///< mean weight on `key` of other queries that may see it, its own apart; 0 without any
  double as_far = 0;  ///< mean weight that other queries give to what is as far from them; 0 without any
  double effect = 0;  ///< nats of the answer that its absence costs; NaN where it was not tried
  double special() const { return weight - std::max(usual, as_far); }
};

/// The run without this look.
Intervention without_look(const WordRequest& request, const WordLook& look);

struct WordAnswer {
  WordRequest request;
  std::vector<WordLook> looks;  ///< told first: the one that the answer needs most, then by special()
  Worded sentence, provenance;
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
  bool taken_out(HeadId head) const;
  Worded called(Index position) const;

  LoadedModel loaded_;
  WordRequest request_;
  std::shared_ptr<const Trace> trace_;
  bool weighs_ = false, sees_others_ = false;  // some head has weights that can be told; and other words to see
  std::vector<WordLook> looks_;                // by special(), the largest first
  std::vector<std::size_t> tried_;             // which of them are taken out in turn …
  std::vector<AnswerChange> changes_;          // … and what came of it, as far as it was measured
  std::optional<NextToken> answer_;            // before
};

}  // namespace headscope
