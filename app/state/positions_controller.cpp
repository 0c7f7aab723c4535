#include "app/state/positions_controller.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/state/positions_jobs.h"
#include "core/edits/position_edit.h"
#include "core/trace/layer_kinds.h"

namespace headscope {

namespace {
constexpr int long_times = 4;  // the trained context
}

void keep_possible(PositionsView& view) {
  view.dimensions -= view.dimensions % 2;
  view.buckets -= view.buckets % 4;
  view.max_distance = std::max(view.max_distance, view.buckets / 2 + 1);
}

bool needs_vectors(std::string_view method) {
  constexpr std::string_view methods[] = {"rope", "shaw", "transformer-xl", "deberta", "t5"};
  return std::ranges::count(methods, method) > 0;
}

Index PositionsController::query() const {
  const Index n = vectors() ? vectors()->tokens() : 1;
  return std::clamp<Index>(view.query.value_or(editor_.document().query.value_or(n - 1)), 0, n - 1);
}

Index PositionsController::key() const {
  const Index m = query();
  Index usual = std::max<Index>(m - 4, 0);
  if (const auto& pinned = editor_.document().key) {
    usual = *pinned;
  } else if (const AttentionMap* map = run_.results().map(editor_.document().selected);
             map && !map->place().between_texts && m < std::min(map->n_query(), map->n_key())) {
    // The strongest key but the first, on which sinks draw every head. Of cross-attention keys are the source's.
    float most = 0;
    for (Index j = 1; j <= m; ++j)
      if (const float weight = map->weight(m, j); weight > most) most = weight, usual = j;
  }
  return std::clamp<Index>(view.key.value_or(usual), 0, m);
}

RotaryConfig PositionsController::own_rotary() const {
  const auto& model = run_.results().model.model;
  if (!model || model->config().position != PositionKind::rotary) return RotaryConfig{};
  const int layer = editor_.document().selected.layer;
  const auto& trace = run_.results().run ? run_.results().run->trace : nullptr;
  return in_text(model->config().rotary_of(std::clamp(layer, 0, model->config().dims.layers - 1)),
                 trace ? static_cast<Index>(trace->tokens.size()) : 0);
}

RotaryConfig PositionsController::rotary() const {
  RotaryConfig own = own_rotary();
  if (view.base > 0) own.base = view.base;
  const auto& model = run_.results().model.model;
  if (view.scaling == RotaryConfig::Scaling::none || !model) return own;
  RotaryConfig config = rescaled(own, view.scaling, view.factor, model->config().context);
  if (view.scaling == RotaryConfig::Scaling::yarn) config.ramp = view.ramp;
  return config;
}

std::optional<SetPositions> PositionsController::edit() const {
  using Method = SetPositions::Method;
  const auto& model = run_.results().model.model;
  if (!model || !view.in_model) return std::nullopt;
  const PositionKind own = model->config().position;
  SetPositions edit;
  if (view.method == "rope") {
    const auto [least, most] = least_and_most(model->config().dims, &LayerWidths::d_head);
    if (own == PositionKind::rotary ? !changed() : least % 2 != 0 || most % 2 != 0) return std::nullopt;
    edit.method = Method::rope;
    if (view.base > 0) edit.base = view.base;
    if (view.scaling != RotaryConfig::Scaling::none) {
      edit.scaling = view.scaling;
      edit.factor = view.factor;
      if (view.scaling == RotaryConfig::Scaling::yarn) edit.ramp = view.ramp;
    }
    return edit;
  }
  if (view.method == "none") return edit;
  if (view.method == "sinusoidal") {
    edit.method = Method::sinusoidal;
    return edit;
  }
  if (view.method == "alibi") {
    edit.method = Method::alibi;
    edit.on_top = view.on_top;
    return edit;
  }
  if (view.method == "chunks") {
    if (own != PositionKind::rotary) return std::nullopt;
    edit.method = Method::chunks;
    edit.chunk = chunk();
    return edit;
  }
  if (view.method == "t5" && view.fitted && !fitted().empty()) {
    edit.method = Method::t5;
    edit.max_distance = view.max_distance;
    edit.bias = fitted();
    return edit;
  }
  if (view.method == "learned" && own == PositionKind::learned && view.table_shift > 0) {
    edit.method = Method::shift;
    edit.shift = view.table_shift;
    return edit;
  }
  return std::nullopt;
}

std::shared_ptr<const RotaryView> PositionsController::rotary_view() {
  const auto& vectors = this->vectors();
  if (!vectors) return nullptr;
  const RotaryConfig shown = rotary(), own = own_rotary();
  const std::string key = fmt::format("{} {} {} {} {} {} {} {}", query(), this->key(), view.shift, shown.base,
                                      static_cast<int>(shown.scaling), shown.factor, static_cast<int>(shown.ramp),
                                      static_cast<int>(view.layout));
  if (rotary_ && rotary_key_ == key && rotary_of_ == vectors) return rotary_;
  auto made = std::make_shared<RotaryView>();
  made->query = query();
  made->key = this->key();
  made->shift = view.shift;
  made->config = shown;
  made->own = own;
  made->scale = vectors->scale;
  made->causal = results().model.model->config().causal;
  made->context = results().model.model->config().context;
  made->parts = rotary_parts(row_of(vectors->q, made->query), row_of(vectors->k, made->key), view.layout);
  made->source = fmt::format("q at {}, k at {}: {}", made->query, made->key, vectors->source);
  rotary_ = made;
  rotary_key_ = key;
  rotary_of_ = vectors;
  return made;
}

int PositionsController::context() const {
  const auto& model = run_.results().model.model;
  return model ? model->config().context : 2;
}

int PositionsController::chunk() const {
  return std::clamp(view.chunk > 0 ? view.chunk : context() * 3 / 4, 1, std::max(context() - 1, 1));
}

void PositionsController::keep() {
  const auto wanted = edit();
  if (!wanted) return;
  std::vector<Intervention> edits = editor_.document().edits;
  std::erase_if(edits, [](const Intervention& each) { return each.action.as<SetPositions>(); });
  edits.push_back({{}, *wanted});
  editor_.history().close_step();
  editor_.set_edits(std::move(edits));
}

void PositionsController::update() {
  const Results& results = run_.results();
  if (!results.run || !results.model.model) return;
  // A layer that mixes tokens by a state has no queries and keys; most pages need none.
  const int layer = editor_.document().selected.layer;
  if (view.source != PositionsView::Source::head || !(holds_state(results, layer) || refusal())) ask_vectors();
  ask_effect();
  if (view.method == "past" || (view.past_context && (view.method == "rope" || view.method == "chunks"))) ask_long();
  if (view.method == "naive" && !reads_pictures(results)) ask_naive();
  if (view.method == "none") ask_permuted();
}

const char* PositionsController::refusal() const {
  const Results& results = run_.results();
  if (view.source != PositionsView::Source::head || !results.run || !results.model.model) return nullptr;
  return jobs::beyond_distances(results.model.model->config(), editor_.document().selected.layer,
                                static_cast<std::int64_t>(results.run->trace->tokens.size()));
}

void PositionsController::ask_vectors() {
  const Results& results = run_.results();
  const int turning = own_rotary().width;  // of a head
  const VectorsOf key{results.run,         view.source,      editor_.document().selected,
                      view.seed,           view.typed_query, view.typed_key,
                      view.method == "t5", view.buckets,     view.max_distance};
  vectors_.want(jobs_, key, [key, turning, model = results.model](const Ctx& ctx) {
    using Source = PositionsView::Source;
    Vectors made;
    made.vectors =
        key.source == Source::random
            ? jobs::random_vectors(*key.run,
                                   turning > 0 ? turning : model.model->config().dims.widths_of(key.head.layer).d_head,
                                   key.seed)
        : key.source == Source::typed ? jobs::typed_vectors(*key.run, key.query, key.key)
                                      : jobs::head_vectors(model, *key.run, key.head, ctx);
    if (key.fits) made.fitted = jobs::fitted_bias(*made.vectors, key.buckets, key.max_distance);
    return made;
  });
}

void PositionsController::ask_effect() {
  const Results& results = run_.results();
  const auto wanted = edit();
  if (!wanted) {
    effect_.let_go(jobs_);
    return;
  }
  effect_.want(jobs_, {results.run, *wanted},
               [run = results.run, model = results.model, edit = *wanted](const Ctx& ctx) {
                 return jobs::positions_effect(model, *run, edit, ctx);
               });
}

void PositionsController::ask_long() {
  const Results& results = run_.results();
  const std::vector<std::int32_t> ids = results.run->trace->ids();
  // The text on screen counts only where it is longer than the trained length: else the same stories need no other
  // pass.
  const bool longer = static_cast<int>(ids.size()) > results.model.model->config().context;
  const LongRunOf key{results.model.model,
                      results.run->request.edits,
                      longer ? ids : std::vector<std::int32_t>(),
                      {rotary().base, view.factor, view.ramp, chunk(), long_times}};
  long_.want(jobs_, key, [key, model = results.model, folder = results.model_folder](const Ctx& ctx) {
    RunRequest request;
    request.edits = key.edits;
    return past_context(model, folder, request, key.text, key.settings, ctx);
  });
}

void PositionsController::ask_naive() {
  naive_.want(jobs_, results().model.model,
              [model = results().model](const Ctx&) { return naive_codes(*model.model); });
}

void PositionsController::ask_permuted() {
  const Results& results = run_.results();
  permuted_.want(jobs_, results.run, [run = results.run, model = results.model](const Ctx& ctx) {
    return jobs::permuted(model, *run, ctx);
  });
}

}  // namespace headscope
