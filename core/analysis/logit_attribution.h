#pragma once
// Direct logit attribution (Elhage et al., A Mathematical Framework for Transformer Circuits, 2021): the residual
// stream that the last norm reads is a sum of what the embedding, every head and every MLP wrote, and with the norm's
// scale frozen at what it was in this run, a logit is linear in that sum. With u = W_U[:, token] (− W_U[:, against]),
//   LayerNorm: logit = Σ_parts part · d + bias · u,  d = s · (g ∘ u − mean(g ∘ u)),  s = 1 / √(var(residual) + ε);
//   RMSNorm:   the same without the mean and the bias,                              s = 1 / √(mean(residual²) + ε).
// The parts sum to the logit. It tells what each part wrote directly, not what later blocks made of it.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/edits/intervention.h"
#include "core/model/model.h"
#include "core/trace/trace.h"

namespace headscope {

/// Which number is taken apart.
struct AttributionOf {
  Index position = -1;                       ///< row of the logits; below 0 it counts from the end
  std::int32_t token = 0;                    ///< whose logit
  std::optional<std::int32_t> against = {};  ///< logit(token) − logit(against)
};

struct AttributionPart {
  enum class Kind {
    token_embedding,
    position_embedding,
    head,
    attention_bias,  ///< the output bias of a block's attention
    cross_head,      ///< of an encoder-decoder's attention to its source
    cross_bias,
    unembedding_bias,
    mlp,
    norm_bias,  ///< of the last norm
    remainder   ///< what edits of the residual stream, or of what a block adds to it, put in; only where it is more
                ///< than rounding
  } kind;
  int layer = -1, head = -1;
  double value = 0;     ///< logits
  bool attends = true;  ///< its layer
};
/// "embedding", "positions", "head 1.0", "attn bias 1" ("mixer bias 1" of a layer that does not attend), "MLP 1", "norm
/// bias" (the last norm's), "edits".
std::string name(const AttributionPart& part);

struct LogitAttribution {
  AttributionOf of;                    ///< with the position counted from 0
  double logit = 0;                    ///< what the pass gave
  double scale = 1;                    ///< s, frozen
  std::vector<AttributionPart> parts;  ///< in the order of the pass
  Tensor by_source;        ///< (layer · heads + head, key): each head's part, split over the positions it read from:
                           ///< α · (v · W_O · d). An edit of z is not in it. Undefined of a state space, whose gate
                           ///< stands between
  Tensor cross_by_source;  ///< (layer · heads + head, source position): likewise of cross-attention; else undefined

  double sum() const;
  /// Value of a part; 0 when the model has no such part.
  double value(AttributionPart::Kind kind, int layer = -1, int head = -1) const;
};

/// What a part of the residual stream is multiplied by to give its share of the number: `d` and the frozen `scale` s of
/// above; `bias` is the last norm's own share. `trace` must have recorded resid_post and all logits.
struct LogitDirection {
  std::vector<double> d;  ///< (d_model)
  double scale = 1, bias = 0;
};
LogitDirection logit_direction(const Model& model, const Trace& trace, const AttributionOf& of);

std::set<SiteKind> attribution_sites(const Model& model);

/// `trace` must have recorded attribution_sites(), its maps and all logits; `edits` are those that it was run with:
/// what a head writes is z times W_O as they leave it. Throws Error on a position or a token that is not there.
LogitAttribution logit_attribution(const Model& model, const Trace& trace, const AttributionOf& of,
                                   const std::vector<Intervention>& edits = {});

}  // namespace headscope
