#include "core/analysis/token_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/base/nth.h"
#include "core/edits/intervention.h"
#include "core/metrics/next_token.h"
#include "core/tensor/gap.h"

namespace headscope {

namespace {
void need_losses(const Trace& trace) {
  if (trace.model.objective == Objective::image_class)
    throw Error("loss", "a model of texts, whose tokens tell what was to be predicted", trace.model.name,
                "what a picture shows stands nowhere in it; its class scores are what there is");
  if (trace.model.objective == Objective::masked_token && targets(trace).empty())
    throw Error("loss", "a masked token, which this model is asked for", "none",
                "mask a token that the text has (command line: --mask 3)");
  if (trace.model.objective == Objective::next_token && trace.tokens.size() < 2)
    throw Error("loss", "a text of two tokens or more", std::to_string(trace.tokens.size()),
                "the first token is given, not predicted");
  if (!trace.logits.defined() || trace.logits.dim(0) != static_cast<Index>(trace.tokens.size()))
    throw Error("loss", "a trace with the logits of all positions", "one without");
}
}  // namespace

LossReport read_token_losses(const Trace& trace) {
  need_losses(trace);
  const std::vector<double> losses = token_losses(trace);
  const std::vector<Target> all = targets(trace);
  std::map<std::int32_t, int> counts;
  for (const Target& target : all) ++counts[target.token];
  LossReport out;
  double sum = 0;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    const Index position = all[i].row;
    TokenLoss& t = out.tokens.emplace_back();
    t.position = position;
    t.target = all[i].token;
    t.loss = losses[i];
    t.probability = std::exp(-losses[i]);
    const float own = trace.logits.at(position, t.target);
    t.rank = 1;
    for (Index id = 0; id < trace.logits.dim(1); ++id) {
      const float other = trace.logits.at(position, id);
      t.rank += other > own || (other == own && id < t.target);
    }
    const NextToken best = top_next(trace, 1, static_cast<int>(position)).front();
    t.best = best.id;
    t.best_probability = best.probability;
    sum += losses[i];
    t.running_mean = sum / static_cast<double>(i + 1);
    t.unigram = -std::log(static_cast<double>(counts[t.target]) / static_cast<double>(losses.size()));
    out.unigram += t.unigram / static_cast<double>(losses.size());
  }
  out.mean = sum / static_cast<double>(losses.size());
  out.uniform = std::log(static_cast<double>(trace.logits.dim(1)));
  return out;
}

namespace {
/// How many tokens there must be for every position that edits of these queries name, from either end.
Index tokens_named(const std::vector<Intervention>& edits) {
  Index least = 1;
  const auto name = [&](int position) { least = std::max<Index>(least, position < 0 ? -position : position + 1); };
  for (const Intervention& edit : edits) {
    if (!edit.enabled || edit.target.stack == Stack::encoder) continue;
    if (const auto& at = edit.target.positions) name(at->first), name(at->last);
    for (const int position : edit.action->positions()) name(position);
    if (edit.target.stack == Stack::cross) continue;  // its keys are the source's
    for (const int position : edit.action->key_positions()) name(position);
  }
  return least;
}
}  // namespace

PrefixCheck check_prefixes(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx, const Trace& trace,
                           int most) {
  if (trace.model.objective != Objective::next_token)
    throw Error("loss", "a model that reads from the left", trace.model.name,
                "every token of an encoder sees the later ones: no beginning of the text stands for itself");
  need_losses(trace);
  const auto n = static_cast<Index>(trace.tokens.size());
  const Index least = tokens_named(request.edits);
  if (least >= n)
    throw Error("loss: prefixes", "edits of positions that a beginning of the text has",
                fmt::format("position {} of {} tokens", least - 1, n), "switch them off in the list of edits");
  const Index count = std::min<Index>(std::max(most, 1), n - least);
  const std::vector<std::int32_t> ids = trace.ids();
  RunRequest alone = request;
  alone.text.clear();
  alone.ids_are_whole = true;
  alone.capture = {.maps = MapStorage::none};
  alone.capture.all_logits = false;
  PrefixCheck out;
  const ModelConfig& config = loaded.model->config();
  // LongRoPE turns a long text's keys otherwise than a short one's: its beginnings alone are other texts to the model.
  if (config.position == PositionKind::rotary && in_text(config.rotary, n) != config.rotary)
    throw Error("loss: prefixes", fmt::format("a text of at most {} tokens", config.rotary.original_context),
                fmt::format("{}", n), trace.model.name + " turns queries and keys by other angles in a longer one");
  for (Index i = 0; i < count; ++i) {
    const Index length = count == 1 ? least : least + i * (n - 1 - least) / (count - 1);
    alone.ids.assign(ids.begin(), ids.begin() + length);
    const auto short_run = run(loaded, alone, Ctx{.backend = ctx.backend, .stop = ctx.stop});
    PrefixCheck::Prefix& prefix = out.prefixes.emplace_back();
    prefix.length = length;
    prefix.loss = next_token_loss(short_run->logits.select(0, short_run->logits.dim(0) - 1), nth(ids, length));
    const Tensor whole = trace.logits.select(0, length - 1);
    prefix.difference = greatest_gap(whole, short_run->logits.select(0, short_run->logits.dim(0) - 1));
    out.magnitude = std::max(out.magnitude, greatest_gap(whole, Tensor::zeros(whole.shape())));
    out.largest = std::max(out.largest, prefix.difference);
    if (ctx.progress) *ctx.progress = static_cast<float>(i + 1) / static_cast<float>(count);
  }
  return out;
}

}  // namespace headscope
