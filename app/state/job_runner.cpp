#include "app/state/job_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/run/pass_memory.h"
#include "core/tensor/backend.h"

namespace headscope {

JobRunner::JobRunner(int threads, const std::function<void()>& wake)
    : threads_(threads),
      backend_(std::make_shared<Backend>(threads)),
      memory_(std::make_shared<PassMemory>()),
      aside_(wake),
      files_(wake),
      network_(wake),
      worker_(wake) {}

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
      [this, tag = job.tag, work = std::move(work)](Worker::Job& at) -> Worker::Deliver {
        return [this, tag, deliver = work(at)] {
          jobs_.erase(tag);
          dismiss(tag);
          if (deliver) deliver();
        };
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

void JobRunner::set_threads(int threads) {
  if (std::exchange(threads_, threads) == threads) return;
  backend_ = std::make_shared<Backend>(threads);  // what runs keeps the one it was given
  memory_ = std::make_shared<PassMemory>();
  changed_ = true;
}

}  // namespace headscope
