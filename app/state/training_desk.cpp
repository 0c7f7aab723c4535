#include "app/state/training_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "app/assets.h"
#include "app/state/jobs.h"
#include "app/state/settings.h"
#include "core/base/error.h"
#include "core/engine/generation.h"

namespace headscope {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

namespace {

// Long enough that a frame between two slices costs little, short enough that other jobs need not wait.
constexpr double slice_seconds = 0.06;
constexpr double seconds_between_views = 0.4, seconds_between_samples = 3;
// Tokens of the probe text: a map of each head that can be drawn whole.
constexpr int probe_tokens = 96, sample_tokens = 96;
constexpr const char* history_metrics[] = {"prefix_matching", "previous_token", "sink", "entropy_normalized"};
constexpr std::size_t history_points = 4000;
// Two tags take turns, so that one slice waits while the other runs and the worker never idles.
constexpr const char* slice_tags[] = {"training", "training "};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

}  // namespace

/// What only jobs touch, one after another on the worker.
struct TrainingDesk::Run {
  std::shared_ptr<Backend> backend;
  std::unique_ptr<Trainer> trainer;
  Clock::time_point last_view{}, last_sample{};
  bool viewed = false;
  std::string sample;
  std::int64_t sample_step = 0;

  /// The probe text traced by the model as it is.
  std::shared_ptr<const TrainingView> look(const std::stop_token& stop) {
    const LoadedModel model{trainer->snapshot(backend.get()), trainer->task().tokenizer()};
    auto view = std::make_shared<TrainingView>();
    view->step = trainer->progress().step;
    RunRequest request;
    request.text = trainer->task().probe_text(std::min(probe_tokens, model.model->config().context));
    request.add_bos = true;
    request.capture.maps = MapStorage::dense;
    request.capture.all_logits = false;
    const Ctx ctx{*backend, nullptr, stop};
    view->facts = jobs::facts(run(model, request, ctx), stop);
    if (!viewed || seconds_since(last_sample) > seconds_between_samples || trainer->progress().finished()) {
      sample = write(model, ctx);
      sample_step = view->step;
      last_sample = Clock::now();
    }
    view->sample = sample;
    view->sample_step = sample_step;
    viewed = true;
    last_view = Clock::now();
    return view;
  }

