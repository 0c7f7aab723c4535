#pragma once
// What stands behind the window, put together: jobs, document, run and files. Others are given the parts that they
// need. Thread rule: the UI thread.

#include <cstddef>
#include <functional>

#include "app/state/capture_controller.h"
#include "app/state/certificate_controller.h"
#include "app/state/document_editor.h"
#include "app/state/job_runner.h"
#include "app/state/lesson_controller.h"
#include "app/state/run_controller.h"
#include "app/state/scene_list.h"
#include "app/state/session_files.h"

namespace headscope {

struct Explorer {
  struct Options {
    int threads = 0;                                 ///< of the backend; 0 = one per hardware thread
    std::function<void()> wake;                      ///< called on a worker thread when frame() has something to do
    std::size_t byte_budget = std::size_t{1} << 30;  ///< of one trace
    DeviceChoice device = {};                        ///< that computes
    Devices devices = {};                            ///< that there are
  };
  explicit Explorer(const Options& options)
      : jobs(options.threads, options.wake, options.device, options.devices),
        run(jobs, editor, options.byte_budget),
        files(jobs, editor, run),
        certificates(jobs, run),
        captures(jobs, editor, run),
        lessons(jobs, editor, run, files),
        scenes(jobs, lessons) {
    files.set_model_note_source([this] { return certificates.note(); });
  }

  /// Once per frame, first thing: delivers results, hands in what changed. `now` in seconds, any origin. Returns true
  /// when something on screen may have changed.
  bool frame(double now) {
    const bool edited = editor.frame(now), delivered = jobs.frame();
    captures.frame(now);
    run.frame(now);
    certificates.frame(now);
    lessons.frame();
    return edited || delivered;
  }
  const AppState& state() const { return editor.state(); }
  const Results& results() const { return run.results(); }

  DocumentEditor editor;
  JobRunner jobs;
  RunController run;
  SessionFiles files;
  CertificateController certificates;
  CaptureController captures;
  LessonController lessons;
  SceneList scenes;
};

}  // namespace headscope
