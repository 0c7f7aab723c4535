#include "app/state/positions_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/state/positions_jobs.h"
#include "core/edits/position_edit.h"

namespace headscope {

namespace {
constexpr int long_times = 4;  // the trained context
}

Index PositionsDesk::query() const {
  const Index n = vectors_ ? vectors_->tokens() : 1;
  return std::clamp<Index>(view.query.value_or(explorer_.state().document.query.value_or(n - 1)), 0, n - 1);
}

Index PositionsDesk::key() const {
  const Index m = query();
  Index usual = std::max<Index>(m - 4, 0);
  if (const auto& pinned = explorer_.state().document.key) {
    usual = *pinned;
  } else if (const AttentionMap* map = explorer_.results().map(explorer_.state().document.selected);
             map && m < map->n_query()) {
    // The strongest key but the first, on which sinks draw every head.
    float most = 0;
    for (Index j = 1; j <= m; ++j)
      if (const float weight = map->weight(m, j); weight > most) most = weight, usual = j;
  }
  return std::clamp<Index>(view.key.value_or(usual), 0, m);
}

RotaryConfig PositionsDesk::own_rotary() const {
  const auto& model = explorer_.results().model.model;
  return model && model->config().position == PositionKind::rotary ? model->config().rotary : RotaryConfig{};
}

RotaryConfig PositionsDesk::rotary() const {
  RotaryConfig own = own_rotary();
  if (view.base > 0) own.base = view.base;
  const auto& model = explorer_.results().model.model;
  if (view.scaling == RotaryConfig::Scaling::none || !model) return own;
  return rescaled(own, view.scaling, view.factor, model->config().context);
}

std::optional<SetPositions> PositionsDesk::edit() const {
  using Method = SetPositions::Method;
  const auto& model = explorer_.results().model.model;
  if (!model || !view.in_model) return std::nullopt;
  const PositionKind own = model->config().position;
  SetPositions edit;
  if (view.method == "rope") {
    if (own == PositionKind::rotary && !changed()) return std::nullopt;
    edit.method = Method::rope;
    if (view.base > 0) edit.base = view.base;
    if (view.scaling != RotaryConfig::Scaling::none) {
      edit.scaling = view.scaling;
      edit.factor = view.factor;
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
  if (view.method == "t5" && view.fitted && !fitted_.empty()) {
    edit.method = Method::t5;
    edit.max_distance = view.max_distance;
    edit.bias = fitted_;
    return edit;
  }
  if (view.method == "learned" && own == PositionKind::learned && view.table_shift > 0) {
    edit.method = Method::shift;
    edit.shift = view.table_shift;
    return edit;
  }
  return std::nullopt;
}

int PositionsDesk::chunk() const {
  const auto& model = explorer_.results().model.model;
  const int context = model ? model->config().context : 2;
  return std::clamp(view.chunk > 0 ? view.chunk : context * 3 / 4, 1, std::max(context - 1, 1));
}

void PositionsDesk::keep() {
  const auto wanted = edit();
  if (!wanted) return;
  std::vector<Intervention> edits = explorer_.state().document.edits;
  std::erase_if(edits, [](const Intervention& each) { return each.action.as<SetPositions>(); });
  edits.push_back({{}, *wanted});
  explorer_.close_step();
  explorer_.set_edits(std::move(edits));
}

void PositionsDesk::update() {
  const Results& results = explorer_.results();
  if (!results.run || !results.model.model) return;
  ask_vectors();
  ask_effect();
  if (view.past_context && (view.method == "rope" || view.method == "chunks")) ask_long();
  if (view.method == "none") ask_permuted();
}

void PositionsDesk::ask_vectors() {
  const Results& results = explorer_.results();
  const HeadId head = explorer_.state().document.selected;
  const int d_head = results.model.model->config().dims.d_head;
  const std::string key = fmt::format("{} {}.{} {} {} | {}", static_cast<int>(view.source), head.layer, head.head,
                                      view.seed, view.typed_query, view.typed_key);
  const std::string fit = fmt::format(" {} {} {}", view.method == "t5", view.buckets, view.max_distance);
  if (vectors_run_ == results.run && vectors_key_ == key + fit) return;
  vectors_run_ = results.run;
  vectors_key_ = key + fit;
  explorer_.compute("positions.vectors",
                    [this, alive = std::weak_ptr(alive_), run = results.run, model = results.model, head, d_head,
                     options = view, backend = explorer_.backend()](Worker::Job& job) -> Worker::Deliver {
                      std::shared_ptr<const HeadVectors> made =
                          options.source == PositionsView::Source::random
                              ? jobs::random_vectors(*run, d_head, options.seed)
                          : options.source == PositionsView::Source::typed
                              ? jobs::typed_vectors(*run, options.typed_query, options.typed_key)
                              : jobs::head_vectors(model, *run, head, Ctx{*backend, nullptr, job.stop});
                      std::vector<float> fitted;
                      if (options.method == "t5")
                        fitted = jobs::fitted_bias(*made, options.buckets, options.max_distance);
                      return [this, alive, made, fitted] {
                        if (alive.expired()) return;
                        vectors_ = made;
                        fitted_ = fitted;
                      };
                    });
}

void PositionsDesk::ask_effect() {
  const Results& results = explorer_.results();
  const auto wanted = edit();
  const std::string key = wanted ? text_of(*wanted) : "";
  if (effect_run_ == results.run && effect_key_ == key) return;
  effect_run_ = results.run;
  effect_key_ = key;
  if (!wanted) {
    explorer_.forget("positions.effect");
    effect_.reset();
    return;
  }
  explorer_.compute("positions.effect",
                    [this, alive = std::weak_ptr(alive_), run = results.run, model = results.model, edit = *wanted,
                     backend = explorer_.backend()](Worker::Job& job) -> Worker::Deliver {
                      const auto effect = jobs::positions_effect(model, *run, edit, Ctx{*backend, nullptr, job.stop});
                      return [this, alive, effect] {
                        if (!alive.expired()) effect_ = effect;
                      };
                    });
}

void PositionsDesk::ask_long() {
  const Results& results = explorer_.results();
  const std::string key = fmt::format("{} {} {} {} {}", results.model_reading, rotary().base, view.factor, chunk(),
                                      results.run->request.text.size() + results.run->request.ids.size());
  if (long_key_ == key) return;
  long_key_ = key;
  explorer_.compute("positions.long",
                    [this, alive = std::weak_ptr(alive_), run = results.run, model = results.model,
                     folder = results.model_folder, base = rotary().base, factor = view.factor, chunk = chunk(),
                     backend = explorer_.backend()](Worker::Job& job) -> Worker::Deliver {
                      const auto made = jobs::past_context(model, folder, *run, base, factor, chunk, long_times,
                                                           Ctx{*backend, nullptr, job.stop, &job.progress});
                      return [this, alive, made] {
                        if (!alive.expired()) long_ = made;
                      };
                    });
}

void PositionsDesk::ask_permuted() {
  const Results& results = explorer_.results();
  if (permuted_run_ == results.run) return;
  permuted_run_ = results.run;
  explorer_.compute("positions.permuted",
                    [this, alive = std::weak_ptr(alive_), run = results.run, model = results.model,
                     backend = explorer_.backend()](Worker::Job& job) -> Worker::Deliver {
                      const auto made = jobs::permuted(model, *run, Ctx{*backend, nullptr, job.stop});
                      return [this, alive, made] {
                        if (!alive.expired()) permuted_ = made;
                      };
                    });
}

}  // namespace headscope
