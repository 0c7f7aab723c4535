#pragma once
// The controller behind the window, on the UI thread: takes what the user does, keeps the state and its history, and
// turns changes into tagged jobs of one worker. Nothing here computes; frame() only hands results over and submits.
//
//   load     open a model folder                       → results().model
//   trace    run the document                          → results().run
//   metrics  every metric and class of that run        → results().facts
//   detail   the selected head in factors, its curve   → results().detail
//   effect   the run without edits, compared           → results().effect
//   losses   the logits of every position              → results().losses
//   export   the view as a file                        → state().message
//
// A newer job of a tag replaces the older one. A failed job leaves what is on screen and sets the message.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "app/state/app_state.h"
#include "app/state/history.h"
#include "app/state/results.h"
#include "app/state/session.h"
#include "app/state/view_picture.h"
#include "core/base/folder.h"
#include "core/engine/pass_memory.h"
#include "core/engine/worker.h"

namespace headscope {

class Explorer {
 public:
  struct Options {
    int threads = 0;                                 ///< of the backend; 0 = one per hardware thread
    std::function<void()> wake;                      ///< called on the worker thread when frame() has something to do
    std::size_t byte_budget = std::size_t{1} << 30;  ///< of one trace
  };
  explicit Explorer(Options options);
  ~Explorer();  ///< stops the running job and waits for it

  const AppState& state() const { return state_; }
  const Results& results() const { return results_; }
  /// What no job depends on and undo does not touch: panels write here directly.
  View& view() { return state_.view; }
  Hover& hover() { return state_.hover; }

  /// Once per frame, first thing: delivers results, submits what changed. `now` in seconds, any origin. Returns true
  /// when something on screen may have changed.
  bool frame(double now);
  /// True while a job runs or waits, or its result does.
  bool busy() const;
  struct Status {
    std::string doing;                    ///< "tracing", "" = idle
    float progress = 0;                   ///< 0 … 1
    double seconds = 0;                   ///< since the job started
    double trace_ms = 0, metrics_ms = 0;  ///< of what is on screen
    std::string backend;                  ///< "CPU f32, …"
  };
  Status status() const;
  /// What cancel() does with a job: `again` stops it and keeps its work for run_again(); `own` leaves it to who
  /// submitted it, who looks at cancels(): slices of something that goes on.
  enum class OnStop { again, own };
  /// How many threads compute (0 = one per hardware thread) and what one trace may take, from the next job on.
  void configure(int threads, std::size_t byte_budget);
  const Options& options() const { return options_; }
  /// Work for a panel, such as a picture, on the worker. A newer job of the tag replaces an older one; what fails
  /// becomes the message. `work` may be called twice: it does not use up what it captured.
  void compute(const std::string& tag, Worker::Work work, OnStop on_stop = OnStop::again);
  /// Reading and writing files for a panel, beside the worker that computes: a folder is listed while a model runs.
  void on_files(const std::string& tag, Worker::Work work);
  /// Drops the queued and stops the running job of a tag given to compute().
  void forget(const std::string& tag);
  /// For such work: one pass at a time, on the worker only.
  const std::shared_ptr<Backend>& backend() const { return backend_; }
  /// Likewise: what the last pass left.
  const std::shared_ptr<PassMemory>& memory() const { return memory_; }
  /// Stops what runs and what waits; the last good results stay.
  void cancel();
  /// How often that was asked for: whoever hands in one job after another stops when it changes.
  std::uint64_t cancels() const { return cancels_; }
  /// What is on screen is not what the document asks for, and nothing runs that would change it: it was stopped, or it
  /// failed.
  bool behind() const;
  /// The same of work given to compute(), in words ("searching the whole vocabulary"); "" = nothing was stopped.
  std::string stopped() const;
  bool was_stopped(const std::string& tag) const { return stopped_.contains(tag); }
  /// Takes up what was stopped, and what the document asks for.
  void run_again();

  // What the user does. Changes to the document are undoable.
  void open_model(const std::filesystem::path& folder);
  /// Where nothing is written yet: the bundled text of the model in this folder, or one for any model.
  void suggest_text(const std::filesystem::path& folder);
  /// A bundled model with its text: "tiny-gpt2", "tiny-llama", "induction-2l" (trained by this project), "induction"
  /// (made by hand).
  void open_example(const std::string& name = "induction");
  void set_text(std::string text);
  /// Another text with what is looked at in it: one step of undo.
  void show_text(std::string text, HeadId head, std::optional<Index> query);
  void set_ids(std::vector<std::int32_t> ids);
  void set_add_bos(std::optional<bool> add_bos);
  void select(HeadId head);
  void pin(std::optional<Index> query, std::optional<Index> key = std::nullopt);
  void unpin() { pin(std::nullopt); }
  /// For the heads that view().edit_scope means.
  void set_temperature(double tau);
  /// A spec that does not parse becomes the message.
  void set_mask(const std::string& spec);
  /// What to read of a text that is too long.
  void set_too_long(RunRequest::TooLong what);
  void set_edits(std::vector<Intervention> edits);
  void set_by_hand(MatricesByHand matrices);
  /// One weight of a row of the selected head; the others share the rest. A weight that is set already moves.
  void set_weight(Index query, Index key, double weight);
  /// Cells [query, query + side) × [key, key + side) of the selected head's mask, opened or closed.
  void paint_mask(Index query, Index key, Index side, bool visible);
  void undo();
  void redo();
  bool can_undo() const { return history_.can_undo(); }
  bool can_redo() const { return history_.can_redo(); }
  /// Every step that can be undone or redone, oldest first, in words (step_names.h); the first `steps_done()` of them
  /// have been done. go_to(n) undoes or redoes until n are.
  std::vector<std::string> steps() const;
  std::size_t steps_done() const { return history_.undoable(); }
  void go_to(std::size_t done);
  /// The slider was let go, the editor lost the focus: what comes next is a new step.
  void close_step() { history_.close_step(); }
  /// Every frame: whether a mouse button is down. What a held button does is one step.
  void hold(bool held) { history_.hold(held); }
  void show_message(Message message) { state_.message = std::move(message); }
  void dismiss_message() { state_.message.reset(); }

