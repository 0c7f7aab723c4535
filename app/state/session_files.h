#pragma once
// Files of the user's work: sessions, what of it is in none, and the bundled examples to begin with. Thread rule: the
// UI thread.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "app/state/document_editor.h"
#include "app/state/job_runner.h"
#include "app/state/run_controller.h"
#include "app/state/session.h"

namespace headscope {

class SessionFiles {
 public:
  /// All outlive this.
  SessionFiles(JobRunner& jobs, DocumentEditor& editor, RunController& run) : jobs_(jobs), editor_(editor), run_(run) {}

  /// A bundled model with its text: "everyday-gpt2", "tiny-gpt2", "tiny-llama", "induction-2l" (trained by this
  /// project), "induction" (made by hand).
  void open_example(const std::string& name = "induction") { open_example(name, name); }
  /// With the text examples/TEXT.txt.
  void open_example(const std::string& name, const std::string& text);
  /// Where nothing is written yet: the bundled text of the model in this folder, or one for any model.
  void suggest_text(const std::filesystem::path& folder);

  /// What a session file would hold now.
  Session session() const;
  /// Throw Error; the state is unchanged then. Opening a session, or a picture's, is one undoable step.
  void save(const std::filesystem::path& file) const;
  void open(const std::filesystem::path& file);
  /// The same beside the UI thread: the message says what became of it.
  void save_soon(const std::filesystem::path& file);
  void open_soon(const std::filesystem::path& file);
  /// The session that a picture's file remembers (picture_recipe.h); `plain`, on this thread, where it remembers
  /// nothing.
  void open_picture_soon(const std::filesystem::path& file, std::function<void()> plain);
  /// Opens what was kept of an earlier start: it stays unsaved.
  void take_up_soon(const std::filesystem::path& file);
  /// What was made here and is in no session file, in words: "2 edits and a text"; "" = nothing.
  std::string unsaved() const;
  /// Shows what is not the user's, a step of a lesson: what is the user's is set aside before the first one, stays
  /// unsaved where it was, and comes back with take_back(). Both are steps that can be undone.
  /// The window's theme and widths stay as they are. A session that is opened meanwhile ends that, as any document that
  /// is opened takes the place of the one before.
  void show_aside(Session session);
  void take_back();
  bool aside() const { return aside_.has_value(); }
  /// What is the user's own: session(), or what was set aside.
  Session own() const { return aside_ ? aside_->session : session(); }
  /// The text and the edits as they are now are nothing that could be lost.
  void count_as_saved() { count_as_saved(session()); }

  /// Who knows what was generated: asked when a session is saved. Empty = nobody.
  void set_transcript_source(std::function<std::optional<TranscriptRecord>()> source) {
    transcript_source_ = std::move(source);
  }
  /// The generated text of the session that was opened, once.
  std::optional<TranscriptRecord> take_opened_transcript() { return std::exchange(opened_transcript_, std::nullopt); }
  /// Who knows what the window shows around the document: likewise.
  void set_window_source(std::function<SessionWindow()> source) { window_source_ = std::move(source); }
  /// Who knows how the model was checked: likewise.
  void set_model_note_source(std::function<std::string()> source) { model_note_source_ = std::move(source); }
  /// What the session that was opened last says of its model; "" = nothing, or none was opened.
  const std::string& opened_model_note() const { return opened_model_note_; }
  /// That of the session that was opened, once.
  std::optional<SessionWindow> take_opened_window() { return std::exchange(opened_window_, std::nullopt); }

 private:
  void show(const Session& session);
  void show_of_file(Session session);
  void count_as_saved(const Session& session);

  JobRunner& jobs_;
  DocumentEditor& editor_;
  RunController& run_;
  std::function<std::optional<TranscriptRecord>()> transcript_source_;
  std::optional<TranscriptRecord> opened_transcript_;
  std::function<SessionWindow()> window_source_;
  std::optional<SessionWindow> opened_window_;
  std::function<std::string()> model_note_source_;
  std::string opened_model_note_;
  struct Work {  // what unsaved() compares with
    std::string text;
    std::vector<std::int32_t> ids;
    std::vector<Intervention> edits;
    std::optional<TranscriptRecord> transcript;
  };
  Work saved_;
  struct Aside {
    Session session;
    Work saved;
    std::string unsaved;  // in words
  };
  std::optional<Aside> aside_;
};

}  // namespace headscope
