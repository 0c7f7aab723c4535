#include "core/train/learner.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/model/experts.h"
#include "core/tensor/tape.h"

namespace headscope {

struct Learner::Impl {
  Impl(Parameters start, const OptimizerSettings& settings, Backend& on)
      : backend(on), parameters(std::move(start)), optimizer(parameters, settings) {
    // The optimiser's first step would put them there, behind the back of the model's views.
    for (Parameter& each : parameters.all()) each.value = backend.resident(std::move(each.value));
    model = parameters.trainable_model(backend);
  }

  Backend& backend;
  Parameters parameters;
  AdamW optimizer;
  std::shared_ptr<const Model> model;  // views of `parameters`
  std::shared_ptr<Tap> tap;

  void check(const Batch& batch) const {
    const ModelConfig& c = model->config();
    const auto size = static_cast<std::size_t>(batch.sequences) * static_cast<std::size_t>(batch.length);
    if (batch.sequences < 1 || batch.length < 1 || batch.tokens.size() != size || batch.targets.size() != size)
      throw Error(c.name + ": batch", fmt::format("{} × {} tokens and as many targets", batch.sequences, batch.length),
                  fmt::format("{} tokens, {} targets", batch.tokens.size(), batch.targets.size()));
    bool counted = false;
    for (const std::int32_t target : batch.targets) {
      if (target < -1 || target >= c.dims.vocab)
        throw Error(c.name + ": batch", fmt::format("targets in [0, {}), or −1", c.dims.vocab),
                    fmt::format("{}", target));
      counted = counted || target >= 0;
    }
    if (!counted) throw Error(c.name + ": batch", "at least one target that counts", "none");
  }
};

namespace {
/// How evenly routers share out the tokens of a pass.
class BalanceReader final : public Tap {
 public:
  bool wants(Site site) const override {
    return site.kind == SiteKind::router_logits || site.kind == SiteKind::router_weights;
  }
  Tensor at(Site site, const Tensor& value) override {
    if (site.kind == SiteKind::router_logits)
      logits_ = value;
    else
      sum_ += router_balance(logits_, value).value, ++layers_;
    return value;
  }
  double mean() const { return layers_ > 0 ? sum_ / layers_ : nan; }

