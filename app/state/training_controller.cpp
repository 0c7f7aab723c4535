#include "app/state/training_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "app/assets.h"
#include "app/state/jobs.h"
#include "app/state/settings.h"
#include "app/state/training_sample.h"
#include "core/base/duration.h"
#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/io/picture.h"
#include "core/metrics/shares.h"
#include "core/train/training_folder.h"
#include "core/train/translate_task.h"
#include "core/train/translation_scores.h"

namespace headscope {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

// Long enough that a frame between two slices costs little, short enough that other jobs need not wait.
constexpr double training_slice_seconds = 0.06;
constexpr double seconds_between_views = 0.4, seconds_between_samples = 3;
// Tokens of the probe text: a map of each head that can be drawn whole.
constexpr int probe_tokens = 96;
constexpr std::size_t most_branches = 12;
// Two tags take turns, so that one slice waits while the other runs and the worker never idles.
constexpr const char* slice_tags[] = {"training", "training "};

}  // namespace

/// What only jobs touch, one after another on the worker.
struct TrainingController::Run {
  std::shared_ptr<Backend> backend;
  std::unique_ptr<Trainer> trainer;
  Clock::time_point last_view{}, last_sample{};
  bool viewed = false;
  Worded sample;
  std::int64_t sample_step = 0;

  static HeadTable scores(const HeadFacts& facts) {
    if (facts.trace->model.dims.attends()) return facts.table;
    Trace shares = *facts.trace;
    const TokenLinks links = TokenLinks::of(shares.tokens);
    for (AttentionMap& map : shares.maps) map = as_shares(map, links);
    return head_table(shares);
  }

  /// The probe text traced by the model as it is.
  std::shared_ptr<const TrainingView> style(const std::stop_token& stop) {
    LoadedModel model{trainer->snapshot(backend.get()), trainer->task().tokenizer()};
    if (model.model->encoder()) model.source_tokenizer = model.tokenizer;
    auto view = std::make_shared<TrainingView>();
    view->step = trainer->progress().step;
    RunRequest request;
    if (trainer->task().settings().draws()) {
      request.image = find_asset("examples/tiny-vit.png").value_or(built_in_picture);
    } else {
      request.text = trainer->task().probe_text(std::min(probe_tokens, model.model->config().context));
      request.add_bos = true;
    }
    request.capture.maps = MapStorage::dense;
    request.capture.all_logits = false;
    const Ctx ctx{*backend, nullptr, stop};
    const auto* const translates = dynamic_cast<const TranslateTask*>(&trainer->task());
    if (translates) request.source = trainer->task().probe_source(), request.add_bos.reset();
    const auto trace = run(model, request, ctx);
    view->facts = jobs::facts(translates ? trace->cross : trace, stop);
    view->scores = scores(*view->facts);
    if (translates) view->alignment_errors = alignment_errors(*trace, translates->probe());
    if (!viewed || seconds_since(last_sample) > seconds_between_samples || trainer->progress().finished()) {
      sample = training_sample({model, trainer->task(), trainer->recipe().seed, request, *trace}, ctx);
      sample_step = view->step;
      last_sample = Clock::now();
    }
    view->sample = sample;
    view->sample_step = sample_step;
    viewed = true;
    last_view = Clock::now();
    return view;
  }
};

/// What a slice hands to the UI thread.
struct TrainingController::Slice {
  TrainingProgress progress;
  std::vector<TrainingPoint> curve;
  Recipe recipe;
  std::optional<TrainingMoment> moment;
  std::string failure;
};

TrainingController::TrainingController(JobRunner& jobs, DocumentEditor& editor, RunController& run,
                                       std::size_t most_bytes)
    : jobs_(jobs), editor_(editor), open_(run), most_bytes_(most_bytes), documents_(documents_folder()) {
  for (const char* name : {"induction-2l", "sink-2l", "everyday-gpt2", "tiny-gpt2", "tiny-llama", "tiny-bert",
                           "tiny-translate", "tiny-vit", "tiny-mixtral", "tiny-mamba"})
    for (const char* place : {"models", "../models"})
      if (const auto file = find_asset((fs::path(place) / name / "recipe.json").string())) {
        recipes_.emplace_back(name, file->lexically_normal());
        break;
      }
  if (!recipes_.empty()) choose(recipes_.front().second);
}

TrainingController::~TrainingController() = default;

