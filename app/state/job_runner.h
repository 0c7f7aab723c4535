#pragma once
// Work beside the UI thread: jobs with a tag and words for the status line, what was stopped and can be run again, and
// the one message of what failed. Where the card fails that computes now, the processor takes over, which is that
// message: who asked is told as of any failure, and asks again. Computes on one worker, one job at a time; reads and
// writes files on another, so that a folder is listed while a model runs; fetches on a third; and does aside, on a
// fourth, what nobody waits for. Knows nothing of what the jobs are about. Thread rule: the UI thread.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/base/words.h"
#include "core/cuda/device_choice.h"
#include "core/run/worker.h"

namespace headscope {

class Backend;
class PassMemory;

/// One message at a time; a newer one takes its place.
struct Message {
  enum class Level { info, error } level = Level::info;
  std::string text;    ///< an Error's hint stands on a line of its own
  std::string tag;     ///< of the job that failed; its next success takes the message away. "" = stays until dismissed
  Worded worded = {};  ///< what `text` is made of where it is said in the language of the window; else empty
};

struct JobName {
  std::string tag;    ///< a newer job of the tag replaces an older one
  std::string words;  ///< for the status line while it runs: "drawing"
  /// What nobody waits for: beside the other jobs, which need not wait for it either. It neither shows in the status
  /// line nor is stopped with them, and must not use their backend.
  bool aside = false;
};

class JobRunner {
 public:
  /// `threads` of the backend, 0 = one per hardware thread. `wake` is called on a worker thread when frame() has
  /// something to do.
  JobRunner(int threads, const std::function<void()>& wake, const DeviceChoice& device = {}, Devices devices = {});
  ~JobRunner();  ///< stops the running job and waits for it
  JobRunner(const JobRunner&) = delete;
  JobRunner& operator=(const JobRunner&) = delete;

  /// What stop() does with a job: `again` stops it and keeps its work for run_again(); `drop` stops it for good; `own`
  /// leaves it to who submitted it, who looks at stops(): slices of something that goes on.
  enum class OnStop { again, drop, own };
  /// What fails becomes the message. `work` may be called twice: it does not use up what it captured. `gave_up` is told
  /// on this thread when it failed, or was stopped for good. `on`: what it computes with, backend() where none is
  /// named; a card that fails and is no longer that one is nobody's loss but the job's.
  void submit(const JobName& job, Worker::Work work, OnStop on_stop = OnStop::again, std::function<void()> gave_up = {},
              std::shared_ptr<Backend> on = {});
  /// Reading and writing files, beside the worker that computes. `gave_up` is told on this thread when it failed.
  void on_files(const std::string& tag, Worker::Work work, std::function<void()> gave_up = {});
  /// What uses the network and may take hours, beside both: it is not what busy(), status() and stop() speak of, and no
  /// failure of it becomes the message.
  void on_network(const std::string& tag, Worker::Work work);
  void stop_network(const std::string& tag) { network_.cancel(tag); }
  /// Drops the queued and stops the running job of a tag.
  void forget(const std::string& tag);

  /// Once per frame, first thing: delivers what is done. True when something on screen may have changed.
  bool frame();
  /// True while a job runs or waits, or its result does.
  bool busy() const;
  /// The same but for slices of what goes on (OnStop::own): a training, a corpus.
  bool settling() const;
  struct Status {
    std::string doing;   ///< "running the model", "" = idle
    float progress = 0;  ///< 0 … 1
    double seconds = 0;  ///< since the job started
  };
  Status status() const;
  /// Of the job that runs aside; "" = none does, none waits, and no result of one does.
  Status aside() const;

  /// Stops what runs and what waits; the last good results stay.
  void stop();
  /// How often that was asked for: whoever hands in one job after another stops when it changes.
  std::uint64_t stops() const { return stops_; }
  /// What can be run again, in words ("searching the whole vocabulary"); "" = nothing was stopped.
  std::string stopped() const;
  bool was_stopped(const std::string& tag) const;
  /// Of the device that computes now: what was stopped on another holds that one's backend and model, and was dropped.
  void run_again();

  /// For jobs: one pass at a time, on the worker only …
  const std::shared_ptr<Backend>& backend() const { return backend_; }
  /// … and what the last one left.
  const std::shared_ptr<PassMemory>& memory() const { return memory_; }
  /// From the next job on. A device that cannot be used is told once, as the message; the processor takes its place.
  void set_device(const DeviceChoice& device, int threads);
  /// Where the jobs compute: what was chosen, or the processor where that cannot be used or failed at work …
  const DeviceChoice& device() const { return device_; }
  /// … and then why, in a sentence; else "".
  const std::string& why_cpu() const { return why_cpu_text_; }
  void try_device_again();
  const Devices& devices() const { return devices_; }
  /// For what the processor does better, whatever was chosen: training what is written for it alone.
  std::shared_ptr<Backend> processor();

  const std::optional<Message>& message() const { return message_; }
  void show(Message message) { message_ = std::move(message); }
  /// What is told in the language of the window, also in one that comes while it stands there.
  void tell(Worded text, std::string tag = "", Message::Level level = Message::Level::info);
  void dismiss() { message_.reset(); }
  /// What the message of this tag told is over.
  void dismiss(const std::string& tag);

 private:
  struct Known {        // handed in, and neither delivered nor forgotten
    Worker::Work work;  // of one that can be run again
    OnStop on_stop;
    std::function<void()> gave_up;
    DeviceChoice device;
    bool stopped = false, aside = false;
  };
  void failed(const std::string& tag, const std::string& why);
  void card_failed(const std::string& tag, const CardError& error, const Backend& on);
  /// Drops a job for good, or all these; who asked is told.
  void drop(const std::string& tag);
  void drop(const std::function<bool(const Known&)>& which);
  void take(const DeviceChoice& device);
  void say_anew();

  Devices devices_;
  int threads_;
  DeviceChoice wanted_, device_;
  Worded why_cpu_;
  std::string why_cpu_text_;                      // as it is said now …
  std::uint64_t words_of_texts_ = 0;              // … and the message: words_generation()
  std::shared_ptr<Backend> backend_, processor_;  // used by jobs only
  std::shared_ptr<PassMemory> memory_;
  std::map<std::string, Known> jobs_;         // by tag
  std::map<std::string, std::string> words_;  // likewise, also of one that has been forgotten and still runs
  std::uint64_t stops_ = 0;
  std::optional<Message> message_;
  bool changed_ = false;
  Worker aside_, files_, network_, worker_;  // last: their jobs end before anything they deliver to goes away
};

}  // namespace headscope
