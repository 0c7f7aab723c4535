#include "core/analysis/norm_placement.h"
#include "core/model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.h"
#include "core/base/random.h"
#include "core/edits/intervention_tap.h"
#include "core/edits/post_norm_edit.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"
#include "core/model/weights.h"
#include "core/tensor/tape.h"
#include "core/train/parameters.h"

namespace headscope {

namespace {
const std::vector<Intervention>& norms_moved() {
  static const std::vector<Intervention> edits{{{}, PostNorm{}}};
  return edits;
}

/// Asks the tape for the gradient of the stream leaving every block, and keeps the streams.
class StreamWatcher final : public Tap {
 public:
  explicit StreamWatcher(Tape& tape) : tape_(tape) {}
  bool wants(Site site) const override { return site.kind == SiteKind::resid_post; }
  Tensor at(Site, const Tensor& value) override {
    tape_.watch(value);
    streams.push_back(value);
    return value;
  }
  std::vector<Tensor> streams;

 private:
  Tape& tape_;
};

void check(const RandomStack& s) {
  const auto need = [](bool holds, const std::string& expected, int found) {
    if (!holds) throw Error("random stack", expected, std::to_string(found));
  };
  need(s.layers >= 1 && s.layers <= 64, "1 to 64 layers", s.layers);
  need(s.width >= 2 && s.width <= 1024, "a width of 2 to 1024", s.width);
  need(s.heads >= 1 && s.width % s.heads == 0, fmt::format("a number of heads that divides the width {}", s.width),
       s.heads);
  need(s.mlp >= 1 && s.mlp <= 8192, "an MLP of 1 to 8192", s.mlp);
  need(s.tokens >= 2 && s.tokens <= 512, "2 to 512 tokens", s.tokens);
  need(s.vocabulary >= 2 && s.vocabulary <= 65536, "a vocabulary of 2 to 65536", s.vocabulary);
  const double width = s.width, parameters = s.layers * (4 * width * width + 2 * width * s.mlp) + s.vocabulary * width;
  if (parameters > 1e8)
    throw Error("random stack", "at most 100 million parameters", fmt::format("{:.0f} million", parameters / 1e6));
}

Parameters weights_of(const RandomStack& stack) {
  ModelConfig config;
  config.name = "random stack";
  config.family = "gpt2";
  config.dims = {stack.layers, stack.heads, stack.heads,     stack.width / stack.heads,
                 stack.width,  stack.mlp,   stack.vocabulary};
  config.context = stack.tokens;
  Parameters::Initial how;
  how.seed = stack.seed;
  how.deviation = 1 / std::sqrt(static_cast<double>(stack.width));
  how.by_depth = false;
  return Parameters::initial(config, how);
}

StackDepth measure(const Parameters& parameters, const std::vector<std::int32_t>& tokens, bool post, const Ctx& ctx) {
  const auto model = parameters.trainable_model(ctx.backend);
  Tape tape(ctx.backend);
  const ModelWeights weights = model->weights();
  for (const BlockWeights& block : weights.blocks) tape.watch(block.down);
  EditScene scene{model->config().dims, tokens, {}, model.get(), 0, &ctx.backend};
  scene.stop = ctx.stop;
  InterventionTap edits(post ? norms_moved() : std::vector<Intervention>{}, scene);
  StreamWatcher watcher(tape);
  TapChain chain({&edits, &watcher});
  const Ctx own{.backend = ctx.backend, .tap = &chain, .stop = ctx.stop, .tape = &tape};
  const Tensor logits = model->forward(own, tokens).logits;
  std::vector<std::int32_t> targets(tokens.begin() + 1, tokens.end());
  targets.push_back(-1);
  StackDepth out;
  {
    const Backend::Recording recording(ctx.backend, &tape);
    const Backend::Loss loss = ctx.backend.cross_entropy(logits, targets);
    out.loss = loss.nats;
    tape.backward(loss.mean, Tensor::full({1}, 1.0f));
  }
  for (std::size_t layer = 0; layer < weights.blocks.size(); ++layer) {
    const Tensor x = watcher.streams[layer].packed();
    double sum = 0;
    for (Index i = 0; i < x.dim(0); ++i)
      sum += norm_of(x.values().subspan(static_cast<std::size_t>(i * x.dim(1)), static_cast<std::size_t>(x.dim(1))));
    out.residual.push_back(sum / static_cast<double>(x.dim(0)));
    out.residual_gradient.push_back(norm_of(tape.gradient(watcher.streams[layer]).packed().values()));
    out.weight_gradient.push_back(norm_of(tape.gradient(weights.blocks[layer].down).packed().values()));
  }
  return out;
}

NormPlacement::Run run_one(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx) {
  NormPlacement::Run out;
  out.trace = run(loaded, request, ctx);
  out.stream = read_residual_stream(*out.trace);
  out.loss = mean_loss(*out.trace);
  return out;
}
}  // namespace

std::set<SiteKind> norm_placement_sites(const Model& model) {
  std::set<SiteKind> sites = residual_stream_sites(model);
  add_inputs(model.config(), sites);
  return sites;
}

NormPlacement compare_norm_placement(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx) {
  RunRequest both = request;
  both.capture = {.maps = MapStorage::none,
                  .sites = norm_placement_sites(*loaded.model),
                  .byte_budget = request.capture.byte_budget};
  std::erase_if(both.edits, [](const Intervention& e) { return e.action.as<PostNorm>(); });
  NormPlacement out;
  out.pre = run_one(loaded, both, ctx);
  both.edits.insert(both.edits.end(), norms_moved().begin(), norms_moved().end());
  out.post = run_one(loaded, both, ctx);
  for (int i = 0; i < static_cast<int>(out.pre.trace->tokens.size()); ++i) {
    if (ctx.stop.stop_requested()) throw Cancelled();
    out.kl.push_back(next_token_change(*out.pre.trace, *out.post.trace, 1, i).kl);
  }
  return out;
}

RandomStacks random_stacks(const RandomStack& stack, const Ctx& ctx) {
  check(stack);
  const Parameters parameters = weights_of(stack);
  Random random(stack.seed);
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < stack.tokens; ++i)
    tokens.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(stack.vocabulary))));
  RandomStacks out{stack, {}, {}};
  out.pre = measure(parameters, tokens, false, ctx);
  if (ctx.progress) *ctx.progress = 0.5f;
  out.post = measure(parameters, tokens, true, ctx);
  return out;
}

}  // namespace headscope