void TrainingController::choose(const fs::path& recipe) {
  const auto bundled = std::ranges::find(recipes_, recipe.string(), &std::pair<std::string, fs::path>::first);
  try {
    draft_ = load_recipe(bundled == recipes_.end() ? recipe : bundled->second);
  } catch (const Error& broken) {
    jobs_.show({Message::Level::error, broken.what(), "training"});
  }
}

std::string TrainingController::complaint() const {
  try {
    draft_.check("recipe");
    return "";
  } catch (const Error& wrong) {
    return wrong.what();
  }
}

void TrainingController::start() {
  if (progress().step > 0) leave_branch();
  now_ = {};
  now_.id = next_branch_++;
  now_.recipe = draft_;
  begin(nullptr, false);
}

void TrainingController::fork() {
  const TrainingMoment* from = moment();
  if (!from || !from->checkpoint) return;
  auto checkpoint = std::make_shared<Checkpoint>(*from->checkpoint);
  OptimizerSettings& goes_on = checkpoint->recipe.optimizer;
  goes_on.learning_rate = draft_.optimizer.learning_rate;
  if (draft_.model.has_experts() && checkpoint->recipe.model.has_experts())
    goes_on.expert_balance = draft_.optimizer.expert_balance;
  const std::int64_t step = checkpoint->step;
  leave_branch();
  const TrainingBranch& left = others_.back();
  now_ = left;
  now_.id = next_branch_++;
  now_.parent = left.id;
  now_.from = step;
  now_.recipe = checkpoint->recipe;
  now_.curve = checkpoint->curve;
  std::erase_if(now_.moments, [&](const TrainingMoment& m) { return m.view->step > step; });
  for (HeadHistory& history : now_.history) {
    const auto keep = static_cast<std::size_t>(std::ranges::upper_bound(history.steps, static_cast<double>(step)) -
                                               history.steps.begin());
    history.steps.resize(keep);
    for (auto& head : history.heads) head.resize(keep);
  }
  begin(checkpoint, false);
}

void TrainingController::go_back_to(int branch) {
  const auto found = std::ranges::find(others_, branch, &TrainingBranch::id);
  if (found == others_.end() || found->moments.empty()) return;
  TrainingBranch wanted = std::move(*found);
  others_.erase(found);
  leave_branch();
  now_ = std::move(wanted);
  begin(now_.moments.back().checkpoint, true);
}

/// The branch that goes on becomes one that was left. What its run has done since its last moment belongs to it.
void TrainingController::leave_branch() {
  others_.push_back(now_);
  if (others_.size() > most_branches) others_.erase(others_.begin());
  if (!run_ || phase_ == Phase::preparing) return;
  for (const char* tag : slice_tags) jobs_.forget(tag);
  jobs_.submit(
      {fmt::format("training branch {}", now_.id), to_say("training")},
      [this, run = run_, id = now_.id](Worker::Job& job) -> Worker::Deliver {
        Slice slice;
        slice.moment = TrainingMoment{run->style(job.stop), std::make_shared<Checkpoint>(run->trainer->checkpoint())};
        slice.progress = run->trainer->progress();
        slice.curve = run->trainer->curve();
        slice.recipe = run->trainer->recipe();
        return [this, id, slice = std::move(slice)] {
          const auto left = std::ranges::find(others_, id, &TrainingBranch::id);
          if (left != others_.end()) take(slice, *left);
        };
      },
      JobRunner::OnStop::own);
}

void TrainingController::begin(std::shared_ptr<const Checkpoint> from, bool paused) {
  run_ = std::make_shared<Run>();
  run_->backend = trains_on();
  phase_ = Phase::preparing;
  in_flight_ = 0;
  single_ = false;
  pause_first_ = paused;
  shown_.reset();
  for (const char* tag : slice_tags) jobs_.forget(tag);
  // The task trains its vocabulary first, which takes a moment: on the worker as well.
  jobs_.submit(
      {"training recipe", to_say("training")},
      [this, run = run_, recipe = now_.recipe, from](Worker::Job& job) -> Worker::Deliver {
        Slice slice;
        try {
          run->trainer =
              from ? std::make_unique<Trainer>(*from, *run->backend) : std::make_unique<Trainer>(recipe, *run->backend);
          slice.moment = TrainingMoment{run->style(job.stop), std::make_shared<Checkpoint>(run->trainer->checkpoint())};
          slice.progress = run->trainer->progress();
          slice.curve = run->trainer->curve();
          slice.recipe = run->trainer->recipe();
        } catch (const Error& error) {
          slice.failure = error.what();
        }
        return [this, run, slice = std::move(slice)] {
          if (run != run_) return;
          phase_ = pause_first_ ? Phase::paused : Phase::running;
          deliver(run, slice);
        };
      },
      JobRunner::OnStop::own,
      [this, run = run_, from] {
        if (run != run_) return;
        if (run->backend == trains_on()) return stop();
        begin(from, pause_first_);  // a card failed: what computes now begins again
      },
      run_->backend);
}

