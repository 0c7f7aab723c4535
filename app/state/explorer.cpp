#include "app/state/explorer.h"

#include <algorithm>
#include <utility>

#include "app/assets.h"
#include "app/state/jobs.h"
#include "app/state/session.h"
#include "core/base/error.h"
#include "core/base/file.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
constexpr const char* tags[] = {"load", "trace", "metrics", "detail", "effect", "export"};
constexpr std::size_t kept_models = 2;
constexpr std::size_t text_limit = std::size_t{16} << 20;

const char* words_for(const std::string& tag) {
  if (tag == "load") return "opening the model";
  if (tag == "trace") return "running the model";
  if (tag == "metrics") return "measuring the heads";
  if (tag == "detail") return "taking the head apart";
  if (tag == "export") return "writing the file";
  return tag == "effect" ? "comparing with the unedited run" : "";
}

bool any_enabled(const std::vector<Intervention>& edits) {
  return std::ranges::any_of(edits, [](const Intervention& edit) { return edit.enabled; });
}

fs::path absolute_path(const fs::path& path) {
  std::error_code failed;
  const fs::path absolute = fs::absolute(path, failed);
  return failed ? path : absolute.lexically_normal();
}
}  // namespace

Explorer::Explorer(Options options)
    : options_(std::move(options)),
      backend_(std::make_shared<Backend>(options_.threads)),
      memory_(std::make_shared<PassMemory>()),
      worker_(options_.wake) {}

Explorer::~Explorer() = default;

bool Explorer::frame(double now) {
  now_ = now;
  const int delivered = worker_.drain();
  keep_inside();  // first: what is submitted shall be about a head that there is
  submit_changes();
  keep_inside();  // a model that was at hand may just have been adopted
  return std::exchange(changed_, false) || delivered > 0;
}

bool Explorer::busy() const {
  const Worker::Status status = worker_.status();
  return !status.tag.empty() || status.queued > 0;
}

Explorer::Status Explorer::status() const {
  const Worker::Status job = worker_.status();
  Status status;
  status.doing = words_for(job.tag);
  status.progress = job.progress;
  status.seconds = job.seconds;
  if (results_.run) status.trace_ms = results_.run->trace->milliseconds;
  if (results_.facts) status.metrics_ms = results_.facts->milliseconds;
  status.backend = backend_->name();
  return status;
}

void Explorer::compute(const std::string& tag, Worker::Work work) {
  worker_.submit(
      tag,
      [this, tag, work = std::move(work)](Worker::Job& job) -> Worker::Deliver {
        return [this, tag, deliver = work(job)] {
          succeeded(tag);
          if (deliver) deliver();
        };
      },
      failed(tag));
}

void Explorer::cancel() {
  for (const char* tag : tags) worker_.cancel(tag);
  loading_.clear();
  changed_ = true;
}

// ---- what the user does

void Explorer::change(const std::string& merge_key, const std::function<void(Document&)>& edit) {
  Document after = state_.document;
  edit(after);
  if (after == state_.document) return;
  history_.record(state_.document, merge_key, now_);
  state_.document = std::move(after);
  changed_ = true;
}

void Explorer::open_model(const fs::path& folder) {
  const fs::path path = absolute_path(folder);
  load(path, [this, path] {
    const bool first = state_.document.model.empty();
    change("", [&](Document& document) {
      document.model = path;
      document.query = document.key = std::nullopt;
      // Edits of layers and heads that this model lacks mean nothing to it.
      const ModelDims& dims = results_.model.model->config().dims;
      std::erase_if(document.edits, [&](const Intervention& edit) {
        return edit.target.layer.value_or(0) >= dims.layers || edit.target.head.value_or(0) >= dims.heads;
      });
    });
    select_strongest_ = true;
    if (first) history_.clear();  // there is nothing to go back to
  });
}

