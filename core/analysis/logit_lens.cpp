#include "core/analysis/logit_lens.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "core/analysis/need.h"
#include "core/base/nth.h"
#include "core/base/words.h"

namespace headscope {

namespace {
constexpr Index lens_rows_at_once = 64;  // positions whose logits stand in memory together

/// One row of logits read out.
class RowReader {
 public:
  explicit RowReader(std::span<const float> logits) : logits_(logits) {
    for (const float v : logits) most_ = std::max(most_, static_cast<double>(v));
    double sum = 0;
    for (const float v : logits) sum += std::exp(static_cast<double>(v) - most_);
    total_ = most_ + std::log(sum);
  }
  double log_probability(std::size_t id) const { return static_cast<double>(logits_[id]) - total_; }
  double entropy() const {
    double sum = 0;
    for (std::size_t id = 0; id < logits_.size(); ++id) sum -= std::exp(log_probability(id)) * log_probability(id);
    return std::max(0.0, sum);
  }
  /// Of `answer` from this row.
  double kl_from(const RowReader& answer) const {
    double sum = 0;
    for (std::size_t id = 0; id < logits_.size(); ++id)
      sum += std::exp(answer.log_probability(id)) * (answer.log_probability(id) - log_probability(id));
    return std::max(0.0, sum);
  }
  std::int32_t rank(std::int32_t token) const {
    const float value = nth(logits_, token);
    std::int32_t rank = 1;
    for (std::size_t id = 0; id < logits_.size(); ++id)
      rank += logits_[id] > value || (logits_[id] == value && static_cast<std::int32_t>(id) < token);
    return rank;
  }
  void top(std::span<NextToken> out) const {
    std::size_t filled = 0;
    for (std::size_t id = 0; id < logits_.size(); ++id) {
      if (filled == out.size() && !(logits_[id] > out[filled - 1].logit)) continue;
      std::size_t at = filled < out.size() ? filled++ : filled - 1;
      for (; at > 0 && logits_[id] > out[at - 1].logit; --at) out[at] = out[at - 1];
      out[at] = {static_cast<std::int32_t>(id), std::exp(log_probability(id)), logits_[id]};
    }
  }

