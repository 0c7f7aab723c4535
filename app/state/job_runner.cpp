#include "app/state/job_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/base/words.h"
#include "core/run/pass_memory.h"
#include "core/tensor/backend.h"

namespace headscope {

JobRunner::JobRunner(int threads, const std::function<void()>& wake, const DeviceChoice& device, Devices devices)
    : devices_(std::move(devices)),
      threads_(threads),
      wanted_(device),
      aside_(wake),
      files_(wake),
      network_(wake),
      worker_(wake) {
  take(device);
}

JobRunner::~JobRunner() = default;

void JobRunner::dismiss(const std::string& tag) {
  if (message_ && message_->tag == tag) message_.reset();
  changed_ = true;
}

void JobRunner::failed(const std::string& tag, const std::string& why) {
  message_ = Message{Message::Level::error, why, tag};
  changed_ = true;
}

void JobRunner::submit(const JobName& job, Worker::Work work, OnStop on_stop, std::function<void()> gave_up,
                       std::shared_ptr<Backend> on) {
  words_[job.tag] = job.words;
  jobs_[job.tag] = {on_stop == OnStop::again ? work : nullptr, on_stop, std::move(gave_up), device_, false, job.aside};
  if (!on) on = backend_;
  Worker& worker = job.aside ? aside_ : worker_;
  worker.submit(
      job.tag,
      [this, tag = job.tag, work = std::move(work), on = std::move(on)](Worker::Job& at) -> Worker::Deliver {
        try {
          return [this, tag, deliver = work(at)] {
            jobs_.erase(tag);
            dismiss(tag);
            if (deliver) deliver();
          };
        } catch (const CardError& error) {
          return [this, tag, error, on] { card_failed(tag, error, *on); };
        }
      },
      [this, tag = job.tag](const std::string& why) {
        drop(tag);
        failed(tag, why);
      });
}

void JobRunner::on_files(const std::string& tag, Worker::Work work, std::function<void()> gave_up) {
  files_.submit(
      tag,
      [this, tag, work = std::move(work)](Worker::Job& at) -> Worker::Deliver {
        return [this, tag, deliver = work(at)] {
          dismiss(tag);
          if (deliver) deliver();
        };
      },
      [this, tag, gave_up = std::move(gave_up)](const std::string& why) {
        failed(tag, why);
        if (gave_up) gave_up();
      });
}

void JobRunner::on_network(const std::string& tag, Worker::Work work) {
  network_.submit(tag, std::move(work), [](const std::string&) {});
}

void JobRunner::forget(const std::string& tag) {
  jobs_.erase(tag);
  worker_.cancel(tag);
  aside_.cancel(tag);
}

void JobRunner::tell(Worded text, std::string tag, Message::Level level) {
  std::string words = text.text();
  message_ = Message{level, std::move(words), std::move(tag), std::move(text)};
  changed_ = true;
}

/// What stands there follows the language.
void JobRunner::say_anew() {
  if (message_ && !message_->worded.empty()) message_->text = message_->worded.text();
  why_cpu_text_ = why_cpu_.text();
  changed_ = true;
}

bool JobRunner::frame() {
  if (std::exchange(words_of_texts_, words_generation()) != words_generation()) say_anew();
  const int delivered = worker_.drain() + files_.drain() + network_.drain() + aside_.drain();
  return std::exchange(changed_, false) || delivered > 0;
}

namespace {
bool works(const Worker::Status& status) {
  return !status.tag.empty() || status.queued > 0 || status.undelivered > 0;
}
}  // namespace

bool JobRunner::busy() const {
  return works(worker_.status()) || works(files_.status());
}

bool JobRunner::settling() const {
  return works(files_.status()) || std::ranges::any_of(jobs_, [](const auto& job) {
           return !job.second.aside && !job.second.stopped && job.second.on_stop != OnStop::own;
         });
}

JobRunner::Status JobRunner::status() const {
  const Worker::Status job = worker_.status();
  const auto words = words_.find(job.tag);
  return {words == words_.end() ? "" : words->second, job.progress, job.seconds};
}

JobRunner::Status JobRunner::aside() const {
  const Worker::Status job = aside_.status();
  if (!works(job)) return {};
  const auto words = words_.find(job.tag);
  return {words == words_.end() ? to_say("waiting") : words->second, job.progress, job.seconds};
}

void JobRunner::stop() {
  for (auto& [tag, job] : jobs_) {
    if (job.aside || job.on_stop == OnStop::own || job.stopped) continue;
    worker_.cancel(tag);
    job.stopped = true;
  }
  drop([this](const Known& job) { return job.stopped && (job.on_stop == OnStop::drop || job.device != device_); });
  ++stops_;
  changed_ = true;
}

void JobRunner::drop(const std::function<bool(const Known&)>& which) {
  std::vector<std::string> tags;
  for (const auto& [tag, job] : jobs_)
    if (which(job)) tags.push_back(tag);
  for (const std::string& tag : tags) drop(tag);
}

void JobRunner::drop(const std::string& tag) {
  if (auto known = jobs_.extract(tag); known && known.mapped().gave_up) known.mapped().gave_up();
}

std::string JobRunner::stopped() const {
  std::string words;
  int count = 0;
  for (const auto& [tag, job] : jobs_)
    if (job.stopped && count++ == 0) words = said(words_.at(tag));
  return count < 2 ? words : say("{} and {} more", words, count - 1);
}

bool JobRunner::was_stopped(const std::string& tag) const {
  const auto known = jobs_.find(tag);
  return known != jobs_.end() && known->second.stopped;
}

void JobRunner::run_again() {
  std::vector<std::pair<std::string, Known>> stopped;
  for (const auto& [tag, job] : jobs_)
    if (job.stopped) stopped.emplace_back(tag, job);
  for (auto& [tag, job] : stopped)
    submit({tag, words_.at(tag)}, std::move(job.work), job.on_stop, std::move(job.gave_up));
  changed_ = true;
}

void JobRunner::set_device(const DeviceChoice& device, int threads) {
  if (device == wanted_ && threads == threads_) return;
  threads_ = threads;
  if (std::exchange(wanted_, device) != device || why_cpu_.empty()) return take(device);
  const Worded why = why_cpu_;  // a card that failed is not tried for a number of threads
  take({});
  why_cpu_ = why, why_cpu_text_ = why.text();
}

void JobRunner::try_device_again() {
  take(wanted_);
}

void JobRunner::take(const DeviceChoice& device) {
  backend_ = devices_.make(device, threads_, why_cpu_);  // what runs keeps the one it was given
  if (why_cpu_.text().empty()) why_cpu_ = Worded();
  processor_.reset();
  memory_ = std::make_shared<PassMemory>();
  device_ = why_cpu_.empty() ? device : DeviceChoice{};
  drop([this](const Known& job) { return job.stopped && job.device != device_; });
  why_cpu_text_ = why_cpu_.text();
  if (!why_cpu_.empty()) tell(why_cpu_);
  changed_ = true;
}

/// Others that were handed in for the card fail as well, and say nothing any more.
void JobRunner::card_failed(const std::string& tag, const CardError& error, const Backend& on) {
  const auto known = jobs_.find(tag);
  const bool of_now = known != jobs_.end() && known->second.device == device_;
  const bool lost = &on == backend_.get() && device_.cuda;
  if (lost) {
    take({});
    why_cpu_ = processor_goes_on(error);
    why_cpu_text_ = why_cpu_.text();
    tell(why_cpu_, "", Message::Level::error);
  }
  drop(tag);
  if (of_now && !lost) failed(tag, error.what());  // the processor looked at what a card had kept, for one
  changed_ = true;
}

std::shared_ptr<Backend> JobRunner::processor() {
  if (!device_.cuda) return backend_;
  if (!processor_) processor_ = std::make_shared<Backend>(threads_);
  return processor_;
}

}  // namespace headscope