void Explorer::open_example(const std::string& name) {
  const auto folder = find_asset("examples/" + name);
  const auto text = find_asset("examples/" + name + ".txt");
  if (!folder) {
    show_message({Message::Level::error,
                  "example " + name + ": expected it among the program's assets, found nothing\n" +
                      "hint: reinstall, or set HEADSCOPE_ASSETS to the folder that holds examples/",
                  "load"});
    return;
  }
  std::string prompt;
  try {
    if (text) prompt = read_file(*text, text_limit);
  } catch (const Error& unreadable) {
    return show_message({Message::Level::error, unreadable.what(), "load"});
  }
  load(absolute_path(*folder), [this, path = absolute_path(*folder), prompt, asked = state_.document] {
    const bool first = state_.document.model.empty();
    change("", [&](Document& document) {
      if (document.text == asked.text && document.ids == asked.ids) {  // else: typed while the model was opened
        document.text = prompt;
        document.ids.clear();
      }
      document.edits.clear();
      document.query = document.key = std::nullopt;
      document.model = path;
    });
    select_strongest_ = true;
    if (first) history_.clear();  // there is nothing to go back to
  });
}

void Explorer::set_text(std::string text) {
  change("text", [&](Document& document) {
    document.text = std::move(text);
    document.ids.clear();
  });
}

void Explorer::set_ids(std::vector<std::int32_t> ids) {
  change("ids", [&](Document& document) { document.ids = std::move(ids); });
}

void Explorer::set_add_bos(std::optional<bool> add_bos) {
  change("", [&](Document& document) { document.add_bos = add_bos; });
}

void Explorer::select(HeadRef head) {
  select_strongest_ = false;
  change("select", [&](Document& document) { document.selected = head; });
  keep_inside();
}

void Explorer::pin(std::optional<Index> query, std::optional<Index> key) {
  change("pin", [&](Document& document) {
    document.query = query;
    document.key = query ? key : std::nullopt;
  });
  keep_inside();
}

void Explorer::set_temperature(double tau) {
  const HeadTarget target = target_of(state_.view.edit_scope, state_.document.selected);
  change("temperature " + text_of(target),
         [&](Document& document) { headscope::set_temperature(document.edits, target, tau); });
}

void Explorer::set_mask(const std::string& spec) {
  const HeadTarget target = target_of(state_.view.edit_scope, state_.document.selected);
  try {
    change("", [&](Document& document) { headscope::set_mask(document.edits, target, spec); });
    succeeded("mask");
  } catch (const Error& mistyped) {
    show_message({Message::Level::error, mistyped.what(), "mask"});
  }
}

void Explorer::set_edits(std::vector<Intervention> edits) {
  change("edits", [&](Document& document) { document.edits = std::move(edits); });
}

void Explorer::undo() {
  changed_ |= history_.undo(state_.document);
  forget_load();
  keep_inside();
}

void Explorer::redo() {
  changed_ |= history_.redo(state_.document);
  forget_load();
  keep_inside();
}

void Explorer::export_view(const ExportOptions& options) {
  if (!results_.run) {
    show_message({Message::Level::error, "There is nothing to export yet.", "export"});
    return;
  }
  const HeadView shown = state_.view.head_view;
  auto trace = results_.run->trace;
  if (!options.all_heads && (shown == HeadView::steps || shown == HeadView::qk)) {
    if (!results_.detail || results_.detail->of_trace != trace || results_.detail->head != state_.document.selected) {
      show_message({Message::Level::info, "The scores of this head are still being read; try again.", "export"});
      return;
    }
    trace = results_.detail->trace;
  }
  const bool rotary = results_.model.model->config().position == PositionKind::rotary;
  worker_.submit(
      "export",
      [this, options, trace, rotary, document = state_.document, view = state_.view](Worker::Job&) -> Worker::Deliver {
        const std::string written =
            export_picture(*trace, view_picture(document, view, *trace, rotary, options),
                           options.for_print ? "print" : view.theme, options.file, {{}, {}, options.dpi});
        return [this, written] { show_message({Message::Level::info, "Written: " + written, "export"}); };
      },
      failed("export"));
}

void Explorer::save_session(const fs::path& file) const {
  write_file_atomically(file, to_json(Session{state_.document, state_.view}));
}

void Explorer::open_session(const fs::path& file) {
  Session session = session_from_json(read_file(file, text_limit), file.string());
  session.document.model = find_model(session.document.model, file);
  forget_load();
  select_strongest_ = false;
  change("", [&](Document& document) { document = session.document; });
  state_.view = session.view;
  changed_ = true;
}

