#include "core/generate/streaming.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/base/words.h"
#include "core/edits/mask_edit.h"
#include "core/edits/position_rows.h"
#include "core/metrics/metric.h"
#include "core/metrics/next_token.h"
#include "core/model/weights.h"

namespace headscope {

namespace {
/// Counts positions that are told as queries meet keys (rotations, ALiBi) inside a cache of `window` tokens, of which
/// the first `sinks` stay.
class CachePositions final : public Tap {
 public:
  CachePositions(const ModelConfig& config, Index window, Index sinks)
      : config_(config), window_(window), sinks_(sinks) {
    for (int layer = 0; layer < config.dims.layers && rotary(); ++layer)
      tables_.push_back(distance_table(config.rotary_of(layer), config.dims.widths_of(layer).d_head, window));
  }
  HeadRule head_rule(HeadId id, HeadRule usual) const override {
    const auto head = static_cast<std::size_t>(id.head);
    scales_.resize(std::max(scales_.size(), head + 1));
    scales_[head] = usual.scale;
    return usual;
  }
  bool wants(Site site) const override {
    if (!rotary()) return !config_.alibi_slopes.empty() && site.kind == SiteKind::attn_scores;
    // The kind first: a site of no layer has none to ask about.
    return (site.kind == unturned_site(config_, false) || site.kind == unturned_site(config_, true) ||
            site.kind == SiteKind::attn_scores) &&
           config_.turns(site.layer);
  }
  Tensor at(Site site, const Tensor& value) override {
    if (site.kind == unturned_site(config_, false)) before_.q = value;
    if (site.kind == unturned_site(config_, true)) before_.k = value;
    if (site.kind != SiteKind::attn_scores || value.dim(1) <= window_) return value;
    Tensor scores = value.copy();  // (head, query, key)
    for (Index head = 0; head < scores.dim(0); ++head)
      for (Index i = window_; i < scores.dim(1); ++i)
        for (Index j = 0; j < sinks_; ++j)
          scores.ref(head, i, j) =
              rotary() ? turned_score(site.layer, head, i, j)
                       : scores.at(head, i, j) + static_cast<float>(alibi_of_query(config_, head, i) -
                                                                    alibi_of_query(config_, head, window_ - 1));
    return scores;
  }

 private:
  bool rotary() const { return config_.position == PositionKind::rotary; }
  float turned_score(int layer, Index head, Index query, Index sink) const {
    return nth(scales_, head) * score_at_distance(before_, nth(tables_, layer), config_.rotary_of(layer).layout, query,
                                                  head, sink, config_.dims.kv_of(static_cast<int>(head), layer),
                                                  window_ - 1 - sink);
  }

