#include "app/state/run_controller.h"

#include <algorithm>
#include <utility>

#include "app/state/jobs.h"
#include "app/state/telling_head.h"
#include "core/attention/described_rule.h"
#include "core/base/words.h"
#include "core/io/model_location.h"
#include "core/io/trace_file.h"
#include "core/trace/model_heads.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
constexpr std::size_t kept_models = 2;
/// Tags of what is asked of a run once it is there (ask_what_follows()).
constexpr const char* what_follows[] = {"metrics", "detail", "effect", "losses"};
constexpr double numbers_follow_every = 0.1;  // seconds

bool any_enabled(const std::vector<Intervention>& edits) {
  return std::ranges::any_of(edits, &Intervention::enabled);
}
}  // namespace

RunController::RunController(JobRunner& jobs, DocumentEditor& editor, std::size_t byte_budget)
    : jobs_(jobs), editor_(editor), byte_budget_(byte_budget) {
  editor_.after_change([this](bool elsewhere) {
    if (elsewhere) forget_load();
    keep_inside();
  });
}

void RunController::frame(double now) {
  now_ = now;
  keep_inside();  // first: what is submitted shall be about a head that there is
  submit_changes();
  keep_inside();  // a model that was at hand may just have been adopted
}

bool RunController::behind() const {
  const Document& document = editor_.document();
  if (jobs_.busy() || document.model.empty()) return false;
  if (!at_hand()) return true;
  if (results_.capture) return !results_.facts || results_.facts->trace != results_.capture->trace;
  if (results_.too_long || !has_input()) return false;
  const bool current = results_.run && results_.run->request == request();
  return !current || !results_.facts || results_.facts->trace != results_.run->trace;
}

void RunController::run_again() {
  if (behind()) {
    refused_.clear();
    submitted_ = {};
  } else if (!jobs_.busy() && results_.run && !results_.capture && !results_.current_losses()) {
    submit_losses();
  }
  jobs_.run_again();
}

void RunController::open_model(const fs::path& folder, std::function<void(Document&)> further,
                               std::function<void()> opened) {
  std::error_code failed;
  fs::path path = fs::absolute(folder, failed);
  path = failed ? folder : path.lexically_normal();
  // Of a model that has no words, and not written since this one was asked for.
  const bool reads_ids = results_.model.model && !results_.model.tokenizer;
  const std::vector<std::int32_t> ids = editor_.document().ids, source_ids = editor_.document().source_ids;
  load(path, [this, path, reads_ids, ids, source_ids, further = std::move(further), opened = std::move(opened)] {
    const bool first = editor_.document().model.empty();
    editor_.change("", [&](Document& document) {
      // Which tokens there are is for the other model's tokenizer to say, and whether it is asked for any for its kind.
      if (document.model != path) document.masked.clear();
      if (reads_ids && document.model != path) {
        if (results_.model.tokenizer && !document.text.empty() && document.ids == ids) document.ids.clear();
        if (results_.model.source_tokenizer && !document.source.empty() && document.source_ids == source_ids)
          document.source_ids.clear();
      }
      if (further) further(document);
      // What was read is read on: by an encoder-decoder as its source, by others as their text.
      const bool reads_source = translates() && !results_.hears();
      if (reads_source && document.source.empty()) document.source = std::exchange(document.text, "");
      if (!translates() && document.text.empty()) document.text = std::exchange(document.source, "");
      document.model = path;
      document.query = document.key = std::nullopt;
      // Edits of stacks, layers and heads that this model lacks mean nothing to it.
      std::erase_if(document.edits, [&](const Intervention& edit) {
        if (edit.target.stack != Stack::only && !translates()) return true;
        return !inside(edit.target, opened_dims(edit.target.stack));
      });
    });
    choices_ = editor_.choices();
    if (first) editor_.history().clear();  // there is nothing to go back to
    if (opened) opened();
  });
}

