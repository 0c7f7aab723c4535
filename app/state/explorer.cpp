#include "app/state/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/assets.h"
#include "app/state/session.h"
#include "app/state/step_names.h"
#include "core/attention/masks.h"
#include "core/base/error.h"
#include "core/base/file.h"
#include "core/edits/weight_edit.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
constexpr const char* tags[] = {"load", "trace", "metrics", "detail", "effect", "losses", "export"};
constexpr std::size_t text_limit = std::size_t{16} << 20;

/// What a job is doing, by the beginning of its tag; of several that fit, the first.
std::string words_for(std::string_view tag) {
  constexpr std::pair<std::string_view, const char*> words[] = {
      {"load", "opening the model"},
      {"trace", "running the model"},
      {"metrics", "measuring the heads"},
      {"detail", "taking the head apart"},
      {"effect", "comparing with the unedited run"},
      {"losses", "computing the losses"},
      {"export", "writing the file"},
      {"training save", "saving the model"},
      {"training", "training"},
      {"sweep corpus", "reading the corpus"},
      {"corpus", "reading the corpus"},
      {"generation study", "measuring generation"},
      {"generation", "writing"},
      {"comparison", "comparing two runs"},
      {"sweep mechanism", "measuring times"},
      {"sweep", "sweeping"},
      {"scene.", "drawing"},
      {"read.circuits.full", "searching the whole vocabulary"},
      {"read.prefixes", "running the beginnings"},
      {"read.alternatives", "moving the weights"},
      {"read.", "reading the run"},
      {"singular", "taking singular values"},
      {"detector", "looking for the rule"},
      {"masks.", "measuring the mask"},
      {"mechanism", "computing the mechanism"},
      {"positions.", "comparing positions"},
      {"edit pairs", "pairing the texts"},
  };
  for (const auto& [beginning, said] : words)
    if (tag.starts_with(beginning)) return said;
  return "";
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
      files_(options_.wake),
      worker_(options_.wake) {}

Explorer::~Explorer() = default;

bool Explorer::frame(double now) {
  now_ = now;
  const int delivered = worker_.drain() + files_.drain();
  keep_inside();  // first: what is submitted shall be about a head that there is
  submit_changes();
  keep_inside();  // a model that was at hand may just have been adopted
  return std::exchange(changed_, false) || delivered > 0;
}

bool Explorer::busy() const {
  const auto works = [](const Worker::Status& status) {
    return !status.tag.empty() || status.queued > 0 || status.undelivered > 0;
  };
  return works(worker_.status()) || works(files_.status());
}

Explorer::Status Explorer::status() const {
  const Worker::Status job = worker_.status();
  Status status;
  status.doing = words_for(job.tag);
  if (job.tag == "load" && !loading_.empty()) status.doing = "opening " + loading_.filename().string();
  status.progress = job.progress;
  status.seconds = job.seconds;
  if (results_.run) status.trace_ms = results_.run->trace->milliseconds;
  if (results_.facts) status.metrics_ms = results_.facts->milliseconds;
  status.backend = backend_->name();
  return status;
}

void Explorer::compute(const std::string& tag, Worker::Work work, OnStop on_stop) {
  stopped_.erase(tag);
  if (on_stop == OnStop::again)
    computing_[tag] = work;
  else
    computing_.erase(tag);
  worker_.submit(
      tag,
      [this, tag, work = std::move(work)](Worker::Job& job) -> Worker::Deliver {
        return [this, tag, deliver = work(job)] {
          computing_.erase(tag);
          succeeded(tag);
          if (deliver) deliver();
        };
      },
      [this, tag, say = failed(tag)](const std::string& message) {
        computing_.erase(tag);
        say(message);
      });
}

void Explorer::forget(const std::string& tag) {
  computing_.erase(tag);
  stopped_.erase(tag);
  worker_.cancel(tag);
}

void Explorer::on_files(const std::string& tag, Worker::Work work) {
  files_.submit(tag, std::move(work), failed(tag));
}

void Explorer::cancel() {
  for (const char* tag : tags) worker_.cancel(tag);
  for (const auto& [tag, work] : computing_) worker_.cancel(tag);
  stopped_.merge(computing_);  // which compute() has kept apart
  computing_.clear();
  if (loading_ == state_.document.model) refused_ = loading_;  // or the next frame would begin once more
  loading_.clear();
  ++cancels_;
  changed_ = true;
}

bool Explorer::behind() const {
  const Document& document = state_.document;
  if (busy() || document.model.empty()) return false;
  if (document.model != results_.model_folder) return true;
  if (state_.too_long || (document.text.empty() && document.ids.empty())) return false;
  const bool current = results_.run && results_.run->request == request();
  return !current || !results_.facts || results_.facts->trace != results_.run->trace;
}

std::string Explorer::stopped() const {
  if (stopped_.empty()) return "";
  const std::string words = words_for(stopped_.begin()->first);
  return stopped_.size() == 1 ? words : fmt::format("{} and {} more", words, stopped_.size() - 1);
}

void Explorer::run_again() {
  if (behind()) {
    refused_.clear();
    submitted_ = {};
  } else if (!busy() && results_.run && !results_.current_losses()) {
    submit_losses();
  }
  for (auto& [tag, work] : std::exchange(stopped_, {})) compute(tag, std::move(work));
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
    select_telling_ = true;
    if (first) history_.clear();  // there is nothing to go back to
  });
}

