#pragma once
// Small models that differ in one thing, trained side by side on the same task from the same first batch on, so that
// what the thing does can be seen: whether a state of fixed size can recall, how many heads a width should be shared
// out to, whether a sentence fits into one vector. Everything is learnt when it is asked for; nothing is kept. One
// thread at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "core/train/trial_model.h"

namespace headscope {

/// One of the models.
struct Contestant {
  std::string title;
  Recipe recipe;
  MakeTrialModel make = transformer();  ///< what learns by it
};

/// What differs, on what, and how it is scored.
struct TrialPlan {
  std::string id, title, tab;    ///< "copy"; "Copying: attention and states of fixed size"; "Copying"
  std::string question, answer;  ///< a sentence each: what is asked, what to look for
  std::string source;            ///< papers
  std::string words;             ///< further words that find it
  std::string size_title;        ///< what `sizes` count: "characters to copy"
  std::vector<int> sizes;
  double chance = 0;                  ///< of the score
  std::string score_title, score_of;  ///< "characters copied right", "share of those said for the second time"
  std::string counted;                ///< the same for a table: "share of certain tokens that come first"
  std::string task_details;           ///< a sentence about the task
  std::string kept_of;                ///< what `state` numbers are, of each kind of model
  std::string alignment_of;           ///< what rows and columns of the alignment are; "" where nobody aligns anything
  std::vector<Contestant> contestants;
};

/// All plans; the same every time.
const std::vector<TrialPlan>& trial_plans();
/// Throws Error that lists them.
const TrialPlan& trial_plan(const std::string& id);
/// The plan with other numbers of steps, layers … of all contestants: `steps` > 0 replaces theirs.
TrialPlan with_steps(TrialPlan plan, std::int64_t steps);

/// Where a contestant stands.
struct TrialStanding {
  std::string title;
  std::int64_t parameters = 0;
  std::int64_t state = 0;  ///< numbers that it keeps of a text of the context's length: keys, values, states
  TrainingProgress progress;
  std::vector<TrainingPoint> curve;
  /// How much it gets right (TrialModel::score), by size, measured at `scored_step`; NaN before.
  std::vector<double> score;
  std::shared_ptr<const Trace> alignment;  ///< TrialModel::alignment, measured with it; null before
  std::vector<std::string> written;        ///< TrialModel::written, likewise
  std::int64_t scored_step = 0;
};

class Trial {
 public:
  /// Throws Error as its models do. `backend` must outlive the trial.
  Trial(const TrialPlan& plan, Backend& backend);
  ~Trial();

  /// Up to `steps` more steps of every contestant, in turns, and the scores that are due. Throws Cancelled; then it can
  /// go on.
  void run(std::int64_t steps, std::stop_token stop = {});
  bool finished() const;
  double share_done() const;  ///< 0 … 1
  std::vector<TrialStanding> standings() const;
  const TrialPlan& plan() const { return plan_; }

 private:
  struct Runner;
  void score(Runner& runner, std::stop_token stop);

  TrialPlan plan_;
  std::vector<std::unique_ptr<Runner>> runners_;
};

}  // namespace headscope