  const ModelConfig& config_;
  Index window_, sinks_;
  std::vector<RotaryTable> tables_;  // by layer, of rotations
  BeforeRotation before_;
  mutable std::vector<float> scales_;  // of the layer that runs, by head; asked of the const head_rule()
};

std::vector<double> masked_losses(const LoadedModel& model, std::span<const std::int32_t> ids, const std::string& mask,
                                  const Ctx& ctx) {
  RunRequest request;
  request.ids.assign(ids.begin(), ids.end());
  request.add_bos = false;
  request.capture.maps = MapStorage::none;
  if (!mask.empty()) request.edits.push_back({{}, SetMask{mask}});
  Ctx own = ctx;
  if (const auto n = static_cast<int>(ids.size()); n > model.model->config().context) own.context = n;
  return token_losses(*run(model, request, own));
}
}  // namespace

std::string_view title_of(CachePolicy policy) {
  switch (policy) {
    case CachePolicy::whole:
      return to_say("whole cache");
    case CachePolicy::window:
      return to_say("window only");
    case CachePolicy::sinks:
      return to_say("window and sinks");
    case CachePolicy::recompute:
      return to_say("recomputed window");
  }
  return "";
}

int streamed_tokens(const ModelConfig& config) {
  return config.ends_at_context() ? config.context : std::max(4 * config.context, 1024);
}

std::vector<double> streaming_losses(const LoadedModel& model, std::span<const std::int32_t> ids, CachePolicy policy,
                                     const StreamingSettings& settings, const Ctx& ctx) {
  const auto n = static_cast<int>(ids.size());
  const ModelConfig& config = model.model->config();
  if (!config.causal || config.vision || model.model->encoder())
    throw Error("streaming", "a model that writes a text token by token, and keeps keys and values of what it read",
                config.name);
  if (n < 2 || (n > config.context && config.ends_at_context()))
    throw Error("streaming", fmt::format("a text of 2 to {} tokens, the context of {}", config.context, config.name),
                std::to_string(n));
  if (settings.window > config.context)
    throw Error("streaming",
                fmt::format("a window of at most {} tokens, the context of {}", config.context, config.name),
                std::to_string(settings.window));
  if (!config.dims.attends())
    throw Error("streaming", "a model whose cache grows with the text", config.name,
                config.dims.any_attends()
                    ? "some layers keep a state, which holds what was evicted elsewhere: the caches are no window"
                    : "a state is as large for a text of any length: nothing has to be evicted");
  if (!config.windows.empty() || !config.chunks.empty() || config.score_cap > 0)
    throw Error("streaming", "a model whose layers see the whole text, by scores that nothing bends", config.name,
                "the cache of one with windows, chunks or soft caps of its own is not counted again");
  if (config.position == PositionKind::rotary && in_text(config.rotary, n) != config.rotary)
    throw Error("streaming", fmt::format("a text of at most {} tokens", config.rotary.original_context),
                std::to_string(n), fmt::format("{} turns keys otherwise in longer texts", config.name));
  if (!config.told_by_distance(n))
    throw Error("streaming", "a model whose rotation tells distances", config.name,
                "its scores depend on where query and key stand, too: those of a cache are not counted again");
  if (settings.sinks < 1 || settings.sinks >= settings.window)
    throw Error("streaming", "at least one sink, and a window wider than the sinks",
                fmt::format("{} sinks in a window of {}", settings.sinks, settings.window));
  switch (policy) {
    case CachePolicy::whole:
      return masked_losses(model, ids, "", ctx);
    case CachePolicy::window:
      return masked_losses(model, ids, fmt::format("window {}", settings.window), ctx);
    case CachePolicy::sinks: {
      const std::string mask = fmt::format("sink {} window {}", settings.sinks, settings.window - settings.sinks);
      CachePositions positions(config, settings.window, settings.sinks);
      return masked_losses(model, ids, mask, {ctx.backend, &positions, ctx.stop, ctx.progress});
    }
    case CachePolicy::recompute:
      break;
  }
  std::vector<double> losses =
      masked_losses(model, ids.first(static_cast<std::size_t>(std::min(n, settings.window + 1))), "", ctx);
  losses.resize(static_cast<std::size_t>(std::min(n - 1, settings.window)));
  for (int end = settings.window + 1; end < n; ++end) {  // predicts token `end`
    const auto part =
        ids.subspan(static_cast<std::size_t>(end - settings.window), static_cast<std::size_t>(settings.window));
    const Tensor logits =
        model.model->forward({ctx.backend, ctx.tap, ctx.stop, nullptr}, part, nullptr, {}, false).logits;
    losses.push_back(next_token_loss(logits.select(0, 0), nth(ids, end)));
    if (ctx.progress) *ctx.progress = static_cast<float>(end) / static_cast<float>(n);
  }
  return losses;
}

std::vector<FirstTokenShare> first_token_shares(const LoadedModel& model, std::span<const std::int32_t> ids,
                                                const Ctx& ctx) {
  RunRequest request;
  const auto most = static_cast<std::size_t>(model.model->config().context);
  const auto read = ids.first(std::min(ids.size(), most));
  request.ids.assign(read.begin(), read.end());
  request.add_bos = false;
  request.capture.all_logits = false;
  const auto trace = run(model, request, ctx);
  const TextMarks text = TextMarks::of(trace->tokens);
  std::vector<FirstTokenShare> shares;
  for (const AttentionMap& map : trace->maps)
    shares.push_back({map.id(), metric("sink").value({map, text}), metric("sink").chance({map, text})});
  std::ranges::stable_sort(shares, std::ranges::greater(), &FirstTokenShare::share);
  return shares;
}

}  // namespace headscope
