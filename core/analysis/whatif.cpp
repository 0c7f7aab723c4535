#include "core/analysis/whatif.h"

#include <algorithm>

#include "core/base/nth.h"
#include "core/metrics/next_token.h"

namespace headscope {

namespace {
class Zeroes final : public Tap {
 public:
  explicit Zeroes(const std::vector<HiddenActivation>& which) : which_(which) {}
  bool wants(Site site) const override {
    return site.kind == SiteKind::resid_post &&
           std::ranges::any_of(which_, [&](const HiddenActivation& a) { return a.layer == site.layer; });
  }
  Tensor at(Site site, const Tensor& value) override {
    Tensor changed = value.copy();
    for (const HiddenActivation& a : which_)
      if (a.layer == site.layer) changed.ref(a.position, a.dimension) = 0;
    return changed;
  }

 private:
  const std::vector<HiddenActivation>& which_;
};

class OtherRow final : public Tap {
 public:
  OtherRow(Site site, int head, Index query, const std::vector<double>& weights)
      : site_(site), head_(head), query_(query), weights_(weights) {}
  bool wants(Site site) const override { return site == site_; }
  Tensor at(Site, const Tensor& value) override {
    Tensor changed = value.copy();
    for (Index j = 0; j < changed.dim(2); ++j)
      changed.ref(head_, query_, j) =
          j < static_cast<Index>(weights_.size()) ? static_cast<float>(nth(weights_, j)) : 0.0f;
    return changed;
  }

 private:
  Site site_;
  Index head_, query_;
  const std::vector<double>& weights_;
};

std::vector<double> sink_by_layer(const Trace& trace) {
  const ModelDims& dims = trace.model.dims;
  std::vector<double> out(static_cast<std::size_t>(dims.layers), 0);
  for (const AttentionMap& map : trace.maps) {
    double sum = 0;
    const std::vector<float>& first = map.stats().first;
    for (std::size_t i = 1; i < first.size(); ++i) sum += static_cast<double>(first[i]);
    if (first.size() > 1)
      nth(out, map.layer()) += sum / static_cast<double>(first.size() - 1) / dims.heads_of(map.layer());
  }
  return out;
}
}  // namespace

ZeroedActivations zero_activations(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx,
                                   const std::vector<HiddenActivation>& which) {
  RunRequest both = request;
  both.capture.maps = MapStorage::automatic;
  both.capture.sites.clear();
  both.capture.all_logits = true;
  const auto before = run(loaded, both, ctx);
  Zeroes zeroes(which);
  Ctx changed = ctx;
  changed.tap = &zeroes;
  const auto after = run(loaded, both, changed);
  return {which,
          sink_by_layer(*before),
          sink_by_layer(*after),
          mean_loss(*before),
          mean_loss(*after),
          next_token_change(*before, *after, 1).kl};
}

RowReplaced replace_row(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx, const Trace& before,
                        HeadId head, Index query, const std::vector<double>& weights) {
  RunRequest plain = request;
  plain.capture = {.maps = MapStorage::none};
  OtherRow row({SiteKind::pattern, head.layer}, head.head, query, weights);
  Ctx changed = ctx;
  changed.tap = &row;
  const auto after = run(loaded, plain, changed);
  RowReplaced out;
  out.change = next_token_change(before, *after, 6, static_cast<int>(query));
  out.kl = out.change.kl;
  out.kl_last = next_token_change(before, *after, 1).kl;
  return out;
}

}  // namespace headscope
