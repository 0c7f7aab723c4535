#pragma once
// A Tap sees, and may replace, the tensor at a Site. Recording and intervening are the same mechanism.

#include <limits>
#include <memory>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/trace/attention_rule.h"
#include "core/trace/head_id.h"
#include "core/trace/site.h"

namespace headscope {

/// What T5 adds to the scores of a head: a learned number for each bucket of distances
/// (core/attention/positions/t5_bias.h); or what BEiT adds, for each way from patch to patch
/// (core/attention/positions/place_bias.h).
struct BucketBias {
  std::vector<float> bias;  ///< by bucket
  int max_distance = 128;
  bool both_sides = false;      ///< later keys have buckets of their own
  Index rows = 0, columns = 0;  ///< > 0: of patches, whose ways the buckets are
};

/// What a head of a DeBERTa has for every distance: a score gains scale · (q_i·keys[δ] + k_j·queries[δ]), with the row
/// δ of distance i − j (core/attention/positions/disentangled.h).
struct DistanceVectors {
  Tensor keys, queries;  ///< (2 · span, d_head), unit inner stride; undefined where the model has not that term
  Index span = 0;        ///< rows on either side of distance 0
  int max_distance = 0;  ///< > 0: where the last row begins; 0: every distance below `span` has its own
};

/// How one head of one layer turns q·k into a pattern.
struct HeadRule {
  std::shared_ptr<const AttentionRule> rule;  ///< which keys a query may see, and the bias
  float scale = 1;                            ///< what q·k is multiplied by: 1 / (√d_head · temperature)
  /// What the model itself does to the scores of visible keys; 0 = nothing, or `rule` does it already.
  float cap = 0;                                         ///< they are bent to cap · tanh(score ÷ cap),
  double slope = 0;                                      ///< then lose slope · |i − j| (ALiBi) …
  double slope_unit = 0;                                 ///< … > 0: rounded on the way: rounded_alibi_rule()
  float sink = -std::numeric_limits<float>::infinity();  ///< AttentionRule::sink of every row
  std::shared_ptr<const BucketBias> buckets = {};        ///< and gain what T5 adds; null = nothing
  /// What scores gain before all that, as soon as queries and keys are known, but for these rows.
  std::shared_ptr<const DistanceVectors> distances = {};
  std::vector<KeyRange> without_distances = {};
};

class Tap {
 public:
  virtual ~Tap() = default;
  /// Asked once per head and pass, before its scores are computed: returns the rule to go on with. A mask or a
  /// temperature is set here rather than in the scores, so that masked cells can open again and long maps stay
  /// factored.
  virtual HeadRule head_rule(HeadId head, HeadRule usual) const {
    (void)head;
    return usual;
  }
  /// Asked before the tensor is computed. A site nobody wants may be fused away (scores, pattern, per-head results).
  virtual bool wants(Site site) const = 0;
  /// Called once per wanted site and pass, in forward order, on the thread that runs the pass. Returns the tensor to go
  /// on with: `value` itself to observe, or another of the same shape to intervene (a different shape is an Error).
  virtual Tensor at(Site site, const Tensor& value) = 0;
};

/// Several taps in order: each sees what the one before it returned. Put recorders last.
class TapChain final : public Tap {
 public:
  explicit TapChain(std::vector<Tap*> taps) : taps_(std::move(taps)) {}
  HeadRule head_rule(HeadId head, HeadRule usual) const override;
  bool wants(Site site) const override;
  Tensor at(Site site, const Tensor& value) override;

 private:
  std::vector<Tap*> taps_;
};

}  // namespace headscope
