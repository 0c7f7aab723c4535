#include "app/state/job_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

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

void JobRunner::submit(const JobName& job, Worker::Work work, OnStop on_stop, std::function<void()> gave_up) {
  words_[job.tag] = job.words;
  jobs_[job.tag] = {on_stop == OnStop::again ? work : nullptr, on_stop, std::move(gave_up), false, job.aside};
  Worker& worker = job.aside ? aside_ : worker_;
  worker.submit(
      job.tag,
      [this, tag = job.tag, work = std::move(work), on_card = device_.cuda](Worker::Job& at) -> Worker::Deliver {
        try {
          return [this, tag, deliver = work(at)] {
            jobs_.erase(tag);
            dismiss(tag);
            if (deliver) deliver();
          };
        } catch (const Error& error) {
          if (!on_card || !of_the_card(error)) throw;
          return [this, tag, why = processor_goes_on(error)] { card_failed(tag, why); };
        }
      },
      [this, tag = job.tag](const std::string& why) {
        if (auto known = jobs_.extract(tag); known && known.mapped().gave_up) known.mapped().gave_up();
        failed(tag, why);
      });
}

void JobRunner::on_files(const std::string& tag, Worker::Work work) {
  files_.submit(
      tag,
      [this, tag, work = std::move(work)](Worker::Job& at) -> Worker::Deliver {
        return [this, tag, deliver = work(at)] {
          dismiss(tag);
          if (deliver) deliver();
        };
      },
      [this, tag](const std::string& why) { failed(tag, why); });
}

void JobRunner::on_network(const std::string& tag, Worker::Work work) {
  network_.submit(tag, std::move(work), [](const std::string&) {});
}

void JobRunner::forget(const std::string& tag) {
  jobs_.erase(tag);
  worker_.cancel(tag);
  aside_.cancel(tag);
}

bool JobRunner::frame() {
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

JobRunner::Status JobRunner::status() const {
  const Worker::Status job = worker_.status();
  const auto words = words_.find(job.tag);
  return {words == words_.end() ? "" : words->second, job.progress, job.seconds};
}

JobRunner::Status JobRunner::aside() const {
  const Worker::Status job = aside_.status();
  if (!works(job)) return {};
  const auto words = words_.find(job.tag);
  return {words == words_.end() ? "waiting" : words->second, job.progress, job.seconds};
}

void JobRunner::stop() {
  for (auto at = jobs_.begin(); at != jobs_.end();) {
    Known& job = at->second;
    if (job.aside) {
      ++at;
      continue;
    }
    if (job.on_stop != OnStop::own && !job.stopped) worker_.cancel(at->first);
    job.stopped |= job.on_stop == OnStop::again;
    if (job.on_stop != OnStop::drop) {
      ++at;
      continue;
    }
    const auto gave_up = std::move(job.gave_up);
    at = jobs_.erase(at);
    if (gave_up) gave_up();
  }
  ++stops_;
  changed_ = true;
}

std::string JobRunner::stopped() const {
  std::string words;
  int count = 0;
  for (const auto& [tag, job] : jobs_)
    if (job.stopped && count++ == 0) words = words_.at(tag);
  return count < 2 ? words : fmt::format("{} and {} more", words, count - 1);
}

bool JobRunner::was_stopped(const std::string& tag) const {
  const auto known = jobs_.find(tag);
  return known != jobs_.end() && known->second.stopped;
}

void JobRunner::run_again() {
  std::vector<std::pair<std::string, Worker::Work>> stopped;
  for (const auto& [tag, job] : jobs_)
    if (job.stopped) stopped.emplace_back(tag, job.work);
  for (auto& [tag, work] : stopped) submit({tag, words_.at(tag)}, std::move(work));
  changed_ = true;
}

void JobRunner::set_device(const DeviceChoice& device, int threads) {
  if (device == wanted_ && threads == threads_) return;
  threads_ = threads;
  if (std::exchange(wanted_, device) != device || why_cpu_.empty()) return take(device);
  const std::string why = why_cpu_;  // a card that failed is not tried for a number of threads
  take({});
  why_cpu_ = why;
}

void JobRunner::try_device_again() {
  take(wanted_);
}

void JobRunner::take(const DeviceChoice& device) {
  backend_ = devices_.make(device, threads_, why_cpu_);  // what runs keeps the one it was given
  processor_.reset();
  memory_ = std::make_shared<PassMemory>();
  device_ = why_cpu_.empty() ? device : DeviceChoice{};
  if (!why_cpu_.empty()) show({Message::Level::info, why_cpu_, ""});
  changed_ = true;
}

/// Others that were handed in for the card fail as well, and say nothing any more.
void JobRunner::card_failed(const std::string& tag, const std::string& why) {
  if (device_.cuda) {
    take({});
    why_cpu_ = why;
    show({Message::Level::error, why, ""});
  }
  if (auto known = jobs_.extract(tag); known && known.mapped().gave_up) known.mapped().gave_up();
  changed_ = true;
}

std::shared_ptr<Backend> JobRunner::processor() {
  if (!device_.cuda) return backend_;
  if (!processor_) processor_ = std::make_shared<Backend>(threads_);
  return processor_;
}

}  // namespace headscope