  /// Writes the view on screen on the worker; the message says what was written, or why not.
  void export_view(const ExportOptions& options);
  /// The same of any other picture, which `build` draws on the worker: as PNG, SVG, or its numbers as CSV.
  void export_scene(std::function<Scene(const Look&)> build, const ExportOptions& options);
  /// The same for the clipboard: its numbers as lines of cells with tabs between them, which `put` takes on this
  /// thread, or the picture, which another program holds (clipboard.h).
  enum class Copy { picture, numbers };
  using PutText = std::function<void(const std::string&)>;
  void copy_view(Copy what, double scale, PutText put);
  void copy_scene(std::function<Scene(const Look&)> build, Copy what, double scale, PutText put);
  /// Throw Error; the state is unchanged then. Opening a session is one undoable step.
  void save_session(const std::filesystem::path& file) const;
  void open_session(const std::filesystem::path& file);
  /// Who knows what was generated: asked when a session is saved. Empty = nobody.
  void set_tape_source(std::function<std::optional<TapeRecord>()> source) { tape_source_ = std::move(source); }
  /// The generated text of the session that was opened, once.
  std::optional<TapeRecord> take_opened_tape() { return std::exchange(opened_tape_, std::nullopt); }
  /// Who knows what the window shows around the document: likewise.
  void set_window_source(std::function<SessionWindow()> source) { window_source_ = std::move(source); }
  /// That of the session that was opened, once.
  std::optional<SessionWindow> take_opened_window() { return std::exchange(opened_window_, std::nullopt); }
  /// The same beside the UI thread: the message says what became of it.
  void save_session_soon(const std::filesystem::path& file);
  void open_session_soon(const std::filesystem::path& file);
  /// Opens what was kept of an earlier start: it stays unsaved.
  void take_up_session_soon(const std::filesystem::path& file);
  /// What save_session() would write now.
  Session session() const;
  /// What was made here and is in no session file, in words: "2 edits and a text"; "" = nothing.
  std::string unsaved() const;
  /// The text and the edits as they are now are nothing that could be lost.
  void count_as_saved() { count_as_saved(session()); }

 private:
  void change(const std::string& merge_key, const std::function<void(Document&)>& edit);
  void load(const std::filesystem::path& folder, std::function<void()> opened);
  void forget_load();
  struct Opened {
    std::filesystem::path folder;
    FilesStamp files;  // as they were when the model was read
    std::uint64_t reading = 0;
    LoadedModel model;
  };
  void adopt(Opened opened);
  void submit_changes();
  void submit_trace(const RunRequest& request);
  void submit_metrics();
  void submit_detail();
  void submit_effect();
  void submit_losses();
  /// The head on screen and how it is drawn, for files and the clipboard; nullopt and a message where there is none.
  struct ViewSource;
  std::optional<ViewSource> view_source(const ExportOptions& options);
  void take_run(std::shared_ptr<const TracedRun> run);
  void drop_results();
  void succeeded(const std::string& tag);
  Worker::Failed failed(const std::string& tag);
  RunRequest request() const;
  void keep_inside();
  void show_session(const Session& session);
  void count_as_saved(const Session& session);

  Options options_;
  AppState state_;
  History history_;
  Results results_;
  std::shared_ptr<Backend> backend_;         // used by jobs only
  std::shared_ptr<PassMemory> memory_;       // likewise
  std::filesystem::path loading_, refused_;  // folder being opened; the document's, when it cannot be
  std::vector<Opened> models_;               // lately, newest last
  std::uint64_t readings_ = 0;
  bool select_telling_ = false;  // when the next facts arrive: a model was opened, nobody has chosen a head yet
  bool changed_ = false;
  std::function<std::optional<TapeRecord>()> tape_source_;
  std::optional<TapeRecord> opened_tape_;
  std::function<SessionWindow()> window_source_;
  std::optional<SessionWindow> opened_window_;
  struct Work {  // what unsaved() compares with
    std::string text;
    std::vector<std::int32_t> ids;
    std::vector<Intervention> edits;
    std::optional<TapeRecord> tape;
  };
  Work saved_;
  std::uint64_t cancels_ = 0;
  std::map<std::string, Worker::Work> computing_, stopped_;  // of compute(), by tag: under way; stopped by the user
  double now_ = 0;
  RunRequest submitted_;                    // the trace job's last
  std::shared_ptr<const Trace> detail_of_;  // what the detail job was last submitted for …
  HeadId detail_head_;                      // … and the head
  RunRequest plain_request_;                // without edits, with its trace: what effects are measured against
  std::shared_ptr<const Trace> plain_;
  std::vector<double> plain_losses_;  // its losses once they are known
  Worker files_;                      // reads and writes
  Worker worker_;                     // both last: its jobs end before anything they deliver to goes away
};

}  // namespace headscope
