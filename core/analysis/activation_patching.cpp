#include "core/analysis/activation_patching.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/edits/freeze_pattern_edit.h"
#include "core/edits/patch_edit.h"
#include "core/edits/text_pairing.h"
#include "core/metrics/next_token.h"
#include "core/metrics/next_token_change.h"
#include "core/trace/token_alignment.h"

namespace headscope {

namespace {

constexpr std::array sites{SiteKind::resid_pre, SiteKind::resid_mid, SiteKind::resid_post, SiteKind::attn_out,
                           SiteKind::mlp_out,   SiteKind::z,         SiteKind::q,          SiteKind::k,
                           SiteKind::v,         SiteKind::pattern};
constexpr std::size_t by_position = 5;
/// Below this the answers of both prompts are the same, and a share of their difference means nothing.
constexpr double least_difference = 1e-4;

EditAction patch_of(const PatchingRequest& request) {
  if (request.site == SiteKind::pattern) return FreezePattern{request.clean, request.align};
  return Patch{request.align, request.site, request.clean};
}

}  // namespace

std::span<const SiteKind> patching_sites() {
  return sites;
}

bool is_by_head(SiteKind site) {
  return std::ranges::find(sites.begin() + by_position, sites.end(), site) != sites.end();
}

AnswerPair likely_answers(const Trace& clean, const Trace& corrupted) {
  for (const Trace* each : {&clean, &corrupted}) (void)most_probable(*each);  // or an Error that says why there is none
  const int vocab = static_cast<int>(clean.logits.dim(1));
  std::vector<double> change(static_cast<std::size_t>(vocab));
  for (const NextToken& token : top_next(clean, vocab)) nth(change, token.id) += token.probability;
  for (const NextToken& token : top_next(corrupted, vocab)) nth(change, token.id) -= token.probability;
  return {static_cast<std::int32_t>(std::ranges::max_element(change) - change.begin()),
          static_cast<std::int32_t>(std::ranges::min_element(change) - change.begin())};
}

std::shared_ptr<const Trace> Patching::patched(const std::shared_ptr<const Trace>& run) const {
  return request.stack == Stack::encoder && run->encoder ? run->encoder : run;
}

double Patching::recovered(std::size_t cell) const {
  return (difference[cell] - corrupted_difference) / (clean_difference - corrupted_difference);
}

PatchingSweep::PatchingSweep(LoadedModel loaded, PatchingRequest request) : loaded_(std::move(loaded)) {
  known_.request = std::move(request);
}

EditProbe PatchingSweep::prepare(std::vector<std::vector<Intervention>>& cells, const Ctx& ctx) {
  const PatchingRequest& request = known_.request;
  if (std::ranges::find(sites, request.site) == sites.end())
    throw Error("site", "one of resid_pre, resid_mid, resid_post, attn_out, mlp_out, z, q, k, v, pattern",
                std::string(info(request.site).pattern));
  RunRequest run;
  run.model = request.model;
  run.add_bos = request.add_bos;
  const bool two = loaded_.model->encoder() != nullptr;  // then prompts are sources, beside one target
  const bool pictures = loaded_.model->config().vision.has_value();
  if (two) run.text = request.target;
  const auto reads = [&](const std::string& prompt) {
    if (pictures)
      run.image = prompt;
    else
      (two ? run.source : run.text) = prompt;
  };
  reads(request.clean);
  run.capture.maps = MapStorage::none;
  run.capture.all_logits = false;
  known_.clean = headscope::run(loaded_, run, Ctx{ctx.backend, nullptr, ctx.stop});
  reads(request.corrupted);
  EditProbe probe(loaded_, run, false, ctx);
  known_.corrupted = probe.before();

  const auto prompt_of = [&](const Trace& trace) { return two ? trace.encoder->ids() : trace.ids(); };
  const bool same = pictures ? std::ranges::equal(known_.clean->patches.values(), known_.corrupted->patches.values())
                             : prompt_of(*known_.clean) == prompt_of(*known_.corrupted);
  if (same)
    throw Error("corrupted prompt",
                pictures ? "one that differs from the clean one" : "a text that differs from the clean one",
                pictures ? "the same picture" : "the same tokens");
  // Of the decoder and of cross-attention it is the target, which is the same in both.
  const std::vector<std::int32_t> clean = known_.patched(known_.clean)->ids(),
                                  corrupted = known_.patched(known_.corrupted)->ids();
  known_.partner = align_positions(request.align, corrupted, clean);
  known_.answers = request.answers ? *request.answers : likely_answers(*known_.clean, *known_.corrupted);
  probe.set_answers(known_.answers);
  known_.clean_difference = logit_difference(*known_.clean, known_.answers.right, known_.answers.wrong);
  known_.corrupted_difference = probe.outcome(*known_.corrupted).logit_difference;
  if (std::isnan(known_.clean_difference) || std::isnan(known_.corrupted_difference))
    (void)likely_answers(*known_.clean, *known_.corrupted);  // throws: nothing is asked for
  if (std::abs(known_.clean_difference - known_.corrupted_difference) < least_difference)
    throw Error("answers", "two tokens between which the prompts decide differently",
                fmt::format("a logit difference of {:.4f} after both", known_.clean_difference),
                "change what the corrupted prompt says, or choose other answers");

  const ModelDims& dims = probe.dims(request.stack);
  const bool heads = is_by_head(request.site);
  const bool keys = request.site == SiteKind::k || request.site == SiteKind::v;
  known_.rows = dims.layers;
  int most_keys = dims.kv_heads;
  for (const LayerWidths& each : dims.widths) most_keys = std::max(most_keys, each.kv_heads);
  known_.columns = !heads ? static_cast<int>(corrupted.size()) : keys ? most_keys : dims.most_heads();
  for (int layer = 0; layer < known_.rows; ++layer)
    for (int column = 0; column < known_.columns; ++column) {
      const int own_keys = dims.widths_of(layer).kv_heads, group = keys ? dims.group(layer) : 1;
      if (!has_site(dims, {request.site, layer}) || (heads && column >= (keys ? own_keys : dims.heads_of(layer)))) {
        cells.emplace_back();  // nothing to patch
        continue;
      }
      HeadTarget target{layer, std::nullopt, std::nullopt, request.stack};
      if (heads)
        target.head = column * group;
      else
        target.positions = PositionRange{column, column};
      cells.push_back({{target, patch_of(request)}});
    }
  const auto first = std::ranges::find_if(cells, [](const auto& edits) { return !edits.empty(); });
  if (first == cells.end())
    throw Error("site", fmt::format("a site that {} has", loaded_.model->config().name),
                std::string(info(request.site).pattern));
  probe.know_sources(*first, ctx);
  return probe;
}

void PatchingSweep::measure(const EditProbe& probe, int index, const std::vector<Intervention>& edits, const Ctx& ctx) {
  const bool alone =
      edits.empty() || (!is_by_head(known_.request.site) && nth(known_.partner, index % known_.columns) < 0);
  known_.difference.push_back(alone ? std::nan("") : probe.after(edits, ctx).logit_difference);
}

std::shared_ptr<const Patching> PatchingSweep::result() const {
  return prepared() ? std::make_shared<const Patching>(known_) : nullptr;
}

}  // namespace headscope
