#pragma once
// Attention weighted by what it carries. A weight says how much of a value is taken, not how large that value is: a
// head that parks its attention on a token whose value is nearly zero writes nearly nothing (Kobayashi et al.,
// Attention is Not Only a Weight: Analyzing Transformers with Vector Norms, 2020).
//   value   α_ij ‖v_j‖            what is mixed into z
//   output  ‖α_ij v_j W_O‖ = α_ij ‖v_j W_O‖   (α ≥ 0) what is written to the residual stream; v_j includes its bias.
//           Where a gate stands behind attention (ModelConfig::output_gate): α_ij ‖(v_j ∘ σ(g_i)) W_O‖. Where a norm
//           of what all heads put out does (ModelConfig::z_norm): W_O with its gains, and times what it divides row i
//           by

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/model/weights.h"
#include "core/trace/head_id.h"
#include "core/trace/trace.h"

namespace headscope {

enum class Weighting { attention, value, output };
std::string_view name(Weighting weighting);  ///< "attention", "value", "output"
/// What stands between what a head mixes and its output matrix: the query's gate g (ModelConfig::output_gate), or a
/// norm of all heads together with gains γ (ModelConfig::z_norm).
enum class BehindHeads { nothing, gate, norm };
BehindHeads behind_heads(const ModelConfig& config);
/// "‖α v W_O‖", with that: "‖α (v ∘ σ(g)) W_O‖", "‖α (v ∘ γ) W_O‖ ÷ rms(z)".
std::string_view formula(Weighting weighting, BehindHeads behind);

/// What a trace must have recorded of a layer for what stands below.
std::set<SiteKind> weighting_sites(const ModelConfig& config);

/// Norm of what each key offers to each query, (query, key): 1, ‖v_j‖ or ‖v_j W_O‖; one row, which is that of all
/// queries, where none of them has a gate or a norm in between.
Tensor offered_norms(const Trace& trace, const ModelWeights& weights, HeadId head, Weighting weighting);
/// One number of it, without the others.
double offered_norm(const Trace& trace, const ModelWeights& weights, HeadId head, Weighting weighting, Index query,
                    Index key);
/// The same of each key alone; with gates or norms the mean over the queries that can see it.
std::vector<float> key_norms(const Trace& trace, const ModelWeights& weights, HeadId head, Weighting weighting);

/// The head's map with every column multiplied by its norm; the same mask. Kind `effective`, unless it is the attention
/// itself.
AttentionMap weighted_map(const Trace& trace, const ModelWeights& weights, HeadId head, Weighting weighting);

/// What weighting changes, per head.
struct WeightedHead {
  HeadId id;
  /// Share of the map's whole mass that lies on key 0, rows 1 and on.
  double first_attention = 0, first_value = 0, first_output = 0;
  /// Share of rows whose strongest key stays the strongest when weighted by output.
  double same_top = 0;
};
std::vector<WeightedHead> weighted_heads(const Trace& trace, const ModelWeights& weights);

}  // namespace headscope
