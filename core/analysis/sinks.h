#pragma once
// Where attention rests when it has nothing to say (Xiao et al., Efficient Streaming Language Models with Attention
// Sinks, 2023; Gu et al., When Attention Sink Emerges in Language Models, 2024): how much weight the first token gets,
// and how little it gives, beside the V shape of whole layers (first tokens and recent ones; Xiao et al. 2023).

#include <vector>

#include "core/model/weights.h"
#include "core/trace/head_id.h"
#include "core/trace/trace.h"

namespace headscope {

/// Rows 1 and on of one head; key 0 is the first token. Medians are over the other tokens. Shares and entropies are NaN
/// for weights that are no probabilities.
struct SinkHead {
  HeadId id;
  double mass = 0;                            ///< mean weight on key 0
  double chance = 0;                          ///< of a head that spreads its weight evenly
  double value_norm = 0, value_median = 0;    ///< ‖v_0‖, and of the others
  double output_norm = 0, output_median = 0;  ///< ‖v_0 W_O‖, and of the others
  double carried = 0;                         ///< mean share of key 0 in Σ_j ‖α_j v_j W_O‖
  double learned = 0;  ///< mean share of a learned sink (attention_rule.h): 1 − row sum; 0 = none
  double entropy = 0, entropy_without = 0;  ///< mean nats; without key 0, renormalised (NaN: nothing is left)
};

/// One layer as the mean of its heads.
struct SinkLayer {
  /// (key) mean weight over the rows that come after the key, NaN for the last; where heads look ahead, over all other
  /// rows.
  std::vector<double> received;
  std::vector<double> value_norm;  ///< (key) ‖v‖, mean over heads
  std::vector<double> residual;    ///< (key) ‖residual stream‖ leaving the layer
  /// Attention against place in what a row sees, rows of the second half of the text: the row is cut into
  /// density.size() equal parts from the first token to the query, where heads look ahead to the last token; 1 = what
  /// even attention would give. First and last part high, the middle low = a V.
  std::vector<double> density;
  double v_depth = 0;  ///< the lower of the two ends ÷ mean of the middle half; NaN on a text too short to tell
};

struct SinkReport {
  bool ahead = false;             ///< heads look at keys behind their query
  std::vector<SinkHead> heads;    ///< layer by layer; of one that mixes tokens by a state all is NaN …
  std::vector<SinkLayer> layers;  ///< … but `residual`
};

/// `trace` must have recorded maps, v and resid_post. Throws Error on a text of fewer than 2 tokens.
SinkReport read_sinks(const Trace& trace, const ModelWeights& weights, int parts = 12);

/// A hidden dimension that stands out.
struct HiddenActivation {
  int layer = 0;  ///< of resid_post
  Index position = 0, dimension = 0;
  float value = 0;
  double ratio = 0;  ///< |value| / median |value| of that layer's residual stream
};
/// Which of them are massive. The usual rule is ours: small models have nothing that the paper's would find.
struct MassiveRule {
  double ratio = 100;    ///< at least so many times the median magnitude of its layer's residual stream …
  double magnitude = 0;  ///< … and above this
  bool met(const HiddenActivation& a) const;
  bool operator==(const MassiveRule&) const = default;
};
/// Sun et al., Massive Activations in Large Language Models, 2024: magnitude above 100, and about 1,000 times or more
/// the median magnitude of its hidden state.
inline constexpr MassiveRule massive_by_sun{1000, 100};

struct MassiveLayer {
  double median = 0;
  HiddenActivation largest;
  Index count = 0;         ///< how many meet the rule
  Index count_by_sun = 0;  ///< … and the paper's
};
struct MassiveActivations {
  MassiveRule rule;
  std::vector<MassiveLayer> layers;
  std::vector<HiddenActivation> found;  ///< all that meet the rule, largest ratio first
};
/// Of the recorded resid_post. REQUIRES rule.ratio > 0.
MassiveActivations massive_activations(const Trace& trace, const MassiveRule& rule = {});

}  // namespace headscope
