#include "core/analysis/singular_tuning.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/edits/singular_edit.h"

namespace headscope {

SingularExpert as_written(SingularExpert expert) {
  for (SingularExpert::Part& part : expert.parts)
    for (double& each : part.z) each = std::round(each * 1e4) / 1e4;
  return expert;
}

std::vector<Intervention> expert_edits(const SingularExpert& expert) {
  std::vector<Intervention> out;
  for (const SingularExpert::Part& part : as_written(expert).parts)
    if (std::ranges::any_of(part.z, [](double each) { return each != 1; }))
      out.push_back({{part.layer, {}}, ScaleSingular::of(part.matrix, part.z)});
  return out;
}

std::unique_ptr<SingularLearner> singular_learner(const LoadedModel& loaded, const std::filesystem::path& folder,
                                                  const std::vector<WeightMatrix>& matrices,
                                                  const SingularLearner::Settings& settings, int tokens,
                                                  Backend& backend, std::stop_token stop, std::uint64_t available,
                                                  int texts) {
  const ModelConfig& config = loaded.model->config();
  SingularLearner::check(config, matrices);
  check_training_memory(SingularLearner::memory(*loaded.model, matrices, tokens, texts), available,
                        config.name + ": singular values", "fewer matrices or a shorter text take less");
  return std::make_unique<SingularLearner>(Parameters::load(folder), matrices, settings, backend, stop);
}

SingularTuner::SingularTuner(LoadedModel loaded, SingularTuningAsked asked) : loaded_(std::move(loaded)) {
  known_.asked = std::move(asked);
}

void SingularTuner::step(const Ctx& ctx) {
  if (!learner_) {
    RunRequest plain = known_.asked.run;
    plain.edits.clear();
    plain.capture = {};
    plain.capture.maps = MapStorage::none;
    plain.capture.all_logits = false;
    batch_ = text_batch(run(loaded_, plain, Ctx{ctx.backend, nullptr, ctx.stop})->ids());
    if (batch_.length < 2) throw Error("text", "at least two tokens", std::to_string(batch_.length));
    auto backend = std::make_unique<Backend>(ctx.backend.pool().threads());
    auto learner = singular_learner(loaded_, plain.model, known_.asked.matrices, {.rate = known_.asked.rate},
                                    batch_.length, *backend, ctx.stop);
    known_.expert = learner->expert();
    backend_ = std::move(backend), learner_ = std::move(learner);
    return;
  }
  const double loss = learner_->step(batch_, ctx.stop);
  known_.losses.push_back(loss);
  if (++done_ == known_.asked.steps) {
    learner_->set_expert(as_written(learner_->expert()));
    known_.losses.push_back(learner_->loss(batch_));
  }
  known_.expert = learner_->expert();
}

std::shared_ptr<const SingularTuning> SingularTuner::result() const {
  return learner_ ? std::make_shared<const SingularTuning>(known_) : nullptr;
}

}  // namespace headscope
