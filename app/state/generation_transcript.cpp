// What a transcript takes and how it is kept: steps inside a byte budget, and made again from a session.

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "app/state/generation_controller.h"
#include "app/state/jobs.h"
#include "core/base/error.h"
#include "core/base/words.h"

namespace headscope {

namespace {
std::size_t bytes_of(const GenerationStep& step) {
  return (step.logits.defined() ? step.logits.bytes() : 0) + (step.rows.defined() ? step.rows.bytes() : 0);
}
}  // namespace

/// A tape that was made again.
struct GenerationController::Replayed {
  TranscriptRecord record;
  Opened opened;
  std::shared_ptr<const TracedRun> prompt = {};
  std::shared_ptr<Generator> generator = {};
  std::vector<GenerationBranch> branches = {};
  Worded remark = {};
  std::string failure = {};
  void make(const Ctx& ctx, std::atomic<float>& progress);
};

// ---- what the transcript takes

void GenerationController::hold(const std::shared_ptr<const GenerationStep>& step) {
  if (is_dropped(*step)) return;
  held_.push_back(step);
  held_bytes_ += bytes_of(*step);
  drop_oldest();
}

/// Steps of branches that were removed.
void GenerationController::let_go_unused() {
  std::set<const GenerationStep*> used;
  for (const GenerationBranch& branch : branches_)
    for (const ToldStep& told : branch.steps) used.insert(told.step.get());
  std::erase_if(held_, [&](const auto& step) {
    const bool gone = !used.contains(step.get());
    if (gone) held_bytes_ -= bytes_of(*step);
    return gone;
  });
}

void GenerationController::drop_oldest() {
  while (held_bytes_ > byte_budget_ && held_.size() > 1) {
    const auto oldest = held_.front();
    held_.pop_front();
    held_bytes_ -= bytes_of(*oldest);
    auto bare = std::make_shared<GenerationStep>(*oldest);
    bare->logits = {};
    bare->rows = {};
    replace_step(oldest, std::move(bare));
  }
}

void GenerationController::replace_step(const std::shared_ptr<const GenerationStep>& old,
                                        std::shared_ptr<const GenerationStep> now) {
  for (GenerationBranch& branch : branches_)
    for (ToldStep& told : branch.steps)
      if (told.step == old) told.step = now;
}

std::size_t GenerationController::dropped() const {
  std::set<const GenerationStep*> all;
  for (const GenerationBranch& branch : branches_)
    for (const ToldStep& told : branch.steps)
      if (is_dropped(*told.step)) all.insert(told.step.get());
  return all.size();
}

/// The step's pass once more: its logits and rows. What was chosen stays chosen.
void GenerationController::submit_recall(std::size_t at) {
  in_flight_ = true;
  recalled_ = branch().steps[at].step;
  jobs_.submit(
      {tag, to_say("writing")},
      [this, version = version_, old = recalled_, at, transcript = branch().transcript(prompt_->whole->ids()),
       generator = generator_, backend = opened_.backend](Worker::Job& job) -> Worker::Deliver {
        const Ctx ctx{*backend, nullptr, job.stop, nullptr};
        auto step = std::make_shared<GenerationStep>(*old);
        std::string failure;
        try {
          const auto again = generator->step(ctx, transcript.ids(at), at, {old->settings, old->seed, old->token});
          step->logits = again->logits;
          step->rows = again->rows;
        } catch (const Error& error) {
          failure = error.what();
        }
        return [this, version, old, step, failure] {
          if (recalled_ != old) return;  // another text by now
          recalled_.reset();
          if (version == version_) in_flight_ = false;
          if (!failure.empty()) {
            reading_failed_ = true;
            return jobs_.show({Message::Level::error, failure, tag});
          }
          replace_step(old, step);
          hold(step);
        };
      },
      JobRunner::OnStop::again, [this, version = version_] { gave_up(version, {}); }, opened_.backend);
}

// ---- sessions

std::optional<TranscriptRecord> GenerationController::record() const {
  if (replay_) return replay_;  // opened; not, or not wholly, made again
  if (!prompt_ || std::ranges::all_of(branches_, [](const GenerationBranch& b) { return b.steps.empty(); }))
    return std::nullopt;
  TranscriptRecord out{prompt_->request, {}, chosen_, choice()};
  for (const GenerationBranch& branch : branches_) {
    TranscriptRecord::Branch kept{branch.id, branch.parent, branch.from, {}};
    for (const ToldStep& told : branch.steps) {
      const GenerationStep& step = *told.step;
      Generator::Choice choice{step.settings, step.seed, {}};
      if (step.by == GenerationStep::By::given) choice.given = step.token;
      kept.steps.push_back({step.token, choice});
    }
    out.branches.push_back(std::move(kept));
  }
  return out;
}

namespace {
/// Steps 0 … count − 1 of both were chosen alike.
bool same_start(const TranscriptRecord::Branch& a, const TranscriptRecord::Branch& b, std::size_t count) {
  return a.steps.size() >= count && b.steps.size() >= count &&
         std::equal(a.steps.begin(), a.steps.begin() + static_cast<std::ptrdiff_t>(count), b.steps.begin());
}
}  // namespace

/// On the worker: every step of every branch once more; steps that an earlier branch made are shared with it.
void GenerationController::Replayed::make(const Ctx& ctx, std::atomic<float>& progress) {
  if (!prompt) {
    PassMemory memory;
    prompt = jobs::trace(opened.model, record.prompt, Stack::only, ctx, memory);
  }
  generator = std::make_shared<Generator>(opened.model, prompt->request);
  std::size_t all = 0, done = 0, differing = 0;
  for (const TranscriptRecord::Branch& branch : record.branches) all += branch.steps.size();
  for (const TranscriptRecord::Branch& branch : record.branches) {
    GenerationBranch out{branch.id, branch.parent, branch.from, {}, ""};
    for (std::size_t i = 0; i < branch.steps.size(); ++i) {
      progress = static_cast<float>(++done) / static_cast<float>(all);
      std::size_t earlier = 0;
      while (earlier < branches.size() && !same_start(record.branches[earlier], branch, i + 1)) ++earlier;
      if (earlier < branches.size()) {
        out.steps.push_back(branches[earlier].steps[i]);
        continue;
      }
      const TranscriptRecord::Step& step = branch.steps[i];
      const Transcript transcript = out.transcript(prompt->whole->ids());
      auto made = generator->step(ctx, transcript, step.choice);
      if (made->token != step.token) {
        ++differing;
        Generator::Choice given = step.choice;
        given.given = step.token;
        made = generator->step(ctx, transcript, given);
      }
      out.steps.push_back(tell(std::move(made)));
    }
    branches.push_back(std::move(out));
  }
  if (differing > 0)
    remark = say_later("{} of the session's generated tokens are not what is drawn here; the recorded ones were kept.",
                       differing);
}

void GenerationController::submit_replay() {
  in_flight_ = true;
  replay_state_ = ReplayState::running;
  Replayed question{*replay_, opened()};
  // The very run on screen, where it is the prompt's.
  const RunRequest& wanted = question.record.prompt;
  if (const auto& run = run_.results().run;
      run && run->request.model == wanted.model && run->request.text == wanted.text &&
      run->request.source == wanted.source && run->request.sound == wanted.sound && run->request.ids == wanted.ids &&
      run->request.edits == wanted.edits && run->request.add_bos == wanted.add_bos &&
      run->request.parse_special == wanted.parse_special)
    question.prompt = run;
  jobs_.submit(
      {tag, to_say("writing")},
      [this, made = std::move(question)](Worker::Job& job) mutable -> Worker::Deliver {
        try {
          made.make(Ctx{*made.opened.backend, nullptr, job.stop, nullptr}, job.progress);
        } catch (const Error& error) {
          made.failure = error.what();
        }
        return [this, made = std::move(made)]() mutable { deliver(std::move(made)); };
      },
      JobRunner::OnStop::again,
      [this, backend = jobs_.backend()] {
        in_flight_ = false;
        if (replay_state_ == ReplayState::running)
          replay_state_ = backend != jobs_.backend() ? ReplayState::waiting : ReplayState::refused;
      });
}

void GenerationController::deliver(Replayed made) {
  in_flight_ = false;
  if (!made.failure.empty()) {
    replay_state_ = ReplayState::refused;
    return jobs_.tell(say_later("The session's generated text: {}", made.failure), "", Message::Level::error);
  }
  forget_replay();
  prompt_ = std::move(made.prompt);
  opened_ = std::move(made.opened);
  device_failed_ = false;
  generator_ = std::move(made.generator);
  branches_ = std::move(made.branches);
  chosen_ = std::min(made.record.chosen, branches_.size() - 1);
  next_id_ = 1;
  for (const GenerationBranch& branch : branches_) next_id_ = std::max(next_id_, branch.id + 1);
  settings_.seed = made.record.next.seed;
  settings_.greedy = made.record.next.settings.greedy();
  if (!settings_.greedy) settings_.sampling = made.record.next.settings;
  forget_transcript();
  std::set<const GenerationStep*> known;
  for (const GenerationBranch& branch : branches_)
    for (const ToldStep& told : std::vector<ToldStep>(branch.steps))  // hold() may exchange the steps themselves
      if (known.insert(told.step.get()).second) hold(told.step);
  // Where a branch ended is found out anew, when its next step is read.
  if (!made.remark.empty()) jobs_.tell(made.remark);
}

}  // namespace headscope
