#pragma once
// The Compare workspace without its window: which two runs stand side by side, and what came of it. Side A is what is
// on screen; side B differs from it by its edits, its text, its model or its moment of training.
// Thread rule: the UI thread.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/state/answer.h"
#include "app/state/document_editor.h"
#include "app/state/job_runner.h"
#include "app/state/run_controller.h"
#include "app/state/token_ids.h"
#include "app/state/training_controller.h"
#include "core/base/folder.h"
#include "core/base/words.h"
#include "core/metrics/trace_difference.h"

namespace headscope {

/// One side with its numbers.
struct ComparedSide {
  Worded name;                                      ///< "before", "tiny-llama", "step 280"
  std::shared_ptr<const Trace> run;                 ///< in tokens; what is predicted and lost is of these
  std::shared_ptr<const Tokenizer> tokenizer = {};  ///< may be null
  std::shared_ptr<const Trace> trace = {};          ///< what is shown and paired: the run, or the run in words
  HeadTable table = {};                             ///< of the run
  std::vector<double> losses = {};
  std::string label(std::int32_t id) const;
  /// Row of a head in trace->maps and table; −1 when it has none.
  int row(HeadId head) const;
};

/// Immutable, made on the worker.
struct Comparison {
  ComparedSide a, b;
  TextUnit asked = TextUnit::tokens;  ///< for which unit
  TextUnit unit = TextUnit::tokens;   ///< of trace, aligned, partner and heads; tokens where there is too much to read
  std::vector<int> aligned, partner;  ///< as align_traces() gives them, and as they were changed by hand
  std::vector<HeadDifference> heads;  ///< in the order of a.trace->maps
  std::vector<std::size_t> ranked;    ///< indices into `heads`, the largest total variation first
  std::optional<NextTokenChange> next;  ///< where each answers; empty when the vocabularies differ, or what is asked
  std::vector<NextToken> next_a, next_b;
  std::vector<double> kl;  ///< per token of a, NaN without a partner; empty likewise
  const HeadDifference* difference(HeadId head) const;
};

/// Of the sides name, run and tokenizer are looked at, and table and losses when they are there. Throws Cancelled.
std::shared_ptr<const Comparison> compare_sides(ComparedSide a, ComparedSide b, TextUnit unit,
                                                std::optional<std::vector<int>> partner, const std::stop_token& stop);
/// Pairs a token of A with one of B (a former partner of either goes), or takes the pair apart when they are one.
std::vector<int> paired(std::vector<int> partner, int of_a, int of_b);

class CompareController {
 public:
  enum class With { edits, text, model, training };

  /// `training` may be null: then there are no moments to compare.
  CompareController(JobRunner& jobs, DocumentEditor& editor, const RunController& run,
                    const TrainingController* training)
      : jobs_(jobs), editor_(editor), run_(run), training_(training) {}
  /// Once per frame, after JobRunner::frame(). `shown`: the workspace is on screen; else nothing is computed.
  void frame(bool shown);

  /// A bundled model's name or a folder, or a text; both empty: edits.
  void begin_with(const std::string& model, const std::string& text);
  With with() const { return with_; }
  void set_with(With with) { with_ = with; }
  /// What B is made of; only the one that `with` names is looked at.
  std::string& text() { return text_; }
  /// The open model has no tokenizer: text() is token ids, of its source or of its text.
  bool reads_ids() const;
  const std::filesystem::path& model() const { return model_; }
  /// Also of the folder that is chosen already: it is read again if its files changed.
  void set_model(std::filesystem::path folder) {
    model_ = std::move(folder);
    ++choices_;
  }
  /// Moments of the training run, by index; A and B.
  std::pair<std::size_t, std::size_t>& moments() { return moments_; }
  std::size_t moment_count() const { return training_ ? training_->moments().size() : 0; }
  std::int64_t moment_step(std::size_t index) const { return training_->moments()[index].view->step; }

  /// Why there is nothing to compare; "" = there is, or it is under way.
  std::string missing() const;
  /// The last comparison that came; it stays while a new one is made.
  const std::shared_ptr<const Comparison>& result() const { return answer_.last(); }
  /// Why what was asked last has no result; "" = it is not known that it has none.
  std::string failure() const { return answer_.error(); }
  /// failure() was told: it is no longer the message.
  void told_failure() {
    if (jobs_.message() && jobs_.message()->tag == answer_.tag()) jobs_.dismiss();
  }

  /// Pairs two tokens, or words where these are shown, or takes them apart; the numbers follow.
  void pair(int of_a, int of_b);
  void reset_pairs();
  bool pairs_changed() const { return question().by_hand.has_value(); }

 private:
  /// Two runs.
  struct Runs {
    With with;
    std::shared_ptr<const void> a, b;  ///< runs on screen, or two moments
    std::string text;
    std::filesystem::path model;
    std::uint64_t choices = 0;  ///< of that model
    bool operator==(const Runs&) const = default;
  };
  /// And what is paired of them, how.
  struct Question {
    Runs runs;
    TextUnit unit;
    std::optional<std::vector<int>> by_hand;
    bool operator==(const Question&) const = default;
  };
  bool reads_source() const;
  WrittenIds written_ids() const;  // REQUIRES reads_ids()
  const std::shared_ptr<const TrainingView>& moment(std::size_t index) const;
  Runs runs() const;
  Question question() const;
  void ask(const Question& question);

  JobRunner& jobs_;
  DocumentEditor& editor_;
  const RunController& run_;
  const TrainingController* training_;
  With with_ = With::edits;
  std::string text_;
  std::filesystem::path model_;
  std::pair<std::size_t, std::size_t> moments_{0, std::size_t(-1)};
  std::map<TextUnit, std::vector<int>> by_hand_;  // pairs …
  std::optional<Runs> by_hand_of_;                // … of these
  Answer<Question, Comparison> answer_{{"comparison", to_say("comparing two runs")}, Holds::numbers};
  std::shared_ptr<const Comparison> seen_;  // the last that was current
  std::uint64_t stops_ = 0;                 // of the runner, as last seen
  struct Opened {
    std::filesystem::path folder;
    FilesStamp files;  // as they were when it was read
    LoadedModel model;
    DeviceChoice device;
  };
  std::uint64_t choices_ = 0;                                    // of B's model
  std::shared_ptr<Opened> second_ = std::make_shared<Opened>();  // used by jobs only: B's model, opened once
};

}  // namespace headscope
