#include "core/train/gradients.h"

#include <fmt/format.h>

#include <cassert>

#include "core/base/error.h"
#include "core/tensor/tape.h"

namespace headscope {
namespace {

/// Watches the embedding and every pattern, as the tap before it (may be null) left them.
class Watcher final : public Tap {
 public:
  Watcher(Tape& tape, Tap* before)
      : tape_(tape), chain_(before ? std::vector<Tap*>{before, this} : std::vector<Tap*>{this}) {}
  Tap* chain() { return &chain_; }
  bool wants(Site site) const override { return site.kind == SiteKind::embed || site.kind == SiteKind::pattern; }
  Tensor at(Site site, const Tensor& value) override {
    tape_.watch(value);
    (site.kind == SiteKind::embed ? embedding : patterns.emplace_back()) = value;
    return value;
  }
  Tensor embedding;
  std::vector<Tensor> patterns;

  TextGradients gradients() const {
    TextGradients out;
    for (const Tensor& pattern : patterns) out.patterns.push_back(tape_.gradient(pattern).copy());
    if (!embedding.defined()) return out;
    out.embedding = tape_.gradient(embedding).copy();
    for (Index i = 0; i < embedding.dim(0); ++i) {
      double sum = 0;
      for (Index j = 0; j < embedding.dim(1); ++j)
        sum += static_cast<double>(embedding.at(i, j)) * static_cast<double>(out.embedding.at(i, j));
      out.gradient_times_input.push_back(static_cast<float>(sum));
    }
    return out;
  }

 private:
  Tape& tape_;
  TapChain chain_;
};

}  // namespace

InputGradients input_gradients(const Model& model, const Ctx& ctx, std::span<const std::int32_t> tokens,
                               const GradientOf& of, const GradientSource* source) {
  assert(!ctx.tape && !ctx.source);
  need_logits(model.info());
  const ModelConfig& c = model.config();
  const int n = static_cast<int>(tokens.size()), row = of.position < 0 ? n - 1 : of.position;
  const bool loss = of.kind == GradientOf::Kind::loss;
  const auto inside = [&](std::int32_t token) {
    if (token < 0 || token >= c.dims.vocab)
      throw Error(c.name, fmt::format("a token id in [0, {})", c.dims.vocab), fmt::format("{}", token));
  };
  if (loss && n < 2) throw Error(c.name, "a text of two tokens or more, for a loss", fmt::format("{}", n));
  if (!loss) {
    if (row >= n) throw Error(c.name, fmt::format("a position below {}", n), fmt::format("{}", row));
    inside(of.token);
    if (of.kind == GradientOf::Kind::logit_difference) inside(of.other);
  }

  Tape tape(ctx.backend);
  Watcher watcher(tape, ctx.tap), encoder(tape, source ? source->encoder : nullptr),
      cross(tape, source ? source->cross : nullptr);
  Ctx recorded = ctx;
  recorded.tap = watcher.chain();
  recorded.tape = &tape;
  SourceMemory memory;
  if (source && model.encoder()) {
    Ctx reading{.backend = ctx.backend, .tap = encoder.chain(), .stop = ctx.stop, .tape = &tape};
    reading.patches = source->patches;
    memory.tap = cross.chain();
    memory.memory = model.encoder()->forward(reading, source->tokens).memory;
    recorded.source = &memory;
  }
  const Tensor logits = model.forward(recorded, tokens).logits;

  InputGradients out;
  if (loss) {
    std::vector<std::int32_t> targets = of.targets;
    if (targets.empty()) {
      targets.assign(tokens.begin() + 1, tokens.end());
      targets.push_back(-1);
    }
    const Backend::Recording recording(ctx.backend, &tape);
    const Backend::Loss mean = ctx.backend.cross_entropy(logits, targets);
    out.value = mean.nats;
    tape.backward(mean.mean, Tensor::full({1}, 1.0f));
  } else {
    Tensor weight = Tensor::zeros(logits.shape());
    weight.ref(row, of.token) += 1;
    out.value = logits.at(row, of.token);
    if (of.kind == GradientOf::Kind::logit_difference) {
      weight.ref(row, of.other) -= 1;
      out.value -= logits.at(row, of.other);
    }
    tape.backward(logits, weight);
  }

  static_cast<TextGradients&>(out) = watcher.gradients();
  if (recorded.source) {
    out.source = encoder.gradients();
    out.cross_patterns = cross.gradients().patterns;
  }
  return out;
}

}  // namespace headscope
