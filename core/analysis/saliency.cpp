#include "core/analysis/saliency.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/base/error.h"
#include "core/base/nth.h"
#include "core/edits/intervention_tap.h"
#include "core/metrics/next_token.h"
#include "core/run/edit_pairs.h"

namespace headscope {

namespace {
/// All edits but norms that move at every position: those pass on what other ops made, and the gradient goes through
/// them. (A second such edit of a layer finds its norms moved and copies rows.)
std::vector<Intervention> past_which_nothing_flows(const std::vector<Intervention>& edits) {
  std::vector<Intervention> out, moved;
  for (const Intervention& edit : edits) {
    const auto same_layer = [&](const Intervention& other) {
      return !edit.target.layer || !other.target.layer || *edit.target.layer == *other.target.layer;
    };
    const bool whole = edit.enabled && edit.action->passes_gradients() && !edit.target.positions;
    (whole && std::ranges::none_of(moved, same_layer) ? moved : out).push_back(edit);
  }
  return out;
}
/// A ∘ ∂f/∂A of every head of a trace, by layer, and what it adds up to.
std::vector<Tensor> weigh(const Trace& trace, const std::vector<Tensor>& gradients, Tensor& importance, Tensor& reach) {
  const ModelDims& dims = trace.model.dims;
  std::vector<Tensor> all;
  importance = Tensor::full({dims.layers, dims.most_heads()}, std::numeric_limits<float>::quiet_NaN());
  reach = importance.copy();
  for (int layer = 0; layer < dims.layers; ++layer) {
    const Tensor& gradient = nth(gradients, layer);
    Tensor& weighted = all.emplace_back(Tensor::zeros(gradient.shape()));
    std::vector<float> row(static_cast<std::size_t>(gradient.dim(2)));
    for (int head = 0; head < dims.heads_of(layer); ++head) {
      const AttentionMap& map = trace.map({layer, head});
      double sum = 0, sizes = 0;
      for (Index i = 0; i < gradient.dim(1); ++i) {
        map.row(i, row);
        for (Index j = 0; j < gradient.dim(2); ++j) {
          const float weight = nth(row, j);
          // Where the rule hides a cell its gradient means nothing.
          if (weight == 0) continue;
          weighted.ref(head, i, j) = weight * gradient.at(head, i, j);
          sum += static_cast<double>(weighted.at(head, i, j));
          sizes += std::abs(static_cast<double>(weighted.at(head, i, j)));
        }
      }
      importance.ref(layer, head) = static_cast<float>(std::abs(sum));
      reach.ref(layer, head) = static_cast<float>(sizes);
    }
  }
  return all;
}
}  // namespace

Saliency read_saliency(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx, const Trace& trace,
                       const GradientOf& of) {
  const ModelDims& dims = trace.model.dims;
  const bool two = trace.encoder != nullptr;
  for (const Intervention& edit : request.edits)
    if (two && edit.enabled && (edit.target.stack == Stack::encoder || edit.target.stack == Stack::cross))
      throw Error("gradients", "edits of the decoder alone", "\"" + describe(edit) + "\"",
                  "switch it off in the list of edits");
  EditScene scene{dims, trace.ids(), {}};
  scene.model = loaded.model.get();
  scene.backend = &ctx.backend;
  scene.stop = ctx.stop;
  for (const SourceNeed& source : sources_of(request.edits)) {
    RunRequest plain = source_request(request, source.text);
    plain.capture = source.capture;
    scene.sources[source.text] = run(loaded, plain, Ctx{.backend = ctx.backend, .stop = ctx.stop});
  }
  InterventionTap edits(request.edits, scene);
  const InterventionTap cuts(past_which_nothing_flows(request.edits), scene);
  for (const SiteInfo& site : site_table())
    for (int layer = site.per_layer ? 0 : -1; layer < (site.per_layer ? dims.layers : 0); ++layer)
      if (cuts.wants({site.kind, layer}))
        throw Error("gradients", "edits that change masks, temperatures or rules, or move norms, only",
                    "one that replaces " + name(Site{site.kind, layer}) + ", past which no gradient flows",
                    "switch it off in the list of edits");
  Ctx own = ctx;
  own.tap = edits.empty() ? nullptr : &edits;
  const std::vector<std::int32_t> ids = trace.ids(), segments = trace.segments();
  own.segments = segments;
  own.patches = trace.patches;
  GradientOf asked = of;
  if (of.position < 0)
    asked.position = static_cast<int>(answer_position(trace).value_or(static_cast<Index>(trace.tokens.size()) - 1));
  if (trace.model.objective == Objective::image_class && (of.kind == GradientOf::Kind::loss || asked.position != 0))
    throw Error("gradients", "the score of a class, read at position 0 (CLS)",
                of.kind == GradientOf::Kind::loss ? "a loss, which no picture has by itself"
                                                  : "position " + std::to_string(asked.position));
  if (trace.model.objective == Objective::masked_token && of.kind == GradientOf::Kind::loss) {
    asked.targets.assign(ids.size(), -1);
    const std::vector<Target> masked = targets(trace);
    if (masked.empty())
      throw Error("gradients", "a masked token, for a loss", "none", "mask a token that the text has");
    for (const Target& target : masked) nth(asked.targets, target.row) = target.token;
  }

  Saliency out;
  const std::vector<std::int32_t> source_ids = two ? trace.encoder->ids() : std::vector<std::int32_t>();
  const GradientSource source{.tokens = source_ids, .patches = two ? trace.encoder->patches : Tensor()};
  out.gradients = input_gradients(*loaded.model, own, ids, asked, two ? &source : nullptr);
  out.weighted = weigh(trace, out.gradients.patterns, out.importance, out.reach);
  if (two) weigh(*trace.cross, out.gradients.cross_patterns, out.cross_importance, out.cross_reach);
  return out;
}

}  // namespace headscope