 private:
  Tensor logits_;
  double sum_ = 0;
  int layers_ = 0;
};
}  // namespace

ForwardResult run_batch(const Model& model, const Batch& batch, const Ctx& ctx, const MapRequest& maps, Tap* cross) {
  const std::vector<Index> lengths(static_cast<std::size_t>(batch.sequences), batch.length);
  const Model* const encoder = model.encoder();
  if ((encoder != nullptr) != !batch.source_lengths.empty() ||
      (encoder && batch.source_lengths.size() != lengths.size()))
    throw Error(model.config().name + ": batch",
                encoder ? fmt::format("a source for each of {} sequences", batch.sequences) : "no sources",
                fmt::format("{}", batch.source_lengths.size()));
  Ctx seeing = ctx;
  seeing.patches = batch.patches;
  if (!encoder) return model.forward(seeing, batch.tokens, nullptr, maps, true, {}, lengths);
  Ctx reading = ctx;
  reading.tap = nullptr;
  const SourceMemory source{encoder->forward(reading, batch.source, nullptr, {}, true, {}, batch.source_lengths).memory,
                            cross, maps, batch.source_lengths};
  Ctx writing = ctx;
  writing.source = &source;
  return model.forward(writing, batch.tokens, nullptr, maps, true, {}, lengths);
}

Learner::Learner(const ModelConfig& config, const OptimizerSettings& settings, std::uint64_t seed, Backend& backend)
    : impl_(std::make_unique<Impl>(Parameters::initial(config, seed), settings, backend)) {}

Learner::Learner(const Parameters& parameters, const OptimizerSettings& settings, Backend& backend)
    : impl_(std::make_unique<Impl>(parameters.clone(), settings, backend)) {}

Learner::~Learner() = default;

StepReport gradient_step(Parameters& parameters, AdamW& optimizer, Backend& backend,
                         const std::function<Backend::Loss(Tape&)>& loss_of, std::stop_token stop) {
  StepReport report;
  report.step = optimizer.steps() + 1;
  report.learning_rate = optimizer.next_rate();
  const std::string where = fmt::format("step {}", report.step);
  const char* const hint = "a smaller learning rate, a longer warm-up or stronger clipping may help";
  Tape tape(backend);
  for (const Parameter& each : parameters.all()) tape.watch(each.value);

  Backend::Loss loss;
  try {
    loss = loss_of(tape);
  } catch (const Error& error) {
    throw Error(where + ": " + error.where, error.expected, error.found, error.hint);
  }
  report.loss = loss.nats;
  if (!std::isfinite(loss.nats)) throw Error(where + ": loss", "a finite number", fmt::format("{}", loss.nats), hint);
  tape.backward(loss.mean, Tensor::full({1}, 1.0f));
  if (stop.stop_requested()) throw Cancelled();

  std::vector<Tensor> gradients;
  for (const Parameter& each : parameters.all()) gradients.push_back(tape.gradient(each.value));
  report.gradient_norm = gradient_norm(gradients, backend);
  if (!std::isfinite(report.gradient_norm)) {
    for (std::size_t i = 0; i < gradients.size(); ++i)
      for (Index k = 0; k < gradients[i].size(); ++k)
        if (!std::isfinite(gradients[i].data()[k]))
          throw Error(fmt::format("{}: gradient of {}", where, parameters.all()[i].name), "finite numbers",
                      fmt::format("{} at element {}", gradients[i].data()[k], k), hint);
    throw Error(where + ": gradient", "a norm within float32's range", fmt::format("{}", report.gradient_norm), hint);
  }
  optimizer.step(parameters, gradients, report.gradient_norm, backend);
  return report;
}

StepReport Learner::step(const Batch& batch, std::stop_token stop, const MapRequest& maps) {
  Impl& s = *impl_;
  s.check(batch);
  std::vector<AttentionMap> kept;
  BalanceReader balance;
  TapChain both(s.tap ? std::vector<Tap*>{s.tap.get(), &balance} : std::vector<Tap*>{&balance});
  const bool experts = s.model->config().experts.anywhere();
  StepReport report = gradient_step(
      s.parameters, s.optimizer, s.backend,
      [&](Tape& tape) {
        ForwardResult result =
            run_batch(*s.model, batch,
                      Ctx{.backend = s.backend,
                          .tap = experts ? &both : s.tap.get(),
                          .stop = stop,
                          .tape = &tape,
                          .entropy_price = s.optimizer.settings().entropy_price_at(s.optimizer.steps()),
                          .balance_price = s.optimizer.settings().expert_balance},
                      maps);
        kept = std::move(result.maps);
        const Backend::Recording recording(s.backend, &tape);
        return s.backend.cross_entropy(result.logits, batch.targets);
      },
      stop);
  report.maps = std::move(kept);
  report.balance = balance.mean();
  return report;
}

double Learner::accuracy(const Batch& batch, std::stop_token stop) {
  impl_->check(batch);
  const Tensor logits =
      run_batch(*impl_->model, batch, Ctx{.backend = impl_->backend, .tap = impl_->tap.get(), .stop = stop}).logits;
  std::int64_t right = 0, counted = 0;
  for (std::size_t i = 0; i < batch.targets.size(); ++i) {
    if (batch.targets[i] < 0) continue;
    const auto row = logits.select(0, static_cast<Index>(i)).values();
    right += std::ranges::max_element(row) - row.begin() == batch.targets[i];
    ++counted;
  }
  return static_cast<double>(right) / static_cast<double>(counted);
}

double Learner::loss(const Batch& batch, std::stop_token stop) {
  impl_->check(batch);
  const ForwardResult result =
      run_batch(*impl_->model, batch, Ctx{.backend = impl_->backend, .tap = impl_->tap.get(), .stop = stop});
  return impl_->backend.cross_entropy(result.logits, batch.targets).nats;
}

void Learner::set_tap(std::shared_ptr<Tap> tap) {
  impl_->tap = std::move(tap);
}
std::int64_t Learner::steps() const {
  return impl_->optimizer.steps();
}
const ModelConfig& Learner::config() const {
  return impl_->model->config();
}
const Parameters& Learner::parameters() const {
  return impl_->parameters;
}
const OptimizerSettings& Learner::settings() const {
  return impl_->optimizer.settings();
}
void Learner::set_settings(const OptimizerSettings& settings) {
  impl_->optimizer.set_settings(settings);
}

std::shared_ptr<const Model> Learner::snapshot(Backend* backend) const {
  return impl_->parameters.snapshot(backend ? *backend : impl_->backend);
}

std::map<std::string, Tensor> Learner::state() const {
  std::map<std::string, Tensor> state = impl_->optimizer.state();
  for (auto& [name, tensor] : impl_->parameters.state()) state.emplace("parameters/" + name, tensor);
  return state;
}

void Learner::restore(const std::map<std::string, Tensor>& state) {
  const std::string prefix = "parameters/";
  std::map<std::string, Tensor> weights;
  for (const auto& [name, tensor] : state)
    if (name.starts_with(prefix)) weights.emplace(name.substr(prefix.size()), tensor);
  const std::map<std::string, Tensor> before = impl_->parameters.state();
  impl_->parameters.restore(weights);
  try {
    impl_->optimizer.restore(state);
  } catch (...) {
    impl_->parameters.restore(before);
    throw;
  }
}

}  // namespace headscope