void RunController::load(const fs::path& folder, std::function<void()> opened) {
  const auto known = std::ranges::find(models_, folder, &Opened::folder);
  if (known != models_.end()) {
    // A model may have been trained into the folder since. Of one that is gone, what was read of it is all there is.
    const FilesStamp files = stamp_of(locate_model(folder));
    if (files.empty() || (files == known->files && (known->capture || known->device == jobs_.device()))) {
      jobs_.forget("load");
      loading_.clear();
      Opened again = *known;
      again.device = jobs_.device();  // of one that is gone as well: it is in another's form, and works slowly
      adopt(std::move(again));
      return opened();
    }
  }
  // Two devices need not have room for all of them.
  std::erase_if(
      models_, [&](const Opened& old) { return !old.capture && old.folder != folder && old.device != jobs_.device(); });
  loading_ = folder;
  jobs_.submit(
      {"load", say("opening {}", folder.filename().string())},
      [this, folder, backend = jobs_.backend(), device = jobs_.device(), opened](Worker::Job& job) -> Worker::Deliver {
        Opened read;
        read.folder = folder;
        read.device = device;
        const bool capture = holds_trace(folder);
        read.files = capture ? FilesStamp::of(folder)
                             : stamp_of(locate_model(folder));  // first: what is written meanwhile is later
        if (capture)
          read.capture = jobs::captured(open_trace(folder, parse_described_rule), folder);
        else
          read.model = load_model(folder, *backend, {job.stop, &job.progress});
        return [this, opened, read = std::move(read)]() mutable {
          read.reading = ++readings_;
          adopt(std::move(read));
          opened();
        };
      },
      JobRunner::OnStop::drop,
      [this, folder, opened, device = jobs_.device()] {
        if (device != jobs_.device()) return load(folder, opened);  // it failed; the processor has the room
        // Not asked for again in every frame; a document that names another folder keeps its own verdict.
        if (loading_ == editor_.document().model) refused_ = loading_, refused_on_ = device;
        loading_.clear();
      });
}

/// The document went elsewhere: what was being opened does not matter any more, and what failed may be tried again.
void RunController::forget_load() {
  jobs_.forget("load");
  loading_.clear();
  refused_.clear();
}

void RunController::adopt(Opened opened) {
  loading_.clear();
  // What an earlier model read, finished or not, goes with it: everything on screen is of one model. The run that
  // effects are measured against is known by its request, which names the folder alone.
  if (results_.model_reading != opened.reading) {
    drop_results();
    softer_.reset();
    plain_request_ = {};
    plain_.reset();
    plain_losses_.clear();
  }
  if (results_.model_folder != opened.folder) target_owed_ = false;  // of another text
  results_.model = opened.model;
  results_.capture = opened.capture;
  results_.model_folder = opened.folder;
  results_.model_files = opened.files;
  results_.model_device = opened.device;
  results_.model_reading = opened.reading;
  std::erase_if(models_, [&](const Opened& known) { return known.folder == opened.folder; });
  models_.push_back(std::move(opened));
  if (models_.size() > kept_models) models_.erase(models_.begin());
  jobs_.dismiss("load");
}

const ModelDims& RunController::opened_dims(Stack stack) const {
  if (results_.capture) return results_.capture->trace->model.dims;
  const Model& model = *results_.model.model;
  return stack == Stack::encoder && model.encoder() ? model.encoder()->config().dims : model.config().dims;
}

bool RunController::at_hand() const {
  return editor_.document().model == results_.model_folder &&
         (results_.capture || results_.model_device == jobs_.device());
}

bool RunController::translates() const {
  return results_.translates();
}

void RunController::show_capture(const fs::path& file, std::shared_ptr<const TracedRun> run) {
  jobs_.forget("load");
  refused_.clear();
  if (!results_.capture) choices_ = editor_.choices();  // of one capture after the other the same head stays
  Opened opened;
  opened.folder = file;
  opened.reading = ++readings_;
  opened.capture = std::move(run);
  adopt(std::move(opened));
  const bool first = editor_.document().model.empty();
  editor_.adjust([&](Document& document) {
    document.model = file;
    document.text.clear();
    document.ids.clear();
    document.source.clear();
    document.source_ids.clear();
    document.edits.clear();
  });
  if (first) editor_.history().clear();
}

bool RunController::reads_pictures() const {
  return results_.model.model && results_.model.model->config().vision;
}

bool RunController::has_input() const {
  const Document& document = editor_.document();
  if (results_.hears()) return !document.sound.empty();
  const RunRequest asked = request();
  if (translates()) return !(asked.source.empty() && asked.source_ids.empty());
  return reads_pictures() ? !document.image.empty() : !(asked.text.empty() && asked.ids.empty());
}

RunRequest RunController::request() const {
  RunRequest request = request_of(editor_.document());
  if (reads_pictures())
    request.text.clear(), request.ids.clear(), request.masked.clear();
  else
    request.image.clear();
  if (!translates() || results_.hears()) request.source.clear(), request.source_ids.clear();
  // Without a tokenizer only ids can be read: a text that stands in the document is for other models.
  if (const LoadedModel& open = results_.model; open.model) {
    if (!open.tokenizer) request.text.clear();
    if (!open.source_tokenizer) request.source.clear();
  }
  if (!results_.hears()) request.sound.clear();
  request.capture.byte_budget = byte_budget_;
  // With a large vocabulary the logits of all positions are a third of a pass: only losses need them, and come after.
  request.capture.all_logits = false;
  return request;
}