 private:
  std::string write(const LoadedModel& model, const Ctx& ctx) const {
    const std::int32_t end = trainer->task().vocabulary().end_of_text_id();
    std::vector<std::int32_t> ids;
    sample_text(model, ctx, {end}, std::min(sample_tokens, model.model->config().context - 1),
                {{.temperature = 0.8}, trainer->recipe().seed}, [&](std::int32_t id) {
                  if (id == end) return false;
                  ids.push_back(id);
                  return true;
                });
    return model.tokenizer->decode(ids);
  }
};

/// What a slice hands to the UI thread.
struct TrainingDesk::Slice {
  TrainingProgress progress;
  std::vector<TrainingPoint> curve;
  Recipe recipe;
  std::optional<TrainingMoment> moment;
  std::string failure;
};

TrainingDesk::TrainingDesk(Explorer& explorer, std::size_t most_bytes) : explorer_(explorer), most_bytes_(most_bytes) {
  for (const char* name : {"induction-2l", "tiny-gpt2", "tiny-llama"})
    for (const char* place : {"models", "../models"})
      if (const auto file = find_asset((fs::path(place) / name / "recipe.json").string())) {
        recipes_.emplace_back(name, file->lexically_normal());
        break;
      }
  if (!recipes_.empty()) choose(recipes_.front().second);
}

TrainingDesk::~TrainingDesk() = default;

void TrainingDesk::choose(const fs::path& recipe) {
  const auto bundled = std::ranges::find(recipes_, recipe.string(), &std::pair<std::string, fs::path>::first);
  try {
    draft_ = load_recipe(bundled == recipes_.end() ? recipe : bundled->second);
  } catch (const Error& broken) {
    explorer_.show_message({Message::Level::error, broken.what(), "training"});
  }
}

std::string TrainingDesk::complaint() const {
  try {
    draft_.check("recipe");
    return "";
  } catch (const Error& wrong) {
    return wrong.what();
  }
}

void TrainingDesk::start() {
  running_ = draft_;
  begin(nullptr);
}

void TrainingDesk::fork() {
  const TrainingMoment* from = moment();
  if (!from || !from->checkpoint) return;
  auto checkpoint = std::make_shared<Checkpoint>(*from->checkpoint);
  checkpoint->recipe.optimizer.learning_rate = draft_.optimizer.learning_rate;
  const std::int64_t step = checkpoint->step;
  std::erase_if(moments_, [&](const TrainingMoment& m) { return m.view->step > step; });
  for (HeadHistory& history : history_) {
    const auto keep = static_cast<std::size_t>(std::ranges::upper_bound(history.steps, static_cast<double>(step)) -
                                               history.steps.begin());
    history.steps.resize(keep);
    for (auto& head : history.heads) head.resize(keep);
  }
  const auto kept = std::move(moments_);
  const auto kept_history = std::move(history_);
  begin(checkpoint);
  moments_ = kept;
  history_ = kept_history;
}

void TrainingDesk::begin(std::shared_ptr<const Checkpoint> from) {
  run_ = std::make_shared<Run>();
  run_->backend = explorer_.backend();
  phase_ = Phase::preparing;
  in_flight_ = 0;
  single_ = false;
  shown_.reset();
  moments_.clear();
  history_.clear();
  curve_.clear();
  progress_ = {};
  for (const char* tag : slice_tags) explorer_.forget(tag);
  // The task trains its vocabulary first, which takes a moment: on the worker as well.
  explorer_.compute(
      "training recipe",
      [this, run = run_, recipe = running_, from](Worker::Job& job) -> Worker::Deliver {
        Slice slice;
        try {
          run->trainer =
              from ? std::make_unique<Trainer>(*from, *run->backend) : std::make_unique<Trainer>(recipe, *run->backend);
          slice.moment = TrainingMoment{run->look(job.stop), std::make_shared<Checkpoint>(run->trainer->checkpoint())};
          slice.progress = run->trainer->progress();
          slice.curve = run->trainer->curve();
          slice.recipe = run->trainer->recipe();
        } catch (const Error& error) {
          slice.failure = error.what();
        }
        return [this, run, slice = std::move(slice)] {
          if (run != run_) return;
          phase_ = Phase::running;
          deliver(run, slice);
        };
      },
      Explorer::OnStop::own);
}

void TrainingDesk::pause() {
  if (phase_ == Phase::running) phase_ = Phase::paused;
}

void TrainingDesk::resume() {
  if (phase_ == Phase::paused) phase_ = Phase::running;
}

void TrainingDesk::step() {
  if (phase_ != Phase::paused && phase_ != Phase::running) return;
  phase_ = Phase::running;
  single_ = true;
}

void TrainingDesk::stop() {
  run_.reset();
  phase_ = Phase::idle;
  for (const char* tag : slice_tags) explorer_.forget(tag);
  explorer_.forget("training recipe");
}

void TrainingDesk::set_learning_rate(double rate) {
  draft_.optimizer.learning_rate = rate;
  if (!run_) return;
  running_.optimizer.learning_rate = rate;
  explorer_.compute(
      "training rate",
      [run = run_, rate](Worker::Job&) -> Worker::Deliver {
        OptimizerSettings settings = run->trainer->recipe().optimizer;
        settings.learning_rate = rate;
        settings.final_learning_rate = std::min(settings.final_learning_rate, rate);
        run->trainer->set_optimizer(settings);
        return nullptr;
      },
      Explorer::OnStop::own);
}

void TrainingDesk::frame() {
  if (std::exchange(cancels_, explorer_.cancels()) != cancels_) {  // the user pressed Stop
    if (phase_ == Phase::preparing) stop();
    pause();
  }
  if (phase_ != Phase::running || !run_) return;
  const int wanted = single_ || pause_at_ > 0 ? 1 : 2;
  while (in_flight_ < wanted) submit(slice_tags[slices_++ % 2], single_ ? 1 : 0);
}

void TrainingDesk::submit(const std::string& tag, std::int64_t most_steps) {
  ++in_flight_;
  explorer_.compute(
      tag,
      [this, run = run_, most_steps, until = pause_at_](Worker::Job& job) -> Worker::Deliver {
        Slice slice;
        Trainer& trainer = *run->trainer;
        try {
          const auto begin = Clock::now();
          std::int64_t steps = 0;
          do {
            trainer.run(1, job.stop);
            ++steps;
          } while (!trainer.progress().finished() && seconds_since(begin) < slice_seconds && steps != most_steps &&
                   trainer.progress().step != until);
          if (steps == most_steps || trainer.progress().finished() || trainer.progress().step == until ||
              seconds_since(run->last_view) > seconds_between_views)
            slice.moment = TrainingMoment{run->look(job.stop), std::make_shared<Checkpoint>(trainer.checkpoint())};
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
      Explorer::OnStop::own);
}

void TrainingDesk::deliver(const std::shared_ptr<Run>&, const Slice& slice) {
  if (!slice.failure.empty()) {
    phase_ = phase_ == Phase::preparing || moments_.empty() ? Phase::idle : Phase::paused;
    explorer_.show_message({Message::Level::error, slice.failure, "training"});
    if (!slice.recipe.name.empty()) running_ = slice.recipe;
    return;
  }
  progress_ = slice.progress;
  curve_ = slice.curve;
  running_ = slice.recipe;
  if (slice.moment) add_moment(*slice.moment);
  if (progress_.finished())
    phase_ = Phase::finished;
  else if (single_ || (pause_at_ > 0 && progress_.step >= pause_at_))
    phase_ = Phase::paused;
  single_ = false;
}

void TrainingDesk::add_moment(const TrainingMoment& moment) {
  if (!moments_.empty() && moments_.back().view->step >= moment.view->step) return;  // a fork begins with a known one
  const HeadTable& table = moment.view->facts->table;
  if (history_.empty())
    for (const char* id : history_metrics)
      history_.push_back({id, {}, std::vector<std::vector<double>>(table.value.size())});
  for (HeadHistory& history : history_) {
    const auto column = static_cast<std::size_t>(&metric(history.metric) - metrics().data());
    if (history.steps.size() == history_points) {  // halves its resolution
      const auto thin = [](std::vector<double>& values) {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < values.size(); i += 2) values[kept++] = values[i];
        values.resize(kept);
      };
      thin(history.steps);
      for (auto& head : history.heads) thin(head);
    }
    history.steps.push_back(static_cast<double>(moment.view->step));
    for (std::size_t head = 0; head < table.value.size(); ++head)
      history.heads[head].push_back(table.value[head][column]);
  }

  moments_.push_back(moment);
  const auto bytes = [](const TrainingMoment& m) {
    std::size_t sum = m.checkpoint->bytes();
    for (const AttentionMap& map : m.view->facts->trace->maps) sum += map.bytes();
    return sum;
  };
  std::size_t total = 0;
  for (const TrainingMoment& m : moments_) total += bytes(m);
  while (total > most_bytes_ && moments_.size() > 3) {
    // The one whose neighbours are closest goes, never the first or the last.
    std::size_t least = 1;
    const auto gap = [&](std::size_t i) { return moments_[i + 1].view->step - moments_[i - 1].view->step; };
    for (std::size_t i = 2; i + 1 < moments_.size(); ++i)
      if (gap(i) < gap(least)) least = i;
    total -= bytes(moments_[least]);
    moments_.erase(moments_.begin() + static_cast<std::ptrdiff_t>(least));
    if (shown_ && *shown_ >= least && *shown_ > 0) --*shown_;
  }
}

const TrainingMoment* TrainingDesk::moment() const {
  if (moments_.empty()) return nullptr;
  return shown_ && *shown_ < moments_.size() ? &moments_[*shown_] : &moments_.back();
}

fs::path TrainingDesk::usual_folder() const {
  const TrainingMoment* shown = moment();
  const fs::path settings = settings_file();
  const fs::path base = settings.empty() ? fs::temp_directory_path() : settings.parent_path();
  return base / "models" / fmt::format("{}-step{}", running_.name, shown ? shown->view->step : 0);
}

void TrainingDesk::save(const fs::path& folder, bool open) {
  const TrainingMoment* shown = moment();
  if (!shown) return;
  explorer_.compute(
      "training save",
      [this, folder, open, backend = explorer_.backend(),
       checkpoint = shown->checkpoint](Worker::Job&) -> Worker::Deliver {
        Trainer trainer(*checkpoint, *backend);
        std::error_code failure;
        fs::create_directories(folder, failure);
        if (failure) throw Error(folder.string(), "a folder that can be made", failure.message());
        trainer.save_model(folder);
        const std::string probe = trainer.task().probe_text(std::min(probe_tokens, checkpoint->recipe.model.context));
        return [this, folder, open, probe] {
          explorer_.show_message({Message::Level::info, "Saved the model in " + folder.string(), "training save"});
          if (!open) return;
          explorer_.open_model(folder);
          explorer_.set_text(probe);
        };
      },
      Explorer::OnStop::own);
}

}  // namespace headscope
