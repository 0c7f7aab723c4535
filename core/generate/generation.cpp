#include "core/generate/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "core/base/error.h"
#include "core/edits/intervention_tap.h"
#include "core/run/cross_pass.h"
#include "core/run/target_rules.h"
#include "core/tensor/panels.h"
#include "core/trace/layer_kinds.h"

namespace headscope {

namespace {

/// The last row of every map, (map, position).
Tensor last_rows(const std::vector<AttentionMap>& maps) {
  if (maps.empty()) return {};
  const Index keys = maps.front().n_key();
  Tensor rows = Tensor::uninitialized({static_cast<Index>(maps.size()), keys});
  for (std::size_t i = 0; i < maps.size(); ++i)
    maps[i].row(maps[i].n_query() - 1, {&rows.ref(static_cast<Index>(i), 0), static_cast<std::size_t>(keys)});
  return rows;
}

/// Takes away what is not written behind so many tokens.
void suppress(const TargetRules& rules, std::size_t prefix, Tensor& logits) {
  const auto take_away = [&](const std::vector<std::int32_t>& tokens) {
    for (const std::int32_t token : tokens) logits.ref(token) = -std::numeric_limits<float>::infinity();
  };
  logits = logits.copy();
  take_away(rules.never);
  if (prefix == 1 + rules.prompt.size()) take_away(rules.never_first);
}

}  // namespace

std::vector<std::int32_t> Transcript::ids(std::size_t count) const {
  std::vector<std::int32_t> all = prompt;
  for (std::size_t i = 0; i < std::min(count, steps.size()); ++i) all.push_back(steps[i]->token);
  return all;
}

Transcript Transcript::until(std::size_t count) const {
  Transcript part{prompt, steps};
  part.steps.resize(std::min(count, steps.size()));
  return part;
}

std::size_t cache_bytes(const ModelDims& dims, int tokens) {
  std::size_t numbers = 0;
  for (const LayerKind& kind : layer_kinds(dims)) {
    const bool none = kind.dims.state_kind == StateKind::convolution;  // the rows that are kept are all it needs
    const auto state =
        none ? 0 : static_cast<std::size_t>(kind.dims.d_inner) * static_cast<std::size_t>(kind.dims.d_state);
    numbers += static_cast<std::size_t>(kind.layers) *
               (static_cast<std::size_t>(tokens) * static_cast<std::size_t>(kept_numbers(kind.dims).numbers) +
                state * (KvCache::further_back(tokens) > 0 ? 2 : 1));
  }
  return sizeof(float) * numbers;
}

std::size_t panel_bytes(const ModelDims& dims, int tokens) {
  std::size_t numbers = 0;
  for (const LayerKind& kind : layer_kinds(dims))
    if (kind.dims.attends())
      numbers += static_cast<std::size_t>(kind.layers) * static_cast<std::size_t>(kind.dims.kv_heads) *
                 static_cast<std::size_t>(kind.dims.d_head);
  return sizeof(float) * static_cast<std::size_t>(panels::padded(tokens)) * numbers;
}

Generator::Generator(LoadedModel model, RunRequest like, bool rows, int longest)
    : model_(std::move(model)), like_(std::move(like)), rows_(rows), longest_(longest) {
  std::erase_if(like_.edits, [](const Intervention& edit) { return !edit.enabled; });
  if (const ModelConfig& config = model_.model->config(); config.objective() != Objective::next_token)
    throw Error("generation", "a model that says what comes next", config.name,
                config.vision     ? "it reads a picture and tells what that shows"
                : config.predicts ? "an encoder reads a whole text and tells what stands where a token is masked"
                                  : "it has no logits");
  const int context = model_.model->config().context;
  longest_ = longest > 0 ? std::min(longest, context) : context;
  cached_ = std::ranges::none_of(like_.edits, [&](const Intervention& edit) { return looks_ahead(edit, context); });
}

std::shared_ptr<const GenerationStep> Generator::step(const Ctx& ctx, std::span<const std::int32_t> prefix,
                                                      std::size_t index, const Choice& choice) {
  check(choice.settings, "generation");
  const ModelConfig& config = model_.model->config();
  if (choice.given && (*choice.given < 0 || *choice.given >= config.dims.vocab))
    throw Error("generation: the given token", fmt::format("an id below {}", config.dims.vocab),
                std::to_string(*choice.given));
  const auto step = read(ctx, prefix);
  step->settings = choice.settings;
  step->seed = choice.seed;
  if (choice.given) {
    step->by = GenerationStep::By::given;
    step->token = *choice.given;
    return step;
  }
  if (choice.settings.greedy()) {
    step->by = GenerationStep::By::greedy;
    step->token = most_probable(step->logits);
    return step;
  }
  const TokenDistribution distribution = token_distribution(step->logits, choice.settings);
  step->random = draw_of(choice.seed, index);
  step->token = distribution.ids[place_of(distribution, step->random)];
  return step;
}

std::shared_ptr<GenerationStep> Generator::read(const Ctx& ctx, std::span<const std::int32_t> prefix) {
  check_stacks(like_.edits, model_.model->info());
  read_source(ctx);
  auto step = std::make_shared<GenerationStep>();
  step->length = static_cast<int>(prefix.size());
  cached_ ? read_newest(ctx, prefix, *step) : read_whole(ctx, prefix, *step);
  if (model_.target) suppress(*model_.target, prefix.size(), step->logits);
  return step;
}

Generator Generator::fork() const {
  Generator other = *this;
  if (cache_) other.cache_ = cache_->copy();
  return other;
}

void Generator::read_source(const Ctx& ctx) {
  if (source_.trace || !model_.model->encoder()) return;
  RunRequest request = like_;
  request.capture = {.maps = rows_ ? MapStorage::automatic : MapStorage::none};
  source_ = encode(model_, request, ctx);
}

void Generator::read_newest(const Ctx& ctx, std::span<const std::int32_t> prefix, GenerationStep& step) {
  const ModelConfig& config = model_.model->config();
  if (!cache_) cache_.emplace(config.dims, longest_);
  // What the cache holds of this prefix; the last token is read again if need be, since its logits are wanted.
  const auto common = static_cast<std::size_t>(std::ranges::mismatch(prefix, read_).in1 - prefix.begin());
  const bool goes_on = model_.model->continues(*cache_, static_cast<Index>(prefix.size()));
  const std::size_t held = prefix.empty() || !goes_on ? 0 : std::min(common, prefix.size() - 1);
  cache_->truncate(static_cast<int>(held));
  read_.resize(held);

  EditScene scene{config.dims,        {prefix.begin(), prefix.end()}, {},
                  model_.model.get(), static_cast<int>(held),         &ctx.backend};
  scene.stop = ctx.stop;
  const bool two = model_.model->encoder() != nullptr;
  InterventionTap interventions(two ? edits_of(like_.edits, Stack::decoder) : like_.edits, scene);
  std::vector<Tap*> taps;
  if (!interventions.empty()) taps.push_back(&interventions);
  if (ctx.tap) taps.push_back(ctx.tap);
  TapChain chain(std::move(taps));
  Ctx own{ctx.backend, interventions.empty() ? ctx.tap : &chain, ctx.stop, ctx.progress};
  MapRequest maps;
  if (rows_) maps.storage = MapStorage::dense;
  maps.statistics = false;
  std::optional<CrossPass> crossing;
  if (two) {
    crossing.emplace(edits_of(like_.edits, Stack::cross), scene, model_.model->info().cross->dims, source_, nullptr);
    crossing->source.maps = maps;
    own.source = &crossing->source;
  }
  const auto start = std::chrono::steady_clock::now();
  const ForwardResult result = model_.model->forward(own, prefix.subspan(held), &*cache_, maps, false);
  step.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  read_.assign(prefix.begin(), prefix.end());
  step.computed = static_cast<int>(prefix.size() - held);
  step.cache_bytes = cache_bytes(config.dims, step.length);
  step.panel_bytes = cache_->panel_bytes();
  step.source_bytes = cache_->source_bytes();
  step.logits = result.logits.select(0, 0).copy();
  step.rows = last_rows(result.maps);
  step.source_rows = last_rows(result.cross_maps);
}

void Generator::read_whole(const Ctx& ctx, std::span<const std::int32_t> prefix, GenerationStep& step) {
  RunRequest request = like_;
  request.text.clear();
  request.ids.assign(prefix.begin(), prefix.end());
  request.ids_are_whole = true;
  request.capture = {};
  request.capture.maps = rows_ ? MapStorage::dense : MapStorage::none;
  request.capture.all_logits = false;
  const auto trace = run(model_, request, ctx);
  step.milliseconds = trace->milliseconds;
  step.computed = step.length;
  step.logits = trace->logits.select(0, trace->logits.dim(0) - 1).copy();
  step.rows = last_rows(trace->maps);
  if (trace->cross) step.source_rows = last_rows(trace->cross->maps);
}

void sample_text(const LoadedModel& model, const Ctx& ctx, const std::vector<std::int32_t>& prompt, int count,
                 const Generator::Choice& choice, const std::function<bool(std::int32_t)>& found) {
  const ModelConfig& config = model.model->config();
  const auto given = static_cast<int>(prompt.size());
  if (given > config.context)
    throw Error("prompt", fmt::format("at most {} tokens, the context of {}", config.context, config.name),
                fmt::format("{}", given));
  Generator generator(model, RunRequest{}, false);
  std::vector<std::int32_t> ids = prompt;
  const int room = config.context - given;  // the last token drawn is not read again
  for (int i = 0; i < std::min(count, room + 1); ++i) {
    ids.push_back(generator.step(ctx, ids, static_cast<std::size_t>(i), choice)->token);
    if (!found(ids.back())) return;
  }
}

}  // namespace headscope