void TrainingController::pause() {
  if (phase_ == Phase::running) phase_ = Phase::paused;
}

void TrainingController::resume() {
  if (phase_ == Phase::paused) phase_ = Phase::running;
}

void TrainingController::step() {
  if (phase_ != Phase::paused && phase_ != Phase::running) return;
  phase_ = Phase::running;
  single_ = true;
}

void TrainingController::stop() {
  run_.reset();
  phase_ = Phase::idle;
  for (const char* tag : slice_tags) jobs_.forget(tag);
  jobs_.forget("training recipe");
}

void TrainingController::set_learning_rate(double rate) {
  draft_.optimizer.learning_rate = rate;
  change_run("training rate", [rate](OptimizerSettings& settings) {
    settings.learning_rate = rate;
    settings.final_learning_rate = std::min(settings.final_learning_rate, rate);
  });
}

void TrainingController::set_expert_balance(double price) {
  draft_.optimizer.expert_balance = price;
  if (!now_.recipe.model.has_experts()) return;
  change_run("training balance", [price](OptimizerSettings& settings) { settings.expert_balance = price; });
}

void TrainingController::change_run(const char* tag, std::function<void(OptimizerSettings&)> change) {
  if (!run_) return;
  change(now_.recipe.optimizer);
  jobs_.submit(
      {tag, to_say("training")},
      [run = run_, change](Worker::Job&) -> Worker::Deliver {
        if (!run->trainer) return nullptr;  // its recipe could not be begun with
        OptimizerSettings settings = run->trainer->recipe().optimizer;
        change(settings);
        run->trainer->set_optimizer(settings);
        return nullptr;
      },
      JobRunner::OnStop::own);
}

void TrainingController::frame() {
  if (std::exchange(stops_, jobs_.stops()) != stops_) {  // the user pressed Stop
    if (phase_ == Phase::preparing) stop();
    pause();
  }
  if (phase_ != Phase::running || !run_) return;
  const int wanted = single_ || pause_at_ > 0 ? 1 : 2;
  while (in_flight_ < wanted) submit(slice_tags[slices_++ % 2], single_ ? 1 : 0);
}

void TrainingController::submit(const std::string& tag, std::int64_t most_steps) {
  ++in_flight_;
  jobs_.submit(
      {tag, to_say("training")},
      [this, run = run_, most_steps, until = pause_at_](Worker::Job& job) -> Worker::Deliver {
        Slice slice;
        Trainer& trainer = *run->trainer;
        try {
          const auto begin = Clock::now();
          std::int64_t steps = 0;
          do {
            trainer.run(1, job.stop);
            ++steps;
          } while (!trainer.progress().finished() && seconds_since(begin) < training_slice_seconds &&
                   steps != most_steps && trainer.progress().step != until);
          if (steps == most_steps || trainer.progress().finished() || trainer.progress().step == until ||
              seconds_since(run->last_view) > seconds_between_views)
            slice.moment = TrainingMoment{run->style(job.stop), std::make_shared<Checkpoint>(trainer.checkpoint())};
        } catch (const Error& error) {
          slice.failure = error.what();
        }
        slice.progress = trainer.progress();
        slice.curve = trainer.curve();
        slice.recipe = trainer.recipe();
        return [this, run, slice = std::move(slice)] {
          if (run != run_) return;
          --in_flight_;
          deliver(run, slice);
        };
      },
      JobRunner::OnStop::own,
      [this, run = run_] {
        if (run != run_) return;
        --in_flight_;
        const bool paused = std::exchange(phase_, Phase::paused) == Phase::paused;
        if (run->backend == trains_on() || moments().empty() || !moments().back().checkpoint) return;
        begin(moments().back().checkpoint, paused);  // a card failed: what computes now goes on from there
      },
      run_->backend);
}