// ---- jobs

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
  const auto known = std::ranges::find(models_, folder, &std::pair<fs::path, LoadedModel>::first);
  if (known != models_.end()) {
    worker_.cancel("load");
    loading_.clear();
    adopt(folder, LoadedModel(known->second));
    return opened();
  }
  loading_ = folder;
  worker_.submit(
      "load",
      [this, folder, backend = backend_, opened](Worker::Job&) -> Worker::Deliver {
        return [this, folder, opened, model = load_model(folder, *backend)] {
          adopt(folder, model);
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

void Explorer::adopt(const fs::path& folder, const LoadedModel& model) {
  loading_.clear();
  std::erase_if(models_, [&](const auto& known) { return known.first == folder; });
  models_.emplace_back(folder, model);
  if (models_.size() > kept_models) models_.erase(models_.begin());
  if (results_.model_folder != folder) submitted_ = {};
  results_.model = model;
  results_.model_folder = folder;
  succeeded("load");
}

RunRequest Explorer::request() const {
  RunRequest request;
  request.model = state_.document.model;
  request.text = state_.document.ids.empty() ? state_.document.text : "";
  request.ids = state_.document.ids;
  request.add_bos = state_.document.add_bos;
  request.capture.byte_budget = options_.byte_budget;
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
  for (const char* tag : {"trace", "metrics", "detail", "effect"}) worker_.cancel(tag);
  submitted_ = {};
  results_.run.reset();
  results_.facts.reset();
  results_.detail.reset();
  results_.effect.reset();
  detail_of_.reset();
  succeeded("trace");
}

void Explorer::submit_trace(const RunRequest& wanted) {
  submitted_ = wanted;
  worker_.submit(
      "trace",
      [this, wanted, model = results_.model, backend = backend_,
       memory = memory_](Worker::Job& job) -> Worker::Deliver {
        return [this, run = jobs::trace(model, wanted, Ctx{*backend, nullptr, job.stop, &job.progress}, *memory)] {
          take_run(run);
        };
      },
      failed("trace"));
}

void Explorer::take_run(std::shared_ptr<const TracedRun> run) {
  results_.run = std::move(run);
  succeeded("trace");
  keep_inside();
  submit_metrics();
  submit_detail();
  if (any_enabled(results_.run->request.edits)) return submit_effect();
  worker_.cancel("effect");
  results_.effect.reset();
  plain_request_ = results_.run->request;
  plain_request_.edits.clear();
  plain_ = results_.run->trace;
}

void Explorer::submit_metrics() {
  worker_.submit(
      "metrics",
      [this, trace = results_.run->trace](Worker::Job& job) -> Worker::Deliver {
        return [this, facts = jobs::facts(trace, job.stop)] {
          results_.facts = facts;
          if (std::exchange(select_strongest_, false)) select_strongest();
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
        const auto before = known ? known : headscope::run(model, plain, ctx, *memory);
        return [this, plain, effect = jobs::effect(before, run->trace, job.stop)] {
          results_.effect = effect;
          plain_request_ = plain;
          plain_ = effect->before;
          succeeded("effect");
        };
      },
      failed("effect"));
}

/// What is selected and pinned stays inside the model and the text on screen. Not a step of the history.
void Explorer::keep_inside() {
  Document& document = state_.document;
  if (document.model == results_.model_folder && results_.model.model) {
    const ModelDims& dims = results_.model.model->config().dims;
    HeadRef& head = document.selected;
    head = {std::clamp(head.layer, 0, dims.layers - 1), std::clamp(head.head, 0, dims.heads - 1)};
  }
  if (results_.run && results_.run->request == submitted_ && submitted_ == request()) {
    const auto tokens = static_cast<Index>(results_.run->trace->tokens.size());
    if (document.query && (*document.query < 0 || *document.query >= tokens)) document.query.reset();
    if (!document.query || (document.key && (*document.key < 0 || *document.key >= tokens))) document.key.reset();
  }
}

/// The head that meets its class by the largest margin: something to see at once.
void Explorer::select_strongest() {
  const HeadFacts& facts = *results_.facts;
  double best = 0;
  for (std::size_t row = 0; row < facts.verdicts.size(); ++row) {
    if (facts.verdicts[row].empty()) continue;
    const HeadVerdict& verdict = facts.verdicts[row].front();
    const double margin = verdict.score / std::max(verdict.rule->at_least, 1e-9);
    if (margin <= best) continue;
    best = margin;
    state_.document.selected = {facts.trace->maps[row].layer(), facts.trace->maps[row].head()};
  }
}

}  // namespace headscope
