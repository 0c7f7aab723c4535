#include "app/state/capture_controller.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "app/state/jobs.h"
#include "core/attention/described_rule.h"
#include "core/base/error.h"

namespace headscope {

namespace fs = std::filesystem;

void CaptureController::open(const fs::path& place) {
  std::error_code ignored;
  const fs::path path = fs::absolute(place, ignored).lexically_normal();
  const bool folder = fs::is_directory(path, ignored);
  folder_ = folder ? path : path.parent_path();
  if (!folder_.has_filename()) folder_ = folder_.parent_path();
  watch_ = std::make_shared<CaptureWatch>(folder_, parse_described_rule);
  files_.clear();
  pinned_ = !folder;
  looked_ = false;
  model_before_ = editor_.document().model;
  if (!folder) choose(path);
}

void CaptureController::choose(const fs::path& file) {
  pinned_ = true;
  run_.open_model(file, [](Document& document) {
    document.text.clear();
    document.ids.clear();
    document.edits.clear();
  });
  model_before_ = editor_.document().model;
}

void CaptureController::follow() {
  pinned_ = false;
  const auto newest = std::ranges::find(files_, CaptureWatch::State::ready, &CaptureWatch::File::state);
  if (newest == files_.end() || newest->path == editor_.document().model) return;
  choose(newest->path);
  pinned_ = false;
}

void CaptureController::frame(double now) {
  if (!watch_) return;
  const fs::path& shown = editor_.document().model;
  // A model was opened, or undo went to one: this folder is left.
  if (shown != model_before_ && shown.parent_path() != folder_) {
    watch_.reset();
    files_.clear();
    return;
  }
  if (!looking_ && (!looked_ || now - last_ >= every)) look(now);
}

void CaptureController::look(double now) {
  looking_ = looked_ = true;
  last_ = now;
  jobs_.on_files(
      "captures",
      [this, now, watch = watch_, pinned = pinned_,
       shown = editor_.document().model](Worker::Job& job) -> Worker::Deliver {
        fs::path file;
        std::shared_ptr<const Trace> newest;
        std::shared_ptr<const TracedRun> run;
        std::string trouble;
        try {
          watch->look(
              now,
              [&](const CaptureWatch::File& found, const std::shared_ptr<const Trace>& trace) {
                // Oldest first: the last is the newest. What is pinned is shown again when it has changed.
                if (pinned && found.path != shown) return;
                file = found.path;
                newest = trace;
              },
              job.stop);
          if (newest) run = jobs::captured(newest, file);
        } catch (const Cancelled&) {
          throw;
        } catch (const std::exception& unreadable) {
          trouble = unreadable.what();
        }
        return [this, watch, file, run, trouble, files = watch->files()] {
          looking_ = false;
          if (watch != watch_) return;
          files_ = files;
          if (!trouble.empty()) {
            watch_.reset();
            return jobs_.show({Message::Level::error, trouble, ""});
          }
          if (!run) return;
          // An older file that was slow to be written does not push a newer one aside.
          const auto first = std::ranges::find(files_, CaptureWatch::State::ready, &CaptureWatch::File::state);
          const bool wanted = pinned_ ? file == editor_.document().model : first != files_.end() && file == first->path;
          if (wanted) show(file, run);
        };
      });
}

void CaptureController::show(const fs::path& file, std::shared_ptr<const TracedRun> run) {
  run_.show_capture(file, std::move(run));
  model_before_ = file;
}

bool leads_to_captures(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return fs::is_regular_file(path, ignored) && holds_trace(path);
  if (fs::exists(path / "config.json", ignored)) return false;
  for (fs::directory_iterator at(path, ignored), end; !ignored && at != end; at.increment(ignored))
    if (may_be_trace(at->path()) && holds_trace(at->path())) return true;
  return false;
}

}  // namespace headscope