 private:
  std::span<const float> logits_;
  double most_ = -std::numeric_limits<double>::infinity(), total_ = 0;
};
}  // namespace

std::vector<LogitLens::Stage> residual_stages(const ModelDims& dims) {
  // A block whose parts read the same stream leaves it once.
  std::vector<LogitLens::Stage> stages{{{SiteKind::resid_pre, 0}, to_say("embedding")}};
  for (int layer = 0; layer < dims.layers; ++layer) {
    const bool mlp = dims.has_mlp(layer);
    const char *const mixer = dims.attends(layer) ? "attn" : "mixer", *const last = dims.parallel ? "block"
                                                                                    : mlp         ? "mlp"
                                                                                                  : mixer;
    if (mlp && dims.has_mid()) stages.push_back({{SiteKind::resid_mid, layer}, fmt::format("{} {}", layer, mixer)});
    // The last of these leaves the block.
    std::vector<std::pair<SiteKind, const char*>> ends;
    const char* const behind = dims.d_layer > 0 ? "input" : dims.adds_behind(layer) ? "convolution" : last;
    if (dims.adds_behind(layer)) ends.emplace_back(SiteKind::resid_late, last);
    if (dims.stream_scales) ends.emplace_back(SiteKind::resid_unscaled, behind);
    ends.emplace_back(SiteKind::resid_post, dims.stream_scales ? "scale" : behind);
    for (const auto& [site, part] : ends) stages.push_back({{site, layer}, fmt::format("{} {}", layer, part)});
  }
  return stages;
}

std::set<SiteKind> logit_lens_sites(const Model& model) {
  std::set<SiteKind> sites;
  for (const LogitLens::Stage& stage : residual_stages(model.config().dims)) sites.insert(stage.site.kind);
  return sites;
}

std::vector<std::int32_t> follow(const Trace& trace, std::int32_t token) {
  std::vector<std::int32_t> out(trace.tokens.size(), token);
  if (token >= 0) return out;
  for (const Target& target : targets(trace)) nth(out, target.row) = target.token;
  return out;
}

LogitLens logit_lens(const Model& model, const Ctx& ctx, const Trace& trace, std::span<const std::int32_t> followed,
                     int keep) {
  assert(!ctx.tap && !ctx.tape && keep >= 1);
  need_logits(trace.model);
  need_one_unembedding(model.config(), "logit lens");
  const auto n = static_cast<Index>(trace.tokens.size());
  if (!followed.empty() && static_cast<Index>(followed.size()) != n)
    throw Error("logit lens", fmt::format("a token to follow at each of {} positions", n),
                std::to_string(followed.size()));
  for (const std::int32_t token : followed)
    if (token >= 0) check_token(trace, token);

  LogitLens out;
  out.stages = residual_stages(model.config().dims);
  out.positions = n;
  out.kept = std::min(keep, model.config().dims.vocab);
  const auto stages = static_cast<Index>(out.stages.size());
  out.top.resize(static_cast<std::size_t>(stages * n * out.kept));
  out.entropy = Tensor::zeros({stages, n});
  out.kl = Tensor::zeros({stages, n});
  if (!followed.empty()) {
    out.followed.assign(followed.begin(), followed.end());
    out.followed_probability = Tensor::full({stages, n}, std::numeric_limits<float>::quiet_NaN());
    out.followed_logit = out.followed_probability.copy();
    out.followed_rank.assign(static_cast<std::size_t>(stages * n), 0);
  }

  const std::vector<std::int32_t> ids = trace.ids();
  const Ctx own{.backend = ctx.backend, .stop = ctx.stop};
  const auto decode = [&](const Tensor& residual, Index begin, Index end) {
    const LayerRange behind_all{.first = model.config().dims.layers,
                                .residual = residual.slice(0, begin, end).packed()};
    const auto tokens = std::span(ids).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
    return model.forward(own, tokens, nullptr, {}, true, behind_all).logits.packed();
  };
  Index done = 0;
  for (Index begin = 0; begin < n; begin += lens_rows_at_once) {
    const Index end = std::min(n, begin + lens_rows_at_once);
    const Tensor answer = decode(need(trace, out.stages.back().site), begin, end);
    for (Index stage = 0; stage < stages; ++stage) {
      if (ctx.stop.stop_requested()) throw Cancelled();
      const Tensor logits = stage + 1 == stages ? answer : decode(need(trace, nth(out.stages, stage).site), begin, end);
      const auto row_of = [&](const Tensor& all, Index row) {
        const auto width = static_cast<std::size_t>(all.dim(1));
        return all.values().subspan(static_cast<std::size_t>(row) * width, width);
      };
      ctx.backend.pool().parallel(static_cast<int>(end - begin), [&](int row, int) {
        const RowReader reader(row_of(logits, row));
        const Index position = begin + row;
        const std::size_t at = static_cast<std::size_t>(stage * n + position);
        reader.top(
            std::span(out.top).subspan(at * static_cast<std::size_t>(out.kept), static_cast<std::size_t>(out.kept)));
        out.entropy.ref(stage, position) = static_cast<float>(reader.entropy());
        out.kl.ref(stage, position) =
            stage + 1 == stages ? 0.0f : static_cast<float>(reader.kl_from(RowReader(row_of(answer, row))));
        if (followed.empty() || nth(followed, position) < 0) return;
        const std::int32_t token = nth(followed, position);
        const auto id = static_cast<std::size_t>(token);
        out.followed_probability.ref(stage, position) = static_cast<float>(std::exp(reader.log_probability(id)));
        out.followed_logit.ref(stage, position) = logits.at(row, token);
        out.followed_rank[at] = reader.rank(token);
      });
      done += end - begin;
      if (ctx.progress) *ctx.progress = static_cast<float>(done) / static_cast<float>(stages * n);
    }
  }
  return out;
}

}  // namespace headscope