void Explorer::suggest_text(const fs::path& folder) {
  if (!state_.document.text.empty() || !state_.document.ids.empty()) return;
  const fs::path path = absolute_path(folder / "").parent_path();  // with or without a slash at its end
  const std::string name = path.filename().string();
  const auto bundled = find_bundled_model(name);
  std::error_code missing;
  const bool own = bundled && fs::equivalent(*bundled, path, missing);
  auto text = own ? find_asset("examples/" + name + ".txt") : std::nullopt;
  if (!text) text = find_asset("examples/any-model.txt");
  try {
    if (text) set_text(read_file(*text, text_limit));
    count_as_saved();
  } catch (const Error& unreadable) {
    show_message({Message::Level::error, unreadable.what(), "load"});
  }
}

void Explorer::open_example(const std::string& name) {
  const auto folder = find_bundled_model(name);
  const auto text = find_asset("examples/" + name + ".txt");
  if (!folder) {
    show_message({Message::Level::error,
                  "model " + name + ": expected it among the program's bundled models, found nothing\n" +
                      "hint: reinstall, or set HEADSCOPE_ASSETS to the folder that holds examples/, beside models/",
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
    if (state_.document.text == prompt) count_as_saved();
    select_telling_ = true;
    if (first) history_.clear();  // there is nothing to go back to
  });
}

void Explorer::set_text(std::string text) {
  change("text", [&](Document& document) {
    document.text = std::move(text);
    document.ids.clear();
  });
}

void Explorer::show_text(std::string text, HeadId head, std::optional<Index> query) {
  select_telling_ = false;
  change("", [&](Document& document) {
    document.text = std::move(text);
    document.ids.clear();
    document.selected = head;
    document.query = query;
    document.key.reset();
  });
  keep_inside();
}

void Explorer::set_ids(std::vector<std::int32_t> ids) {
  change("ids", [&](Document& document) { document.ids = std::move(ids); });
}

void Explorer::set_add_bos(std::optional<bool> add_bos) {
  change("", [&](Document& document) { document.add_bos = add_bos; });
}

void Explorer::select(HeadId head) {
  select_telling_ = false;
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

void Explorer::set_too_long(RunRequest::TooLong what) {
  change("", [&](Document& document) { document.too_long = what; });
}

void Explorer::set_edits(std::vector<Intervention> edits) {
  change("edits", [&](Document& document) { document.edits = std::move(edits); });
}

void Explorer::set_by_hand(MatricesByHand matrices) {
  change("by hand",
         [&](Document& document) { document.by_hand = std::make_shared<const MatricesByHand>(std::move(matrices)); });
}

void Explorer::set_weight(Index query, Index key, double weight) {
  const HeadId head = state_.document.selected;
  const SetWeight action{static_cast<int>(query), static_cast<int>(key), std::clamp(weight, 0.0, 1.0)};
  change(fmt::format("weight {}.{} {} {}", head.layer, head.head, query, key), [&](Document& document) {
    const HeadTarget target{head.layer, head.head};
    for (Intervention& edit : document.edits)
      if (const auto* set = edit.action.as<SetWeight>();
          set && edit.enabled && edit.target == target && set->query == action.query && set->key == action.key) {
        edit.action = action;
        return;
      }
    document.edits.push_back({target, action});
  });
}

void Explorer::paint_mask(Index query, Index key, Index side, bool visible) {
  if (!results_.run) return;
  const HeadId head = state_.document.selected;
  const auto tokens = static_cast<Index>(results_.run->trace->tokens.size());
  std::string spec = mask_of(state_.document.edits, head);
  if (spec.empty()) spec = "causal";
  try {
    std::vector<MapCell> cells;
    for (Index q = query; q < std::min(query + side, tokens); ++q)
      for (Index k = key; k < std::min(key + side, tokens); ++k) cells.push_back({q, k});
    spec = painted_mask(spec, cells, visible, tokens);
    change("paint", [&](Document& document) {
      headscope::set_mask(document.edits, {head.layer, head.head}, spec == "causal" ? "" : spec);
    });
    succeeded("mask");
  } catch (const Error& refused) {
    show_message({Message::Level::error, refused.what(), "mask"});
  }
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

std::vector<std::string> Explorer::steps() const {
  const auto documents = history_.documents(state_.document);
  std::vector<std::string> names;
  for (std::size_t i = 1; i < documents.size(); ++i) names.push_back(step_name(*documents[i - 1], *documents[i]));
  return names;
}

void Explorer::go_to(std::size_t done) {
  while (history_.undoable() > done && history_.undo(state_.document)) changed_ = true;
  while (history_.undoable() < done && history_.redo(state_.document)) changed_ = true;
  forget_load();
  keep_inside();
}

void Explorer::configure(int threads, std::size_t byte_budget) {
  if (threads != options_.threads) {
    options_.threads = threads;
    backend_ = std::make_shared<Backend>(threads);  // what runs keeps the one it was given
    memory_ = std::make_shared<PassMemory>();
    changed_ = true;
  }
  if (byte_budget != options_.byte_budget) {
    options_.byte_budget = byte_budget;
    changed_ = true;  // the request is another one: it runs again
  }
}

void Explorer::save_session(const fs::path& file) const {
  write_file_atomically(file, to_json(session()));
}

Session Explorer::session() const {
  Session session{state_.document, state_.view, tape_source_ ? tape_source_() : std::nullopt,
                  window_source_ ? window_source_() : SessionWindow{}};
  if (session.tape && session.tape->prompt.model != state_.document.model) session.tape.reset();  // of another model
  return session;
}

void Explorer::save_session_soon(const fs::path& file) {
  on_files("session", [this, file, session = session()](Worker::Job&) -> Worker::Deliver {
    write_file_atomically(file, to_json(session));
    return [this, file, session] {
      count_as_saved(session);
      show_message({Message::Level::info, "Saved " + file.string(), "session"});
    };
  });
}

void Explorer::count_as_saved(const Session& session) {
  saved_ = {session.document.text, session.document.ids, session.document.edits, session.tape};
}

std::string Explorer::unsaved() const {
  const Document& document = state_.document;
  std::vector<std::string> parts;
  if (!document.edits.empty() && document.edits != saved_.edits)
    parts.push_back(document.edits.size() == 1 ? "an edit" : fmt::format("{} edits", document.edits.size()));
  const bool empty = document.text.empty() && document.ids.empty();
  if (!empty && (document.text != saved_.text || document.ids != saved_.ids)) parts.emplace_back("a text");
  if (const auto tape = session().tape; tape && (!saved_.tape || tape->branches != saved_.tape->branches))
    parts.emplace_back("what the model wrote");
  std::string words;
  for (std::size_t i = 0; i < parts.size(); ++i)
    words += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
  return words;
}

namespace {
Session read_session(const fs::path& file) {
  Session session = session_from_json(read_file(file, text_limit), file.string());
  session.document.model = find_model(session.document.model, file);
  if (session.tape) session.tape->prompt.model = session.document.model;
  return session;
}
}  // namespace

void Explorer::open_session_soon(const fs::path& file) {
  on_files("session", [this, file](Worker::Job&) -> Worker::Deliver {
    return [this, read = read_session(file)] {
      succeeded("session");
      show_session(read);
    };
  });
}

void Explorer::take_up_session_soon(const fs::path& file) {
  on_files("session", [this, file](Worker::Job&) -> Worker::Deliver {
    return [this, read = read_session(file)] {
      succeeded("session");
      const Work before = saved_;
      show_session(read);
      saved_ = before;
    };
  });
}

void Explorer::open_session(const fs::path& file) {
  show_session(read_session(file));
}

void Explorer::show_session(const Session& session) {
  forget_load();
  select_telling_ = false;
  change("", [&](Document& document) {
    const auto by_hand = document.by_hand;  // a file says nothing about it
    document = session.document;
    document.by_hand = by_hand;
  });
  state_.view = session.view;
  opened_tape_ = session.tape;
  opened_window_ = session.window;
  count_as_saved(session);
  changed_ = true;
}

/// What is selected and pinned stays inside the model and the text on screen. Not a step of the history.
void Explorer::keep_inside() {
  Document& document = state_.document;
  if (document.model == results_.model_folder && results_.model.model) {
    const ModelDims& dims = results_.model.model->config().dims;
    HeadId& head = document.selected;
    head = {std::clamp(head.layer, 0, dims.layers - 1), std::clamp(head.head, 0, dims.heads - 1)};
  }
  if (results_.run && results_.run->request == submitted_ && submitted_ == request()) {
    const auto tokens = static_cast<Index>(results_.run->trace->tokens.size());
    if (document.query && (*document.query < 0 || *document.query >= tokens)) document.query.reset();
    if (!document.query || (document.key && (*document.key < 0 || *document.key >= tokens))) document.key.reset();
  }
}

}  // namespace headscope