void RunController::submit_changes() {
  const Document& document = editor_.document();
  if (document.model.empty()) return drop_results();  // undo went to where there was none
  if (!at_hand()) {  // a session, or undo, went to another model; or another device computes
    if (loading_.empty() && !(refused_ == document.model && refused_on_ == jobs_.device())) load(document.model, [] {});
    if (!at_hand()) return;
  }
  if (results_.capture) {
    if (results_.run != results_.capture) {
      submitted_ = results_.capture->request;
      take_run(results_.capture);
    }
    return;
  }
  if (!has_input()) return drop_results();
  if (std::exchange(target_owed_, false)) write_target();
  const RunRequest wanted = request();
  if (wanted != submitted_) submit_trace(wanted);
  const bool current = results_.run && results_.run->request == wanted;
  if (current && results_.run->stack != stack()) take_run(jobs::looked_at(*results_.run, stack()));
  if (current && (detail_of_ != results_.run->trace || detail_head_ != document.selected)) submit_detail();
}

void RunController::drop_results() {
  if (!results_.run && submitted_ == RunRequest{}) return;
  jobs_.forget("trace");
  for (const char* tag : what_follows) jobs_.forget(tag);
  submitted_ = {};
  results_.run.reset();
  results_.facts.reset();
  results_.detail.reset();
  results_.effect.reset();
  results_.losses.reset();
  detail_of_.reset();
  results_.too_long.reset();
  jobs_.dismiss("trace");
}

void RunController::submit_trace(const RunRequest& wanted) {
  submitted_ = wanted;
  results_.too_long.reset();
  // A run need not wait for what was asked of the one before; but not for ever, so that numbers follow while a slider
  // is drawn.
  if (owed_) {
    const double since = overtaken_since_.value_or(now_);
    const bool soon = since <= now_ && now_ - since < numbers_follow_every;
    overtaken_since_ = soon ? since : now_;
    if (soon)
      for (const char* tag : what_follows) jobs_.forget(tag);
  }
  jobs_.submit(
      {"trace", to_say("running the model")},
      [this, wanted, stack = stack(), model = results_.model, backend = jobs_.backend(),
       memory = jobs_.memory()](Worker::Job& job) -> Worker::Deliver {
        try {
          const Ctx ctx{*backend, nullptr, job.stop, &job.progress};
          return [this, run = jobs::trace(model, wanted, stack, ctx, *memory)] { take_run(run); };
        } catch (const TextTooLong& refused) {
          return [this, what = TooLongText{refused.tokens, refused.context, refused.counted}] {
            results_.too_long = what;  // what an earlier text was told is over
            if (results_.run) ask_what_follows();
          };
        }
      },
      JobRunner::OnStop::drop);
}

void RunController::take_run(std::shared_ptr<const TracedRun> run) {
  results_.run = std::move(run);
  keep_inside();
  ask_what_follows();
}

void RunController::ask_what_follows() {
  owed_ = true;
  submit_metrics();
  if (results_.capture) return;  // it holds weights: no scores, no logits, nothing to edit
  submit_detail();
  if (any_enabled(results_.run->request.edits)) {
    submit_effect();
  } else {
    jobs_.forget("effect");
    results_.effect.reset();
    plain_request_ = results_.run->request;
    plain_request_.edits.clear();
    plain_ = results_.run->whole;
    plain_losses_.clear();
  }
  submit_losses();
}

void RunController::hear(const fs::path& sound) {
  editor_.change("", [&](Document& document) {
    document.sound = sound;
    document.text.clear();  // what was said of another
    document.ids.clear();
    document.query = document.key = std::nullopt;
  });
  if (results_.hears()) write_target();
}

void RunController::write_target() {
  if (!translates() || !has_input()) return;
  RunRequest asked = request();
  asked.text.clear();
  asked.ids.clear();
  jobs_.submit(
      {"write", to_say("writing the target")},
      [this, asked, model = results_.model, backend = jobs_.backend()](Worker::Job& job) -> Worker::Deliver {
        const Ctx ctx{*backend, nullptr, job.stop, &job.progress};
        return [this, asked, written = jobs::written_target(model, asked, ctx), words = model.tokenizer != nullptr] {
          if (const RunRequest now = request(); now.model != asked.model || now.source != asked.source ||
                                                now.source_ids != asked.source_ids || now.sound != asked.sound)
            return;
          editor_.history().close_step();
          words ? editor_.set_text(written.text) : editor_.set_ids(written.ids);
          editor_.history().close_step();
        };
      },
      JobRunner::OnStop::drop, [this, device = jobs_.device()] { target_owed_ = device != jobs_.device(); });
}

