// From a request to its trace: the pass, whole or from the first block that a memory does not know.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/edits/edit_scene.h"
#include "core/edits/intervention_tap.h"
#include "core/io/picture.h"
#include "core/model/picture_input.h"
#include "core/run/context_limit.h"
#include "core/run/edit_pairs.h"
#include "core/run/pass_memory.h"
#include "core/run/run_request.h"
#include "core/trace/recorder.h"
#include "core/trace/token_links.h"

namespace headscope {

namespace {
void check_sites(const Model& model, const CaptureSpec& spec) {
  const std::vector<SiteKind> fires = model.sites();
  for (const SiteKind kind : spec.sites) {
    if (std::find(fires.begin(), fires.end(), kind) != fires.end()) continue;
    std::vector<std::string_view> names;
    for (const SiteKind has : fires) names.push_back(info(has).pattern);
    const bool no_mid = kind == SiteKind::resid_mid && model.config().dims.parallel;
    throw Error(
        "capture: sites", "sites that " + model.config().name + " has", std::string(info(kind).pattern),
        fmt::format("{}it has {}",
                    no_mid ? "attention and MLP of its blocks read the same stream, none stands between them; " : "",
                    fmt::join(names, ", ")));
  }
}

/// The picture as the model is given it: into the trace, for people and as numbers.
void read_picture_into(Trace& trace, const ModelConfig& config, const std::filesystem::path& file) {
  const Picture picture = prepared(read_picture(file), *config.vision);
  trace.picture = std::make_shared<const PatchPicture>(patch_picture(picture, *config.vision));
  trace.patches = patches_of(picture, *config.vision);
}

/// Keeps the residual stream that each block leaves to the next one.
class ResidualKeeper final : public Tap {
 public:
  explicit ResidualKeeper(int layers) : found(static_cast<std::size_t>(layers) + 1) {}
  bool wants(Site site) const override { return site.kind == SiteKind::resid_post; }
  Tensor at(Site site, const Tensor& value) override { return found[static_cast<std::size_t>(site.layer) + 1] = value; }
  std::vector<Tensor> found;  ///< by the block that finds it; the first stays undefined
};

/// Takes from the last pass what lies below block `first`.
void take_below(Trace& trace, const Trace& last, int first) {
  for (const AttentionMap& map : last.maps)
    if (map.layer() < first) trace.maps.push_back(map);
  for (const auto& [site, value] : last.sites)
    if (site.layer < first && site.kind != SiteKind::final_normalized && site.kind != SiteKind::logits)
      trace.sites.emplace(site, value);
}

/// Whether what shall be recorded all lies in block `first` or above.
bool wants_nothing_below(const CaptureSpec& spec, int first) {
  const bool layers_above = !spec.layers.empty() && *spec.layers.begin() >= first;
  if (spec.maps != MapStorage::none && !layers_above) return false;
  return std::ranges::all_of(spec.sites, [&](SiteKind kind) {
    return kind == SiteKind::final_normalized || kind == SiteKind::logits || (info(kind).per_layer && layers_above);
  });
}

/// What the edits take from other texts, or from this one before them: run without edits, or known from last time.
EditSources run_sources(const LoadedModel& loaded, const RunRequest& request, std::span<const Token> tokens,
                        const Ctx& ctx, const PassMemory* known, const EditSources* given) {
  EditSources sources;
  for (const SourceNeed& need : sources_of(request.edits)) {
    if (const auto found = given ? given->find(need.text) : EditSources::const_iterator{};
        given && found != given->end()) {
      sources[need.text] = found->second;
      continue;
    }
    if (const auto last = known ? known->source(*loaded.model, request, need, tokens) : nullptr) {
      sources[need.text] = last;
      continue;
    }
    RunRequest plain = source_request(request, need.text);
    plain.capture = need.capture;
    sources[need.text] = run(loaded, plain, Ctx{ctx.backend, nullptr, ctx.stop});
  }
  return sources;
}

/// One pass: whole, or (with a memory) from the first block that it does not know, or (`only`) of one layer alone.
std::shared_ptr<Trace> pass(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx,
                            const PassMemory* known, PassMemory::Kept* kept, std::optional<int> only,
                            const EditSources* given = nullptr) {
  const auto trace = std::make_shared<Trace>();
  trace->model = loaded.model->info();
  trace->text = request.ids.empty() && request.image.empty() ? request.text : "";
  trace->tokens = tokenize(loaded, request, ctx.stop);
  if (known && !kept && known->saw(request.image)) {  // one of many passes that differ from the same one
    trace->picture = known->trace()->picture;
    trace->patches = known->trace()->patches;
  } else if (const ModelConfig& config = loaded.model->config(); config.vision) {
    read_picture_into(*trace, config, request.image);
  }
  trace->source = "headscope " + ctx.backend.name();
  for (const Intervention& edit : request.edits)
    if (edit.enabled) trace->source += "; edited " + describe(edit);

  const int n = static_cast<int>(trace->tokens.size());
  const std::vector<std::int32_t> ids = trace->ids();
  const TokenLinks links = TokenLinks::of(trace->tokens);
  check_sites(*loaded.model, request.capture);
  check_targets(request.edits, trace->model.dims, n);
  trace->plan = plan_capture(request.capture, trace->model.dims, n, n);

  LayerRange layers;
  ResidualKeeper keeper(trace->model.dims.layers);
  if (known && !ctx.tap) {
    const int first = known->first_changed(*loaded.model, trace->tokens, request.edits, trace->patches);
    if (only) {
      layers.first = std::min(first, *only);
    } else if (known->recorded(request.capture)) {
      layers.first = first;
      take_below(*trace, *known->trace(), first);
    } else if (wants_nothing_below(request.capture, first)) {
      layers.first = first;
    }
    if (layers.first > 0) layers.residual = known->before(layers.first);
    for (int i = 1; i <= layers.first; ++i) nth(keeper.found, i) = known->before(i);
  }
  if (only) layers.end = *only + 1;

  Recorder recorder(request.capture);
  EditScene scene{trace->model.dims, ids, run_sources(loaded, request, trace->tokens, ctx, known, given),
                  loaded.model.get()};
  scene.heads_apart = request.capture.sites.contains(SiteKind::result);
  scene.backend = &ctx.backend;
  scene.stop = ctx.stop;
  InterventionTap interventions(request.edits, scene);
  std::vector<Tap*> taps;
  if (!interventions.empty()) taps.push_back(&interventions);
  if (ctx.tap) taps.push_back(ctx.tap);
  taps.push_back(&recorder);
  if (kept) taps.push_back(&keeper);
  TapChain chain(std::move(taps));
  Ctx own = ctx;
  own.tap = &chain;
  const std::vector<std::int32_t> segments = trace->segments();
  own.segments = segments;
  own.patches = trace->patches;
  if (const int limit = context_of(loaded, request); limit > loaded.model->config().context) own.context = limit;

  MapRequest maps;
  maps.storage = trace->plan.maps;
  maps.links = &links;
  if (!request.capture.layers.empty()) maps.layers = &request.capture.layers;
  const bool all_logits = trace->model.objective == Objective::next_token
                              ? request.capture.all_logits || request.capture.sites.contains(SiteKind::logits)
                              : trace->model.objective != Objective::image_class;  // which is read in one place

  const auto start = std::chrono::steady_clock::now();
  ForwardResult result = loaded.model->forward(own, ids, nullptr, maps, all_logits, layers);
  trace->milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  trace->logits = std::move(result.logits);
  std::ranges::move(result.maps, std::back_inserter(trace->maps));
  trace->sites.merge(recorder.take());
  if (kept) *kept = {std::move(keeper.found), std::move(scene.sources)};
  return trace;
}
}  // namespace

std::shared_ptr<const Trace> run(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx) {
  return pass(loaded, request, ctx, nullptr, nullptr, std::nullopt);
}

std::shared_ptr<const Trace> run(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx,
                                 PassMemory& memory) {
  if (ctx.tap) return run(loaded, request, ctx);
  PassMemory::Kept kept;
  const std::shared_ptr<const Trace> trace = pass(loaded, request, ctx, &memory, &kept, std::nullopt);
  memory.keep(loaded.model, request, trace, std::move(kept));
  return trace;
}

std::shared_ptr<const Trace> run_beside(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx,
                                        const PassMemory& memory, const EditSources& known) {
  return pass(loaded, request, ctx, ctx.tap ? nullptr : &memory, nullptr, std::nullopt, &known);
}

EditSources run_edit_sources(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx) {
  return run_sources(loaded, request, tokenize(loaded, request), ctx, nullptr, nullptr);
}

std::shared_ptr<const Trace> with_all_logits(const LoadedModel& loaded, const RunRequest& request,
                                             std::shared_ptr<const Trace> trace, const Ctx& ctx,
                                             const PassMemory& memory) {
  if (trace->model.objective == Objective::nothing) return trace;
  if (trace->logits.defined() && (trace->model.objective == Objective::image_class ||
                                  trace->logits.dim(0) == static_cast<Index>(trace->tokens.size())))
    return trace;
  RunRequest rest = request;
  rest.capture = {.maps = MapStorage::none, .all_logits = true, .byte_budget = request.capture.byte_budget};
  auto whole = std::make_shared<Trace>(*trace);
  whole->logits = run_beside(loaded, rest, ctx, memory)->logits;
  return whole;
}

std::shared_ptr<const Trace> run_layer(const LoadedModel& loaded, const RunRequest& request, int layer, const Ctx& ctx,
                                       const PassMemory& memory) {
  RunRequest one = request;
  one.capture.layers = {layer};
  one.capture.all_logits = false;
  return pass(loaded, one, ctx, &memory, nullptr, layer);
}

}  // namespace headscope
