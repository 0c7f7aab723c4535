// The whole pipeline: tokenize, plan, forward, trace.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <optional>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/edits/edit_scene.h"
#include "core/edits/intervention_tap.h"
#include "core/io/picture.h"
#include "core/io/sound.h"
#include "core/model/picture_input.h"
#include "core/model/sound_input.h"
#include "core/run/cross_pass.h"
#include "core/run/edit_pairs.h"
#include "core/run/known_rows.h"
#include "core/run/pass_memory.h"
#include "core/trace/mixer_words.h"
#include "core/trace/recorder.h"
#include "core/trace/token_links.h"

namespace headscope {

namespace {
/// A site has to be one of some part of the model.
void check_sites(const Model& model, const CaptureSpec& spec) {
  const auto fires = [&](Stack part, SiteKind kind) {
    const std::vector<SiteKind> all = model.sites(part);
    return std::ranges::find(all, kind) != all.end();
  };
  for (const SiteKind kind : spec.sites) {
    if (fires(Stack::only, kind) || fires(Stack::encoder, kind) || fires(Stack::cross, kind)) continue;
    std::vector<std::string_view> names;
    for (const SiteKind has : model.sites()) names.push_back(info(has).pattern);
    if (!model.config().dims.any_attends() && kind >= SiteKind::q && kind <= SiteKind::attn_scores)
      throw Error(model.config().name, fmt::format("a model with attention, of which {} is a part", info(kind).pattern),
                  state_words(model.config().dims),
                  "it has no queries, keys, values and scores of heads; its maps say what it amounts to");
    const bool no_mid = kind == SiteKind::resid_mid && model.config().dims.parallel;
    throw Error(
        "capture: sites", "sites that " + model.config().name + " has", std::string(info(kind).pattern),
        fmt::format("{}it has {}",
                    no_mid ? "attention and MLP of its blocks read the same stream, none stands between them; " : "",
                    fmt::join(names, ", ")));
  }
}

/// What of it a part of an encoder-decoder can record.
CaptureSpec capture_of(const CaptureSpec& asked, const std::vector<SiteKind>& fires, int layers) {
  CaptureSpec own = asked;
  std::erase_if(own.sites, [&](SiteKind kind) { return std::ranges::find(fires, kind) == fires.end(); });
  std::erase_if(own.layers, [&](int layer) { return layer >= layers; });
  if (own.layers.empty() && !asked.layers.empty()) own.maps = MapStorage::none, own.sites.clear();
  return own;
}

/// An encoder-decoder reads a source, and no other model does.
void check_source(const Model& model, const RunRequest& request) {
  const bool given = !request.source.empty() || !request.source_ids.empty();
  const bool hears = (model.encoder() ? *model.encoder() : model).config().sound.has_value();
  if (hears && (given || request.sound.empty()))
    throw Error(model.config().name, "a sound, which its encoder reads", given ? "a text as the source" : "none",
                "command line: --sound FILE");
  if (!hears && !request.sound.empty())
    throw Error(model.config().name, "a text, which this model reads", "a sound",
                "models of speech (Whisper) read them");
  if (hears || given == (model.encoder() != nullptr)) return;
  if (given) throw Error(model.config().name, "a text alone, since this model is of one stack", "a source beside it");
  throw Error(model.config().name, "a source for its encoder, since this model is an encoder-decoder", "none",
              "what the decoder writes is of a text that it reads (command line: --source)");
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

/// What a pass leaves besides what it keeps.
struct Passed {
  std::shared_ptr<Trace> trace;
  Tensor memory;  ///< (source, d_model): of an encoder-decoder's encoder
};

Passed pass(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx, const PassMemory* known,
            PassMemory::Kept* kept, std::optional<int> only, const EditSources* given = nullptr);

/// The encoder of an encoder-decoder on the request's source. Without a changed edit it is the last one's again.
Passed pass_encoder(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx, const PassMemory* known,
                    PassMemory::Kept* kept) {
  const RunRequest own = encoder_request(*loaded.model, request);
  const LoadedModel encoder = loaded.encoder();
  const Ctx quiet{ctx.backend, nullptr, ctx.stop};
  if (!kept) return pass(encoder, own, quiet, known ? known->encoder() : nullptr, nullptr, std::nullopt);
  PassMemory::Kept left;
  Passed passed = pass(encoder, own, quiet, known ? known->encoder() : nullptr, &left, std::nullopt);
  kept->encoder = std::make_shared<PassMemory>();
  kept->encoder->keep(encoder.model, own, passed.trace, std::move(left));
  return passed;
}

/// The picture as the model is given it: into the trace, for people and as numbers.
void read_picture_into(Trace& trace, const ModelConfig& config, const std::filesystem::path& file) {
  const Picture picture = prepared(read_picture(file), *config.vision);
  trace.picture = std::make_shared<const PatchPicture>(patch_picture(picture, *config.vision));
  trace.patches = patches_of(picture, *config.vision);
}

/// The sound as the encoder is given it: into the trace, for people and as numbers. Not read again where `last` is of
/// the same file and nobody has written to it since.
void read_sound_into(Trace& trace, const ModelConfig& config, const std::filesystem::path& file,
                     const PassMemory* last) {
  std::error_code unknown;
  const auto written = std::filesystem::last_write_time(sound_place(file).file, unknown).time_since_epoch().count();
  if (last && last->heard(file) && last->trace()->sound->written == written) {
    trace.sound = last->trace()->sound;
  } else {
    SoundFrames frames = heard(read_sound(file, seconds_to_hear(*config.sound)), *config.sound);
    frames.written = written;
    trace.sound = std::make_shared<const SoundFrames>(std::move(frames));
  }
  trace.patches = trace.sound->log_mel;
}

/// A trace of cross-attention, before the pass.
std::shared_ptr<Trace> cross_trace(const Trace& target, std::shared_ptr<const Trace> source, const CaptureSpec& spec) {
  const auto trace = std::make_shared<Trace>();
  trace->model = *target.model.cross;
  trace->text = source->text;
  trace->tokens = source->tokens;
  trace->sound = source->sound;
  trace->query_tokens = target.tokens;
  for (Token& token : trace->query_tokens) token.begin = token.end = -1;  // `text` is the source
  trace->source = target.source;
  ModelDims dims = trace->model.dims;
  dims.vocab = 0;  // it has no logits
  trace->plan =
      plan_capture(spec, dims, static_cast<int>(target.tokens.size()), static_cast<int>(source->tokens.size()));
  return trace;
}

/// One pass: whole, or (with a memory) from the first block that it does not know, or (`only`) of one layer alone.
Passed pass(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx, const PassMemory* known,
            PassMemory::Kept* kept, std::optional<int> only, const EditSources* given) {
  const Model& model = *loaded.model;
  const auto trace = std::make_shared<Trace>();
  trace->model = model.info();
  check_source(model, request);
  check_stacks(request.edits, trace->model);
  check_sites(model, request.capture);
  trace->text = request.ids.empty() && request.image.empty() ? request.text : "";
  trace->tokens = tokenize(loaded, request, ctx.stop, ctx.context);
  if (known && !kept && known->saw(request.image)) {  // one of many passes that differ from the same one
    trace->picture = known->trace()->picture;
    trace->patches = known->trace()->patches;
  } else if (model.config().vision) {
    read_picture_into(*trace, model.config(), request.image);
  } else if (model.config().sound) {
    read_sound_into(*trace, model.config(), request.sound, known);
  }
  trace->source = "headscope " + ctx.backend.name();
  for (const Intervention& edit : request.edits)
    if (edit.enabled) trace->source += "; edited " + describe(edit);

  const int n = static_cast<int>(trace->tokens.size());
  const ModelDims& dims = trace->model.dims;
  const std::vector<std::int32_t> ids = trace->ids();
  const TokenLinks links = TokenLinks::of(trace->tokens);
  const std::vector<Intervention> edits =
      model.encoder() ? edits_of(request.edits, Stack::decoder) : request.edits;  // else check_stacks() saw to it
  check_targets(edits, dims, n);
  CaptureSpec spec = request.capture;

  // Of an encoder-decoder: first its encoder, then what the decoder's attention to it needs.
  Passed encoded;
  std::shared_ptr<Trace> cross;
  std::vector<Intervention> cross_edits;
  CaptureSpec cross_spec;
  if (model.encoder()) {
    encoded = pass_encoder(loaded, request, ctx, known, kept);
    cross_edits = edits_of(request.edits, Stack::cross);
    check_targets(cross_edits, trace->model.cross->dims, n, static_cast<int>(encoded.trace->tokens.size()));
    cross_spec = capture_of(request.capture, model.sites(Stack::cross), dims.layers);
    cross = cross_trace(*trace, encoded.trace, cross_spec);
    spec = capture_of(request.capture, model.sites(), dims.layers);
    trace->encoder = encoded.trace;
    trace->cross = cross;
  }
  ModelDims planned = dims;
  if (trace->model.objective == Objective::nothing) planned.vocab = 0;
  trace->plan = plan_capture(spec, planned, n, n);

  const Tensor& beside = trace->patches.defined() ? trace->patches : encoded.memory;
  LayerRange layers;
  ResidualKeeper keeper(dims.layers);
  if (known && !ctx.tap) {
    const int first =
        model.config().stream_is_all() ? known->first_changed(model, trace->tokens, request.edits, beside) : 0;
    if (only) {
      layers.first = std::min(first, *only);
    } else if (known->recorded(request.capture)) {
      layers.first = first;
      if (first > 0) take_below(*trace, *known->trace(), first);  // else the text may be another, embeddings too
      if (cross && first > 0) take_below(*cross, *known->trace()->cross, first);
    } else if (wants_nothing_below(request.capture, first)) {
      layers.first = first;
    }
    if (layers.first > 0) layers.residual = known->before(layers.first);
    for (int i = 1; i <= layers.first; ++i) nth(keeper.found, i) = known->before(i);
  }
  if (only) layers.end = *only + 1;

  Recorder recorder(spec);
  RunRequest of_decoder = request;
  if (cross) std::erase_if(of_decoder.edits, [](const Intervention& e) { return e.target.stack == Stack::encoder; });
  EditScene scene{dims, ids, run_sources(loaded, of_decoder, trace->tokens, ctx, known, given), loaded.model.get()};
  scene.heads_apart = request.capture.sites.contains(SiteKind::result);
  scene.backend = &ctx.backend;
  scene.stack = trace->model.stack;
  scene.stop = ctx.stop;
  const bool cached = known && kept && !ctx.tap && layers.first == 0;
  if (cached) scene.first_row = known->rows_known(model, trace->tokens, request);
  const int known_rows = scene.first_row;
  InterventionTap interventions(edits, scene);
  std::shared_ptr<TextCache> cache;
  if (known_rows > 0) {
    cache = known->kept().cache;
    go_back(*cache, known_rows, n);
  } else if (cached && !known->read(model, trace->tokens) &&
             can_go_on(model, request.edits, request.capture, interventions, n, ctx.backend)) {
    cache = cache_for(model.config(), n, known->most_bytes());
  }
  std::vector<Tap*> taps;
  if (!interventions.empty()) taps.push_back(&interventions);
  if (ctx.tap) taps.push_back(ctx.tap);
  taps.push_back(&recorder);
  if (kept) taps.push_back(&keeper);
  TapChain chain(std::move(taps));
  Ctx own = ctx;
  own.tap = &chain;
  const std::vector<std::int32_t> segments = trace->segments();
  own.segments = std::span(segments).subspan(static_cast<std::size_t>(known_rows));
  own.patches = trace->patches;
  if (n > model.config().context) own.context = n;  // the caller, or an edit, lets positions go on

  MapRequest maps;
  maps.storage = trace->plan.maps;
  maps.links = &links;
  if (!spec.layers.empty()) maps.layers = &spec.layers;
  if (known_rows > 0) maps.before = known->trace()->maps;
  const bool all_logits = trace->model.objective == Objective::next_token
                              ? request.capture.all_logits || request.capture.sites.contains(SiteKind::logits)
                              : trace->model.objective != Objective::image_class;  // which is read in one place

  Recorder cross_recorder(cross_spec);
  std::optional<CrossPass> crossing;
  if (cross) {
    crossing.emplace(cross_edits, scene, cross->model.dims, Encoded{encoded.trace, encoded.memory}, &cross_recorder);
    crossing->source.maps.storage = cross->plan.maps;
    if (!cross_spec.layers.empty()) crossing->source.maps.layers = &cross_spec.layers;
    own.source = &crossing->source;
  }

  const auto start = std::chrono::steady_clock::now();
  ForwardResult result = model.forward(own, std::span(ids).subspan(static_cast<std::size_t>(known_rows)),
                                       cache ? &cache->keys : nullptr, maps, all_logits, layers);
  trace->milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  trace->logits = std::move(result.logits);
  std::ranges::move(result.maps, std::back_inserter(trace->maps));
  trace->sites.merge(recorder.take());
  trace->known_rows = known_rows;
  if (known_rows == 0 && layers.first == 0 && layers.end < 0)
    trace->whole_milliseconds = trace->milliseconds;
  else if (const Trace* const last = known ? known->trace().get() : nullptr)
    trace->whole_milliseconds = last->whole_milliseconds * n / static_cast<double>(last->tokens.size());
  if (known_rows > 0)
    put_rows_before(*trace, keeper.found, *known->trace(), known->kept().residuals, known_rows, all_logits, *cache,
                    ctx.backend);
  if (cross) {
    cross->milliseconds = trace->milliseconds;
    cross->whole_milliseconds = trace->whole_milliseconds;
    std::ranges::move(result.cross_maps, std::back_inserter(cross->maps));
    cross->sites.merge(cross_recorder.take());
  }
  if (kept) {
    kept->residuals = std::move(keeper.found);
    if (layers.first == dims.layers && known->trace() && !ctx.tap) cache = known->kept().cache;  // the same pass again
    kept->cache = std::move(cache);
    kept->sources = std::move(scene.sources);
    kept->beside = beside;
  }
  return {trace, result.memory};
}
}  // namespace

Encoded encode(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx) {
  check_source(*loaded.model, request);
  const Passed passed = pass_encoder(loaded, request, ctx, nullptr, nullptr);
  return {passed.trace, passed.memory};
}

RunRequest encoder_request(const Model& model, const RunRequest& request) {
  RunRequest own = request;
  own.text = request.source;
  own.ids = request.source_ids;
  own.ids_are_whole = !own.ids.empty();
  own.source.clear();
  own.source_ids.clear();
  own.masked.clear();
  own.edits = edits_of(request.edits, Stack::encoder);
  own.capture = capture_of(request.capture, model.sites(Stack::encoder), model.encoder()->config().dims.layers);
  return own;
}

std::shared_ptr<const Trace> run(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx) {
  return pass(loaded, request, ctx, nullptr, nullptr, std::nullopt).trace;
}

std::shared_ptr<const Trace> run(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx,
                                 PassMemory& memory) {
  if (ctx.tap) return run(loaded, request, ctx);
  PassMemory::Kept kept;
  const std::shared_ptr<const Trace> trace = pass(loaded, request, ctx, &memory, &kept, std::nullopt).trace;
  memory.keep(loaded.model, request, trace, std::move(kept));
  return trace;
}

std::shared_ptr<const Trace> run_beside(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx,
                                        const PassMemory& memory, const EditSources& known) {
  return pass(loaded, request, ctx, ctx.tap ? nullptr : &memory, nullptr, std::nullopt, &known).trace;
}

EditSources run_edit_sources(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx) {
  RunRequest own = request;
  if (loaded.model->encoder())  // whose edits take from runs of its own
    std::erase_if(own.edits, [](const Intervention& edit) { return edit.target.stack == Stack::encoder; });
  return run_sources(loaded, own, tokenize(loaded, request), ctx, nullptr, nullptr);
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
  return pass(loaded, one, ctx, &memory, nullptr, layer).trace;
}

}  // namespace headscope
