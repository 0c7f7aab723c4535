// The jobs of the Explorer: what is submitted when, and where results go.

#include <algorithm>
#include <utility>

#include "app/state/explorer.h"
#include "app/state/jobs.h"
#include "app/state/telling_head.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
constexpr std::size_t kept_models = 2;

bool any_enabled(const std::vector<Intervention>& edits) {
  return std::ranges::any_of(edits, &Intervention::enabled);
}
}  // namespace

Worker::Failed Explorer::failed(const std::string& tag) {
  return [this, tag](const std::string& message) {
    if (tag == "load") {
      // Not asked for again in every frame; a document that names another folder keeps its own verdict.
      if (loading_ == state_.document.model) refused_ = loading_;
      loading_.clear();
    }
    state_.message = Message{Message::Level::error, message, tag};
    changed_ = true;
  };
}

void Explorer::succeeded(const std::string& tag) {
  if (state_.message && state_.message->tag == tag) state_.message.reset();
  changed_ = true;
}

void Explorer::load(const fs::path& folder, std::function<void()> opened) {
  const auto known = std::ranges::find(models_, folder, &Opened::folder);
  if (known != models_.end()) {
    // A model may have been trained into the folder since. Of one that is gone, what was read of it is all there is.
    const FilesStamp files = FilesStamp::of(folder);
    if (files.empty() || files == known->files) {
      worker_.cancel("load");
      loading_.clear();
      adopt(Opened(*known));
      return opened();
    }
  }
  loading_ = folder;
  worker_.submit(
      "load",
      [this, folder, backend = backend_, opened](Worker::Job& job) -> Worker::Deliver {
        Opened read;
        read.folder = folder;
        read.files = FilesStamp::of(folder);  // first: what is written meanwhile is later
        read.model = load_model(folder, *backend, {job.stop, &job.progress});
        return [this, opened, read = std::move(read)]() mutable {
          read.reading = ++readings_;
          adopt(std::move(read));
          opened();
        };
      },
      failed("load"));
}

/// The document went elsewhere: what was being opened does not matter any more, and what failed may be tried again.
void Explorer::forget_load() {
  worker_.cancel("load");
  loading_.clear();
  refused_.clear();
}

void Explorer::adopt(Opened opened) {
  loading_.clear();
  // What an earlier model read, finished or not, goes with it: everything on screen is of one model. The run that
  // effects are measured against is known by its request, which names the folder alone.
  if (results_.model_reading != opened.reading) {
    drop_results();
    plain_request_ = {};
    plain_.reset();
    plain_losses_.clear();
  }
  results_.model = opened.model;
  results_.model_folder = opened.folder;
  results_.model_reading = opened.reading;
  std::erase_if(models_, [&](const Opened& known) { return known.folder == opened.folder; });
  models_.push_back(std::move(opened));
  if (models_.size() > kept_models) models_.erase(models_.begin());
  succeeded("load");
}

RunRequest Explorer::request() const {
  RunRequest request;
  request.model = state_.document.model;
  request.text = state_.document.ids.empty() ? state_.document.text : "";
  request.ids = state_.document.ids;
  request.add_bos = state_.document.add_bos;
  request.capture.byte_budget = options_.byte_budget;
  // With a large vocabulary the logits of all positions are a third of a pass: only losses need them, and come after.
  request.capture.all_logits = false;
  request.too_long = state_.document.too_long;
  request.edits = state_.document.edits;
  return request;
}

void Explorer::submit_changes() {
  const Document& document = state_.document;
  if (document.model.empty()) return;
  if (document.model != results_.model_folder) {  // a session, or undo, went to another model
    if (loading_.empty() && refused_ != document.model) load(document.model, [] {});
    if (document.model != results_.model_folder) return;
  }
  if (document.text.empty() && document.ids.empty()) return drop_results();
  const RunRequest wanted = request();
  if (wanted != submitted_) submit_trace(wanted);
  const bool current = results_.run && results_.run->request == wanted;
  if (current && (detail_of_ != results_.run->trace || detail_head_ != document.selected)) submit_detail();
}

void Explorer::drop_results() {
  if (!results_.run && submitted_ == RunRequest{}) return;
  for (const char* tag : {"trace", "metrics", "detail", "effect", "losses"}) worker_.cancel(tag);
  submitted_ = {};
  results_.run.reset();
  results_.facts.reset();
  results_.detail.reset();
  results_.effect.reset();
  results_.losses.reset();
  detail_of_.reset();
  state_.too_long.reset();
  succeeded("trace");
}

