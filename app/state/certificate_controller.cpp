#include "app/state/certificate_controller.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "core/base/duration.h"
#include "core/base/memory.h"
#include "core/base/words.h"
#include "core/tensor/backend.h"

namespace headscope {

namespace fs = std::filesystem;

namespace {
/// Multiplications of the plain pass in a second, on one core of some years ago.
constexpr double works_per_second = 4e8;
/// Up to here a model is checked without being asked, and no time is named.
constexpr double soon = 1.5;
/// Files are looked at again after so many seconds, while frames are drawn.
constexpr double between_looks = 2;

/// The weights in float32, once more.
void need_memory(const Model& model) {
  const double bytes = 4.0 * static_cast<double>(model.info().parameters);
  if (const auto left = static_cast<double>(available_memory()); bytes > left / 2)
    throw Error(model.config().name, "memory for its weights once more, " + memory_text(bytes),
                memory_text(left) + " available");
}
}  // namespace

double CertificateController::work() const {
  const std::shared_ptr<const Model>& model = run_.results().model.model;
  if (work_of_.lock() != model) {
    work_ = certificate_work(model->config());
    work_of_ = model;
  }
  return work_;
}

bool CertificateController::small() const {
  return open() && work() <= soon * works_per_second;
}

void CertificateController::frame(double now) {
  if (!open()) return;
  if (!looking_ && (!looked_at() || now - looked_when_ > between_looks || now < looked_when_)) {
    looked_when_ = now;
    look();
  }
  const bool unknown = looked_at() && state() == State::not_checked;
  if (automatic_ && unknown && small() && !of_this_model(answer_.asked()) && !jobs_.busy()) want();
  // Nobody wants to know it of a model that is gone.
  if (answer_.under_way() && !of_this_model(answer_.asked())) answer_.put_off(jobs_);
}

void CertificateController::look() {
  looking_ = true;
  const Results& results = run_.results();
  jobs_.submit(
      {"model files", to_say("looking at the model's files"), true},
      [this, folder = results.model_folder, read = results.model_files, reading = results.model_reading,
       known = looked_at() && certificate() != nullptr, store = store_](Worker::Job&) -> Worker::Deliver {
        Looked found{reading, false, nullptr};
        try {
          found.same = stamp_of(locate_model(folder)) == read;
        } catch (const Error&) {  // not to be read any more
        }
        if (auto remembered = known ? std::nullopt : store.find(folder); remembered && remembered->files == read)
          found.remembered = std::make_shared<const Certificate>(std::move(*remembered));
        return [this, found] {
          looking_ = false;
          const auto before = std::exchange(looked_, found);
          if (!looked_.remembered && before.reading == looked_.reading) looked_.remembered = before.remembered;
        };
      },
      JobRunner::OnStop::own, [this] { looking_ = false; });
}

void CertificateController::want() {
  const Results& results = run_.results();
  CertificateRequest request{results.model_folder, {}, {}, results.model_files};
  answer_.want(jobs_, {results.model_reading, attempt_},
               [loaded = results.model, request, store = store_](const Ctx& ctx) {
                 need_memory(*loaded.model);
                 Backend own(1);  // the other one may be at work
                 Certificate found = certify(loaded, request, Ctx{own, nullptr, ctx.stop, ctx.progress});
                 try {
                   store.keep(found);
                 } catch (const Error&) {  // it is known for this start
                 }
                 return found;
               });
}

void CertificateController::check() {
  if (!open() || state() == State::checking || state() == State::changed) return;
  ++attempt_;
  want();
}

void CertificateController::stop() {
  answer_.stop(jobs_);
}

CertificateController::State CertificateController::state() const {
  if (!open()) return State::none;
  if (looked_at() && !looked_.same) return State::changed;
  if (answer_.under_way() && of_this_model(answer_.asked())) return State::checking;
  if (of_this_model(answer_.asked()) && !answer_.error().empty()) return State::failed;
  return certificate() ? State::checked : State::not_checked;
}

std::shared_ptr<const Certificate> CertificateController::certificate() const {
  if (!open() || (looked_at() && !looked_.same)) return nullptr;
  if (of_this_model(answer_.last_key())) return answer_.last();
  return looked_at() ? looked_.remembered : nullptr;
}

bool CertificateController::remembered() const {
  const auto shown = certificate();
  return shown && shown == looked_.remembered;
}

std::string CertificateController::error() const {
  return of_this_model(answer_.asked()) ? answer_.error() : "";
}

float CertificateController::progress() const {
  return answer_.under_way() ? jobs_.aside().progress : 0;
}

std::string CertificateController::effort() const {
  if (!open() || small()) return "";
  return say("about {}", duration_text(work() / works_per_second));
}

bool CertificateController::busy() const {
  if (!open()) return false;
  return answer_.under_way() || (automatic_ && small() && !looked_at());
}

std::string CertificateController::note() const {
  return open() ? model_note(run_.results().model.model->config().name, certificate().get()) : "";
}

const Answer<std::uint64_t, ModelFacts>& CertificateController::want_facts() {
  const Results& results = run_.results();
  if (open())
    facts_.want(jobs_, results.model_reading, [folder = results.model_folder, loaded = results.model](const Ctx&) {
      need_memory(*loaded.model);
      return model_facts(folder);
    });
  return facts_;
}

}  // namespace headscope