void RunController::submit_metrics() {
  jobs_.submit(
      {"metrics", to_say("measuring the heads")},
      [this, trace = results_.run->trace](Worker::Job& job) -> Worker::Deliver {
        return [this, facts = jobs::facts(trace, job.stop)] {
          results_.facts = facts;
          if (std::exchange(choices_, std::nullopt) != editor_.choices()) return;
          if (const auto head = telling_head(*facts))
            editor_.adjust([&](Document& document) { document.selected = *head; });
          if (const auto head = headscope::softer_head(*facts)) softer_ = {*head, editor_.choices()};
        };
      },
      JobRunner::OnStop::drop);
}

std::optional<HeadId> RunController::softer_head() const {
  if (!softer_ || softer_->second != editor_.choices()) return std::nullopt;
  return softer_->first;
}

void RunController::submit_detail() {
  detail_of_ = results_.run->trace;
  detail_head_ = editor_.document().selected;
  jobs_.submit(
      {"detail", to_say("taking the head apart")},
      [this, run = results_.run, head = detail_head_, model = results_.model, backend = jobs_.backend(),
       memory = jobs_.memory()](Worker::Job& job) -> Worker::Deliver {
        const Ctx ctx{*backend, nullptr, job.stop, &job.progress};
        return [this, detail = jobs::detail(model, *run, head, ctx, *memory)] { results_.detail = detail; };
      },
      JobRunner::OnStop::drop);
}

void RunController::submit_effect() {
  RunRequest plain = results_.run->request;
  plain.edits.clear();
  const auto known = plain == plain_request_ ? plain_ : nullptr;
  jobs_.submit(
      {"effect", to_say("comparing with the unedited run")},
      [this, plain, known, run = results_.run, model = results_.model, backend = jobs_.backend(),
       memory = jobs_.memory()](Worker::Job& job) -> Worker::Deliver {
        const Ctx ctx{*backend, nullptr, job.stop, &job.progress};
        std::shared_ptr<const Trace> before = known;
        try {
          if (!before) before = jobs::at_home(run_beside(model, plain, ctx, *memory));
        } catch (const TextTooLong&) {  // which only the edits let the model read: there is no before
          return [this] { results_.effect.reset(); };
        }
        return [this, plain, effect = jobs::effect(before, run->whole, run->stack, job.stop)] {
          results_.effect = effect;
          if (plain_request_ != plain) plain_losses_.clear();
          plain_request_ = plain;
          plain_ = effect->whole_before;
        };
      },
      JobRunner::OnStop::drop);
}

void RunController::submit_losses() {
  RunRequest plain = results_.run->request;
  plain.edits.clear();
  const bool edited = any_enabled(results_.run->request.edits);
  jobs_.submit(
      {"losses", to_say("computing the losses")},
      [this, plain, edited, before = edited && plain == plain_request_ ? plain_losses_ : std::vector<double>(),
       run = results_.run, model = results_.model, backend = jobs_.backend(),
       memory = jobs_.memory()](Worker::Job& job) -> Worker::Deliver {
        const Ctx ctx{*backend, nullptr, job.stop, &job.progress};
        return [this, plain, edited, losses = jobs::losses(model, *run, before, ctx, *memory)] {
          results_.losses = losses;
          owed_ = false;
          overtaken_since_.reset();
          if (plain == plain_request_) plain_losses_ = edited ? losses->before : losses->now;
        };
      },
      JobRunner::OnStop::drop);
}

/// What is selected and pinned stays inside the model and the text on screen. Not a step of the history.
void RunController::keep_inside() {
  const bool modelled = editor_.document().model == results_.model_folder && (results_.model.model || results_.capture);
  const bool run = results_.run && (results_.run == results_.capture ||
                                    (results_.run->request == submitted_ && submitted_ == request()));
  editor_.adjust([&](Document& document) {
    if (modelled) {
      document.stack = !translates() ? Stack::only : document.stack == Stack::only ? Stack::decoder : document.stack;
      document.selected = nearest_head(opened_dims(document.stack), document.selected);
    }
    if (!run || results_.run->stack != document.stack) return;
    const auto tokens = static_cast<Index>(results_.run->trace->tokens.size());
    const auto queries = static_cast<Index>(results_.run->trace->queries().size());
    if (document.query && (*document.query < 0 || *document.query >= queries)) document.query.reset();
    if (!document.query || (document.key && (*document.key < 0 || *document.key >= tokens))) document.key.reset();
  });
}

}  // namespace headscope
