#pragma once
// The model that is open, the run of the document on it, and what follows from the run. Nothing here computes: frame()
// hands in a job for whatever the document asks for and is not on screen.
//
//   load     open a model folder                       → results().model
//   trace    run the document                          → results().run
//   metrics  every metric and class of that run        → results().facts
//   detail   the selected head in factors, its curve   → results().detail
//   effect   the run without edits, compared           → results().effect
//   losses   the logits of every position              → results().losses
//   write    what an encoder-decoder says of its source → the document's text
//
// A newer job of a tag replaces the older one. A failed job leaves what is on screen and sets the message. Thread rule:
// the UI thread.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/state/document_editor.h"
#include "app/state/job_runner.h"
#include "app/state/results.h"
#include "core/base/folder.h"

namespace headscope {

class RunController {
 public:
  /// `byte_budget` of one trace. Both outlive this.
  RunController(JobRunner& jobs, DocumentEditor& editor, std::size_t byte_budget);
  RunController(const RunController&) = delete;
  RunController& operator=(const RunController&) = delete;

  const Results& results() const { return results_; }
  /// Once per frame, after JobRunner::frame(): hands in what the document asks for.
  void frame(double now);

  /// Opens a model's folder; once it is read, it becomes the document's, with what `further` changes: one step of undo.
  /// `opened` is told then.
  void open_model(const std::filesystem::path& folder, std::function<void(Document&)> further = {},
                  std::function<void()> opened = {});
  /// What a watched folder brought: shown at once, not a step of undo.
  void show_capture(const std::filesystem::path& file, std::shared_ptr<const TracedRun> run);
  /// What is on screen is not what the document asks for, and nothing runs that would change it: it was stopped, or it
  /// failed.
  bool behind() const;
  /// An encoder-decoder writes what it makes of the source, with the edits; it becomes the text, as a step of undo.
  void write_target();
  /// Another sound, for a model that hears: what it writes of it becomes the text.
  void hear(const std::filesystem::path& sound);
  /// softer_head() of the model that was opened last, while nobody has chosen a head since.
  std::optional<HeadId> softer_head() const;
  /// Takes up what was stopped, and what the document asks for.
  void run_again();
  /// From the next run on.
  void set_byte_budget(std::size_t bytes) { byte_budget_ = bytes; }

  /// The document has what the open model reads.
  bool has_input() const;
  /// What the document asks of the open model.
  RunRequest request() const;

 private:
  struct Opened {
    std::filesystem::path folder;
    FilesStamp files;  // as they were when the model was read
    std::uint64_t reading = 0;
    DeviceChoice device;
    LoadedModel model;
    std::shared_ptr<const TracedRun> capture;  // in place of a model
  };
  void load(const std::filesystem::path& folder, std::function<void()> opened);
  void forget_load();
  void adopt(Opened opened);
  void submit_changes();
  void submit_trace(const RunRequest& request);
  /// Metrics, the head taken apart, what edits changed, losses.
  void ask_what_follows();
  void submit_metrics();
  void submit_detail();
  void submit_effect();
  void submit_losses();
  void take_run(std::shared_ptr<const TracedRun> run);
  void drop_results();
  bool reads_pictures() const;  // the open model
  void keep_inside();
  /// Of the model, or of the capture in its place.
  const ModelDims& opened_dims(Stack stack) const;
  bool translates() const;
  /// The open model is what the document names, in the form that the device reads fastest.
  bool at_hand() const;
  Stack stack() const { return editor_.document().stack; }

  JobRunner& jobs_;
  DocumentEditor& editor_;
  std::size_t byte_budget_;
  Results results_;
  std::filesystem::path loading_, refused_;  // folder being opened; the document's, when it cannot be …
  DeviceChoice refused_on_;                  // … for this device
  bool target_owed_ = false;                 // its card failed: asked again, once the model is opened for the processor
  std::vector<Opened> models_;               // lately, newest last
  std::uint64_t readings_ = 0;
  /// When the next facts arrive, a telling head is chosen: a model was opened, and nobody has chosen a head since.
  std::optional<std::uint64_t> choices_;
  std::optional<std::pair<HeadId, std::uint64_t>> softer_;  // and how many choices there had been
  RunRequest submitted_;                                    // the trace job's last
  double now_ = 0;
  bool owed_ = false;                       // what is asked of a run has not all come …
  std::optional<double> overtaken_since_;   // … and has given way to newer runs from then on
  std::shared_ptr<const Trace> detail_of_;  // what the detail job was last submitted for …
  HeadId detail_head_;                      // … and the head
  RunRequest plain_request_;                // without edits, with its trace: what effects are measured against
  std::shared_ptr<const Trace> plain_;
  std::vector<double> plain_losses_;  // its losses once they are known
};

}  // namespace headscope
