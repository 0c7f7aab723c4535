#pragma once
// A folder of captures that is watched while a script writes into it: what is there, and which one is on screen: the
// newest, until somebody chooses one. Thread rule: the UI thread; the folder is read beside it.

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/state/document_editor.h"
#include "app/state/job_runner.h"
#include "app/state/run_controller.h"
#include "core/io/capture_watch.h"

namespace headscope {

class CaptureController {
 public:
  /// All outlive this.
  CaptureController(JobRunner& jobs, DocumentEditor& editor, RunController& run)
      : jobs_(jobs), editor_(editor), run_(run) {}

  double every = 0.7;  ///< seconds between two looks

  /// A folder: its newest capture, and every newer one as it comes. A file: it stays on screen, its folder is watched.
  void open(const std::filesystem::path& place);
  /// One of files().
  void choose(const std::filesystem::path& file);
  /// The newest, from now on.
  void follow();
  /// What is on screen, whatever comes.
  void stay() { pinned_ = true; }
  bool following() const { return !pinned_; }

  /// Whether a folder is watched. It is until something else than a capture of it is opened.
  bool watching() const { return watch_ != nullptr; }
  const std::filesystem::path& folder() const { return folder_; }
  /// The last written first.
  const std::vector<CaptureWatch::File>& files() const { return files_; }

  /// Once per frame. `now` in seconds, any origin.
  void frame(double now);

 private:
  void look(double now);
  void show(const std::filesystem::path& file, std::shared_ptr<const TracedRun> run);

  JobRunner& jobs_;
  DocumentEditor& editor_;
  RunController& run_;
  std::shared_ptr<CaptureWatch> watch_;  // used by one job at a time
  std::filesystem::path folder_, model_before_;
  std::vector<CaptureWatch::File> files_;
  bool pinned_ = false, looking_ = false, looked_ = false;
  double last_ = 0;
};

/// Whether a path leads to captured attention: a file that holds a trace, or a folder without a model that holds some.
/// Reads the heads of files.
bool leads_to_captures(const std::filesystem::path& path);

}  // namespace headscope