void TrainingController::deliver(const std::shared_ptr<Run>&, const Slice& slice) {
  if (!slice.failure.empty()) {
    phase_ = phase_ == Phase::preparing || moments().empty() ? Phase::idle : Phase::paused;
    jobs_.show({Message::Level::error, slice.failure, "training"});
    if (!slice.recipe.name.empty()) now_.recipe = slice.recipe;
    return;
  }
  take(slice, now_);
  if (progress().finished())
    phase_ = Phase::finished;
  else if (single_ || (pause_at_ > 0 && progress().step >= pause_at_))
    phase_ = Phase::paused;
  single_ = false;
}

void TrainingController::take(const Slice& slice, TrainingBranch& branch) {
  branch.progress = slice.progress;
  branch.curve = slice.curve;
  branch.recipe = slice.recipe;
  if (slice.moment) add_moment(*slice.moment, branch);
}

std::string TrainingController::unsaved() const {
  const TrainingProgress& p = progress();
  if (!run_ || p.step == 0 || (p.finished() && saved_step_ == p.step)) return "";
  return say("the training of {}, at step {} of {}", running().name, p.step, p.steps);
}

void TrainingController::keep(const fs::path& file) {
  if (!run_ || phase_ == Phase::preparing || keeping()) return;
  ++keeping_;
  const auto write = [this, file](std::shared_ptr<const Checkpoint> checkpoint) {
    jobs_.on_files("training checkpoint", [this, file, checkpoint](Worker::Job&) -> Worker::Deliver {
      std::string failure;
      try {
        save_checkpoint(*checkpoint, file);
      } catch (const std::exception& error) {
        failure = error.what();
      }
      return [this, failure] {
        --keeping_;
        not_kept_ = failure;
        if (!failure.empty())
          jobs_.tell(say_later("The training could not be kept: {}", failure), "training", Message::Level::error);
      };
    });
  };
  // Between two slices: no other than the worker touches a run.
  jobs_.submit(
      {"training keep", to_say("training")},
      [run = run_, write](Worker::Job&) -> Worker::Deliver {
        auto checkpoint = std::make_shared<const Checkpoint>(run->trainer->checkpoint());
        return [checkpoint, write] { write(checkpoint); };
      },
      JobRunner::OnStop::own);
}

void TrainingController::take_up(const fs::path& file) {
  jobs_.on_files("training checkpoint", [this, file](Worker::Job&) -> Worker::Deliver {
    auto checkpoint = std::make_shared<const Checkpoint>(load_checkpoint(file));
    return [this, checkpoint] {
      if (progress().step > 0) leave_branch();
      now_ = {};
      now_.id = next_branch_++;
      draft_ = now_.recipe = checkpoint->recipe;
      begin(checkpoint, true);
    };
  });
}

const TrainingMoment* TrainingController::moment() const {
  if (moments().empty()) return nullptr;
  return shown_ && *shown_ < moments().size() ? &moments()[*shown_] : &moments().back();
}

fs::path TrainingController::usual_folder() const {
  const TrainingMoment* shown = moment();
  const fs::path base = documents_.empty() ? fs::temp_directory_path() : documents_;
  return base / fmt::format("{}-step{}", running().name, shown ? shown->view->step : 0);
}

void TrainingController::save(const fs::path& folder, bool open, bool overwrite) {
  const TrainingMoment* shown = moment();
  if (!shown) return;
  jobs_.submit(
      {"training save", to_say("saving the model")},
      [this, folder, open, overwrite, backend = jobs_.processor(),
       checkpoint = shown->checkpoint](Worker::Job&) -> Worker::Deliver {
        Trainer trainer(*checkpoint, *backend);
        TrainingFolder(folder, overwrite).publish(trainer);
        const std::string probe = trainer.task().probe_text(std::min(probe_tokens, checkpoint->recipe.model.context));
        return [this, folder, open, probe, source = trainer.task().probe_source(), step = checkpoint->step] {
          saved_step_ = step;
          jobs_.tell(say_later("Saved the model in {}", folder.string()), "training save");
          if (!open) return;
          open_.open_model(folder);
          editor_.set_source(source);
          editor_.set_text(probe);
        };
      },
      JobRunner::OnStop::own);
}

}  // namespace headscope