void Explorer::submit_trace(const RunRequest& wanted) {
  submitted_ = wanted;
  state_.too_long.reset();
  worker_.submit(
      "trace",
      [this, wanted, model = results_.model, backend = backend_,
       memory = memory_](Worker::Job& job) -> Worker::Deliver {
        try {
          return [this, run = jobs::trace(model, wanted, Ctx{*backend, nullptr, job.stop, &job.progress}, *memory)] {
            take_run(run);
          };
        } catch (const TextTooLong& refused) {
          return [this, what = TooLongText{refused.tokens, refused.context, refused.counted}] {
            state_.too_long = what;
            succeeded("trace");  // what an earlier text was told is over
          };
        }
      },
      failed("trace"));
}

void Explorer::take_run(std::shared_ptr<const TracedRun> run) {
  results_.run = std::move(run);
  succeeded("trace");
  keep_inside();
  submit_metrics();
  submit_detail();
  if (any_enabled(results_.run->request.edits)) {
    submit_effect();
  } else {
    worker_.cancel("effect");
    results_.effect.reset();
    plain_request_ = results_.run->request;
    plain_request_.edits.clear();
    plain_ = results_.run->trace;
    plain_losses_.clear();
  }
  submit_losses();
}

void Explorer::submit_metrics() {
  worker_.submit(
      "metrics",
      [this, trace = results_.run->trace](Worker::Job& job) -> Worker::Deliver {
        return [this, facts = jobs::facts(trace, job.stop)] {
          results_.facts = facts;
          if (std::exchange(select_telling_, false))
            if (const auto head = telling_head(*facts)) state_.document.selected = *head;
          succeeded("metrics");
        };
      },
      failed("metrics"));
}

void Explorer::submit_detail() {
  detail_of_ = results_.run->trace;
  detail_head_ = state_.document.selected;
  worker_.submit(
      "detail",
      [this, run = results_.run, head = detail_head_, model = results_.model, backend = backend_,
       memory = memory_](Worker::Job& job) -> Worker::Deliver {
        const Ctx ctx{*backend, nullptr, job.stop, &job.progress};
        return [this, detail = jobs::detail(model, *run, head, ctx, *memory)] {
          results_.detail = detail;
          succeeded("detail");
        };
      },
      failed("detail"));
}

void Explorer::submit_effect() {
  RunRequest plain = results_.run->request;
  plain.edits.clear();
  const auto known = plain == plain_request_ ? plain_ : nullptr;
  worker_.submit(
      "effect",
      [this, plain, known, run = results_.run, model = results_.model, backend = backend_,
       memory = memory_](Worker::Job& job) -> Worker::Deliver {
        const Ctx ctx{*backend, nullptr, job.stop, &job.progress};
        std::shared_ptr<const Trace> before = known;
        try {
          if (!before) before = run_beside(model, plain, ctx, *memory);
        } catch (const TextTooLong&) {  // which only the edits let the model read: there is no before
          return [this] {
            results_.effect.reset();
            succeeded("effect");
          };
        }
        return [this, plain, effect = jobs::effect(before, run->trace, job.stop)] {
          results_.effect = effect;
          if (plain_request_ != plain) plain_losses_.clear();
          plain_request_ = plain;
          plain_ = effect->before;
          succeeded("effect");
        };
      },
      failed("effect"));
}

void Explorer::submit_losses() {
  RunRequest plain = results_.run->request;
  plain.edits.clear();
  const bool edited = any_enabled(results_.run->request.edits);
  worker_.submit(
      "losses",
      [this, plain, edited, before = edited && plain == plain_request_ ? plain_losses_ : std::vector<double>(),
       run = results_.run, model = results_.model, backend = backend_,
       memory = memory_](Worker::Job& job) -> Worker::Deliver {
        const Ctx ctx{*backend, nullptr, job.stop, &job.progress};
        return [this, plain, edited, losses = jobs::losses(model, *run, before, ctx, *memory)] {
          results_.losses = losses;
          if (plain == plain_request_) plain_losses_ = edited ? losses->before : losses->now;
          succeeded("losses");
        };
      },
      failed("losses"));
}

}  // namespace headscope
