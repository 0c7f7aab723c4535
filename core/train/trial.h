#pragma once
// Small models that differ in one thing, trained side by side on the same task from the same first batch on, so that
// what the thing does can be seen: whether a state of fixed size can recall, how many heads a width should be shared
// out to. Everything is learnt when it is asked for; nothing is kept. One thread at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "core/train/trainer.h"

namespace headscope {

/// One of the models.
struct Contestant {
  std::string title;
  Recipe recipe;
  std::set<int> recurrent =
      {};  ///< layers with a linear recurrence in place of softmax (core/train/recurrent_layers.h)
};

/// What differs, on what, and how it is scored.
struct TrialPlan {
  std::string id, title, tab;    ///< "copy"; "Copying: attention and states of fixed size"; "Copying"
  std::string question, answer;  ///< a sentence each: what is asked, what to look for
  std::string source;            ///< papers
  std::string words;             ///< further words that find it
  std::string size_title;        ///< what `sizes` count: "pairs to remember", "" where there is one score alone
  std::vector<int> sizes;
  double chance = 0;  ///< of the score
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
  /// Share of the certain tokens that come first, by size, measured at `scored_step`; NaN before.
  std::vector<double> score;
  std::int64_t scored_step = 0;
};

class Trial {
 public:
  /// Throws Error as Trainer does. `backend` must outlive the trial.
  Trial(const TrialPlan& plan, Backend& backend);
  ~Trial();

  /// Up to `steps` more steps of every contestant, in turns, and the scores that are due. Throws Cancelled; then it can
  /// go on.
  void run(std::int64_t steps, std::stop_token stop = {});
  bool finished() const;
  double share_done() const;  ///< 0 … 1
  std::vector<TrialStanding> standings() const;
  const TrialPlan& plan() const { return plan_; }
  /// The model of a contestant as it stands, with nothing in the place of its softmax.
  Learner& learner(std::size_t contestant);

 private:
  struct Runner;
  void score(Runner& runner, std::stop_token stop);

  TrialPlan plan_;
  std::vector<std::unique_ptr<Runner>> runners_;
};

}  // namespace headscope
