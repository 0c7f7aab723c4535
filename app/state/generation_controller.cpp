#include "app/state/generation_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "app/assets.h"
#include "core/analysis/past_context.h"
#include "core/base/duration.h"
#include "core/base/error.h"
#include "core/base/words.h"

namespace headscope {

using Clock = std::chrono::steady_clock;

namespace {
// Steps handed over at once while running at full speed: long enough to cost little, short enough to be seen.
constexpr double slice_seconds = 0.03;
constexpr int cost_points = 16;

}  // namespace

/// Whether there is a run of the open model to go on from. Just after another model was opened, or is opened for
/// another device, the last run is still the old one's.
bool GenerationController::run_at_hand() const {
  const Results& results = run_.results();
  return results.run && results.model.model && results.run->request.model == results.model_folder &&
         results.model_device == jobs_.device() && results.model.model->config().objective() == Objective::next_token;
}

ToldStep tell(std::shared_ptr<const GenerationStep> step) {
  ToldStep told{std::move(step)};
  const TokenDistribution d = token_distribution(told.step->logits, told.step->settings);
  while (d.ids[told.rank] != told.step->token) ++told.rank;
  told.probability = d.plain[told.rank];
  told.share = d.kept[told.rank];
  told.entropy = entropy_of(d.plain);
  told.entropy_kept = entropy_of(d.kept);
  told.kept = d.count;
  return told;
}

Transcript GenerationBranch::transcript(const std::vector<std::int32_t>& prompt) const {
  Transcript transcript{prompt, {}};
  for (const ToldStep& told : steps) transcript.steps.push_back(told.step);
  return transcript;
}

SamplingSettings GenerationController::Settings::used() const {
  SamplingSettings out = sampling;
  if (greedy) out = {.temperature = 0};
  return out;
}

GenerationController::GenerationController(JobRunner& jobs, DocumentEditor& editor, const RunController& run,
                                           SessionFiles& files, std::size_t byte_budget)
    : jobs_(jobs),
      editor_(editor),
      run_(run),
      files_(files),
      byte_budget_(byte_budget),
      example_folder_(find_bundled_model(streaming_example)) {
  files_.set_transcript_source([this] { return record(); });
}

GenerationController::~GenerationController() {
  files_.set_transcript_source(nullptr);
}

/// What a job has to say: steps to append, and the one after them.
struct GenerationController::Written {
  std::uint64_t version = 0;
  std::vector<ToldStep> steps;
  std::optional<ToldStep> next;
  Generator::Choice choice;
  Worded ended;
  std::string failure;
};

std::string GenerationController::label(std::int32_t id) const {
  return model().tokenizer && id < model().tokenizer->vocab_size() ? model().tokenizer->token(id).label
                                                                   : fmt::format("#{}", id);
}

Generator::Choice GenerationController::choice() const {
  return {settings_.used(), settings_.seed, {}};
}

bool GenerationController::prompt_changed() const {
  const auto& shown = run_.results().run;
  return run_at_hand() && prompt_ && shown != prompt_ &&
         (shown->whole->ids() != prompt_->whole->ids() || shown->request.source != prompt_->request.source ||
          shown->request.sound != prompt_->request.sound || shown->request.edits != prompt_->request.edits ||
          run_.results().model.model != model().model);
}

bool GenerationController::model_continues() const {
  const auto& model = run_.results().model.model;
  return !model || model->config().objective() == Objective::next_token;
}

void GenerationController::take_prompt() {
  if (!run_at_hand()) return;
  forget_replay();
  begin();
}

void GenerationController::forget_replay() {
  replay_.reset();
  replay_state_ = ReplayState::none;
}

GenerationController::Opened GenerationController::opened() const {
  return {run_.results().model, jobs_.backend()};
}

/// With what the document shows.
void GenerationController::begin() {
  jobs_.forget(tag);
  prompt_ = run_.results().run;
  opened_ = opened();
  device_failed_ = false;
  generator_ = std::make_shared<Generator>(model(), prompt_->request);
  branches_ = {GenerationBranch{}};
  chosen_ = 0;
  next_id_ = 1;
  forget_transcript();
}

/// What belonged to an earlier tape goes; branches_, prompt_ and generator_ are the new one's.
void GenerationController::forget_transcript() {
  held_.clear();
  held_bytes_ = 0;
  recalled_.reset();
  running_ = in_flight_ = appending_ = false;
  owed_.clear();
  beams_.let_go(jobs_);
  followed_.reset();
  costs_.let_go(jobs_);
  streaming_.let_go(jobs_);
  forcing_.let_go(jobs_);
  forcing_given_ = std::max(1, static_cast<int>(prompt_->whole->tokens.size()) / 3);
  const int context = model().model->config().context;
  streaming_settings_.window = std::clamp(context / 4, 2, 64);
  streaming_settings_.sinks = std::min(4, streaming_settings_.window - 1);
  changed_branch();
}

/// The end of the text is another: what was known about the next token goes.
void GenerationController::changed_branch() {
  ++version_;
  next_.reset();
  reading_failed_ = false;
  cursor_ = std::numeric_limits<std::size_t>::max();
  auto text = std::make_shared<Trace>();
  text->model = prompt_->whole->model;
  text->tokens = prompt_->whole->tokens;
  for (const ToldStep& told : branch().steps) {
    Token token{told.step->token, "", label(told.step->token)};
    if (model().tokenizer && token.id < model().tokenizer->vocab_size()) token = model().tokenizer->token(token.id);
    text->tokens.push_back(std::move(token));
  }
  text_ = std::move(text);
}

void GenerationController::append(const ToldStep& step) {
  GenerationBranch& branch = branches_[chosen_];
  branch.steps.push_back(step);
  last_step_ = Clock::now();
  hold(step.step);
}

/// Appends `given`, or where nothing is given a token as the settings choose it; then reads what comes next.
void GenerationController::submit(const std::vector<std::int32_t>& given, bool append) {
  in_flight_ = true;
  appending_ = append;
  Written question;
  question.version = version_;
  question.choice = choice();
  const bool fast = running_ && settings_.pace <= 0;
  const std::optional<std::int32_t> end =
      model().tokenizer && !settings_.past_end ? model().tokenizer->eos() : std::nullopt;
  jobs_.submit(
      {tag, to_say("writing")},
      [this, question, given, append, fast, end, generator = generator_, model = model(),
       transcript = branch().transcript(prompt_->whole->ids()),
       backend = opened_.backend](Worker::Job& job) mutable -> Worker::Deliver {
        const Ctx ctx{*backend, nullptr, job.stop, nullptr};
        const auto context = static_cast<std::size_t>(model.model->config().context);
        Written answer = question;
        try {
          const auto begin = Clock::now();
          const auto ends = [&] {
            if (transcript.ids().size() > context)
              answer.ended = say_later("the context of {} tokens is full", context);
            if (end && !transcript.steps.empty() && transcript.steps.back()->token == *end)
              answer.ended = to_say("the model ended the text");
            return !answer.ended.empty();
          };
          if (append) {
            std::size_t at = 0;
            do {
              Generator::Choice now = answer.choice;
              if (at < given.size()) now.given = given[at++];
              transcript.steps.push_back(generator->step(ctx, transcript, now));
              answer.steps.push_back(tell(transcript.steps.back()));
            } while (at < given.size() || (!ends() && fast && seconds_since(begin) < slice_seconds));
          }
          if (answer.ended.empty() && !ends()) answer.next = tell(generator->step(ctx, transcript, answer.choice));
        } catch (const Error& error) {
          answer.failure = error.what();
        }
        return [this, answer = std::move(answer)] { deliver(answer); };
      },
      JobRunner::OnStop::again, [this, version = version_, given] { gave_up(version, given); }, opened_.backend);
}

/// Where the card failed, what was asked for is asked again once the model has been opened for the processor.
void GenerationController::gave_up(std::uint64_t version, const std::vector<std::int32_t>& given) {
  recalled_.reset();
  if (version != version_) return;
  device_failed_ = opened_.backend != jobs_.backend();
  if (!device_failed_) {
    running_ = false;
    owed_.clear();
    reading_failed_ = true;
  } else if (appending_) {
    owed_.push_front(given);
  }
  in_flight_ = appending_ = false;
}

/// The same model in the form of another device: what it wrote stays.
void GenerationController::follow_device() {
  const Results& results = run_.results();
  if (!prompt_ || in_flight_ || jobs_.backend() == opened_.backend || results.model_device != jobs_.device() ||
      !results.model.model || results.model_folder != prompt_->request.model)
    return;
  opened_ = opened();
  generator_ = std::make_shared<Generator>(model(), prompt_->request);
  device_failed_ = reading_failed_ = false;
}

void GenerationController::deliver(const Written& answer) {
  if (answer.version != version_) return;  // of a text that is no longer the chosen one
  in_flight_ = appending_ = false;
  if (!answer.failure.empty()) {
    running_ = false;
    owed_.clear();
    reading_failed_ = true;
    jobs_.show({Message::Level::error, answer.failure, tag});
    return;
  }
  const std::size_t kept = cursor_;
  const bool follow = kept >= branch().steps.size();
  for (const ToldStep& step : answer.steps) append(step);
  if (!answer.steps.empty()) {
    if (replay_state_ == ReplayState::refused) forget_replay();  // another text is written in its place
    changed_branch();
    if (!follow) cursor_ = kept;
  }
  branches_[chosen_].ended = answer.ended;
  if (!answer.ended.empty()) {
    running_ = false;
    owed_.clear();
  }
  next_ = answer.next;
  next_choice_ = answer.choice;
}

void GenerationController::frame(bool shown) {
  if (std::exchange(stops_, jobs_.stops()) != stops_) {  // the user pressed Stop
    jobs_.forget(tag);
    beams_.stop(jobs_);
    costs_.stop(jobs_);
    streaming_.stop(jobs_);
    forcing_.stop(jobs_);
    running_ = in_flight_ = appending_ = false;
    if (replay_state_ == ReplayState::running) replay_state_ = ReplayState::refused;
    recalled_.reset();
    owed_.clear();
  }
  if (auto opened = files_.take_opened_transcript()) replay(std::move(*opened));
  if (replay_state_ == ReplayState::waiting && run_at_hand() && replay_->prompt.model == run_.results().model_folder)
    return submit_replay();
  if (replay_state_ == ReplayState::running) return;
  const bool untouched = branches_.size() == 1 && branches_[0].steps.empty() && !running_;
  if (run_at_hand() && (!prompt_ || (untouched && prompt_changed()))) {
    if (shown) begin();
  }
  follow_device();
  if (!prompt_ || device_failed_) return;
  if (shown && !running_ && !in_flight_ && !reading_failed_ && cursor() < branch().steps.size() &&
      is_dropped(*branch().steps[cursor()].step))
    return submit_recall(cursor());
  if (at_once_ > 0 && shown) owed_.resize(owed_.size() + static_cast<std::size_t>(std::exchange(at_once_, 0)));
  if (!owed_.empty() && !appending_) {
    const std::vector<std::int32_t> given = std::move(owed_.front());
    owed_.pop_front();
    submit(given, true);
  }
  if (running_ && !in_flight_ && ready() && (settings_.pace <= 0 || seconds_since(last_step_) >= 1 / settings_.pace))
    submit({}, true);
  // What comes next under the settings as they are now.
  if (shown && !running_ && !in_flight_ && !reading_failed_ && branch().ended.empty() &&
      (!next_ || next_choice_ != choice()))
    submit({}, false);
  if (shown) return study();
  put_off_studies(Study::transcript);  // nobody looks: the worker is for others
}

void GenerationController::step() {
  if (!ready()) return;
  running_ = false;
  cursor_ = std::numeric_limits<std::size_t>::max();
  reading_failed_ = false;
  owed_.emplace_back();
}

void GenerationController::run() {
  if (!ready()) return;
  running_ = true;
  reading_failed_ = false;
  cursor_ = std::numeric_limits<std::size_t>::max();
}

void GenerationController::choose(std::size_t branch) {
  if (branch >= branches_.size() || branch == chosen_) return;
  running_ = in_flight_ = appending_ = false;
  owed_.clear();
  chosen_ = branch;
  changed_branch();
}

void GenerationController::remove(std::size_t branch) {
  if (branches_.size() < 2 || branch >= branches_.size()) return;
  const int gone = branches_[branch].id, heir = branches_[branch].parent;
  for (GenerationBranch& each : branches_)
    if (each.parent == gone) each.parent = heir;
  branches_.erase(branches_.begin() + static_cast<std::ptrdiff_t>(branch));
  let_go_unused();
  const std::size_t before = chosen_;
  if (chosen_ > branch || chosen_ == branches_.size()) --chosen_;
  if (before != branch) return;
  running_ = in_flight_ = appending_ = false;
  owed_.clear();
  changed_branch();
}

const ToldStep* GenerationController::at_cursor() const {
  const std::size_t at = cursor();
  if (at < branch().steps.size()) return is_dropped(*branch().steps[at].step) ? nullptr : &branch().steps[at];
  return next_ ? &*next_ : nullptr;
}

void GenerationController::fork(std::size_t at, std::optional<std::int32_t> token) {
  if (!prompt_ || replaying()) return;
  at = std::min(at, branch().steps.size());
  if (at == branch().steps.size() && !ready()) return;
  running_ = false;
  owed_.clear();
  // At the very end of the text nothing is left behind: the token is simply what comes next.
  if (at < branch().steps.size()) {
    GenerationBranch fork;
    fork.id = next_id_++;
    fork.parent = branch().id;
    fork.from = at;
    fork.steps.assign(branch().steps.begin(), branch().steps.begin() + static_cast<std::ptrdiff_t>(at));
    branches_.push_back(std::move(fork));
    chosen_ = branches_.size() - 1;
    changed_branch();
  }
  submit(token ? std::vector{*token} : std::vector<std::int32_t>(), true);
}

void GenerationController::open_in_explore() {
  if (!prompt_) return;
  std::vector<std::int32_t> ids = branch().transcript(prompt_->whole->ids()).ids();
  // A target is written without the token that begins it, which a run puts there, and without one that ends it.
  if (model().model->encoder()) {
    ids.erase(ids.begin());
    if (model().tokenizer && !ids.empty() && ids.back() == model().tokenizer->eos()) ids.pop_back();
    if (ids.empty()) return editor_.set_text("");
  }
  // As text where reading it again gives the same tokens, so that it can be edited; else as ids.
  if (model().tokenizer && prompt_->request.ids.empty()) {
    RunRequest again = prompt_->request;
    again.text = model().tokenizer->decode(ids);
    again.ids.clear();
    try {
      std::vector<std::int32_t> read;
      for (const Token& token : tokenize(model(), again)) read.push_back(token.id);
      if (model().model->encoder()) read.erase(read.begin());
      if (read == ids) return editor_.set_text(again.text);
    } catch (const Error&) {  // too long by one token, for one: ids it is, and Explore says what it thinks of them
    }
  }
  editor_.set_ids(ids);
}

// ---- studies

void GenerationController::put_off_studies(Study except) {
  if (except != Study::beams) beams_.put_off(jobs_);
  if (except != Study::cost) costs_.put_off(jobs_);
  if (except != Study::streaming) streaming_.put_off(jobs_);
  if (except != Study::forcing) forcing_.put_off(jobs_);
}

std::shared_ptr<const GenerationController::StreamingView> GenerationController::streaming() const {
  const auto& of = streaming_.last_key();
  const bool same = of && of->example == streams_example() && (of->example || of->model == opened_.model.model);
  return same ? streaming_.last() : nullptr;
}

bool GenerationController::streams_example() const {
  if (!example_folder_ || streamed_ == Streamed::open) return false;
  return streamed_ == Streamed::example || run_.results().model_folder.parent_path() == example_folder_->parent_path();
}

void GenerationController::study() {
  if (running_ || in_flight_ || wanted_ == Study::transcript) return;
  put_off_studies(wanted_);
  if (wanted_ == Study::beams) return search_beams();
  const LoadedModel model = opened_.model;
  const std::vector<std::int32_t> ids = branch().transcript(prompt_->whole->ids()).ids();
  const auto context = static_cast<std::size_t>(model.model->config().context);
  if (wanted_ == Study::cost) {
    costs_.want(jobs_, model.model, [model, ids, context](const Ctx& ctx) {
      // To the end of the context whatever the text says: time does not depend on which tokens they are.
      std::vector<std::int32_t> whole = ids;
      for (std::size_t i = 0; whole.size() < context; ++i) whole.push_back(ids[i % ids.size()]);
      whole.resize(context);
      return measure_generation(*model.model, whole, cost_points, ctx);
    });
  } else if (wanted_ == Study::streaming) {
    const bool example = streams_example();
    if (!example && !model.model->config().dims.attends()) return;  // nothing that could be evicted
    StreamingOf key{example ? nullptr : model.model, version_, streaming_settings(), settings_.seed, example};
    // What a model learnt stays the same, whatever is written here.
    if (const auto& last = streaming_.last_key();
        last && last->model == key.model && last->example == example && streaming_.last()->learnt)
      key.version = last->version, key.seed = last->seed;
    const auto folder = example ? *example_folder_ : run_.results().model_folder;
    streaming_.want(jobs_, key, [open = model, folder, ids, context, key](const Ctx& ctx) {
      StreamingView view;
      view.model = key.example ? load_model(folder, ctx.backend) : open;
      const LoadedModel& reads = view.model;
      view.settings = key.settings;
      const auto read = [&] {
        for (const CachePolicy policy :
             {CachePolicy::whole, CachePolicy::window, CachePolicy::sinks, CachePolicy::recompute})
          view.losses.push_back(streaming_losses(reads, view.ids, policy, key.settings, ctx));
        view.rests = first_token_shares(reads, view.ids, ctx);
        const std::size_t window = static_cast<std::size_t>(key.settings.window);
        if (view.ids.size() >= 2 * window)
          view.rests_anew = first_token_shares(reads, std::span(view.ids).subspan(window, window), ctx);
        return view;
      };
      // On and on in the language that it learnt, unless a table of positions ends.
      if (!reads.model->config().ends_at_context()) {
        const auto learnt = learnt_texts(reads, folder, 1, streamed_tokens(reads.model->config()));
        if (!learnt.empty()) {
          view.ids = learnt.front();
          view.given = view.ids.size();
          view.learnt = true;
          view.source =
              to_say("a text of the language that the model learnt, many times as long as any in its training");
          return read();
        }
      }
      view.source =
          to_say("the text of this branch, continued to the end of the context by the model at temperature 1");
      view.ids = ids;
      view.ids.resize(std::min(ids.size(), context));
      view.given = view.ids.size();
      sample_text(reads, ctx, view.ids, static_cast<int>(context - view.ids.size()),
                  Generator::Choice{{.temperature = 1}, key.seed, {}},
                  [&](std::int32_t id) { return view.ids.push_back(id), true; });
      return read();
    });
  } else if (wanted_ == Study::forcing) {
    const std::vector<std::int32_t> target = prompt_->whole->ids();
    if (target.size() < 2) return;
    forcing_given_ = std::clamp(forcing_given_, 1, static_cast<int>(target.size()) - 1);
    ForcingOf key{prompt_, static_cast<std::size_t>(forcing_given_), choice()};
    if (key.choice.settings.greedy()) key.choice.seed = 0;  // which chooses nothing then
    forcing_.want(jobs_, key, [model, target, key](const Ctx& ctx) {
      return force_and_run_free(model, target, key.given, key.prompt->request, key.choice, ctx);
    });
  }
}

}  // namespace headscope
