#pragma once
// Rotary position embedding (Su et al., RoFormer: Enhanced Transformer with Rotary Position Embedding, 2021): pair i of
// a query or key at position p turns by p · θ_i, θ_i = base^(−2i/d). A score then depends on positions by their
// difference alone:  ⟨R_m q, R_n k⟩ = Σ_i |q_i| |k_i| cos(φ_i + (m − n) θ_i),  φ_i the angle from k_i to q_i.

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor/tensor.h"

namespace headscope {

/// Which two numbers of a head make pair i. Hugging Face stores Llama half-split; the paper and GPT-J interleave. Both
/// are the same mechanism on permuted dimensions.
enum class RotaryLayout {
  half_split,   ///< (x_i, x_{i + d/2})
  interleaved,  ///< (x_2i, x_{2i + 1})
};

struct RotaryConfig {
  double base = 10000;
  int width = 0;     ///< only the first so many dimensions of a head turn; 0 = all
  bool odd = false;  ///< a width of one less was asked for, which is no number of pairs: θ_i = base^(−2i/(width − 1))
  RotaryLayout layout = RotaryLayout::half_split;
  enum class Scaling { none, linear, ntk, yarn, llama3, longrope, dynamic } scaling = Scaling::none;
  double factor = 1;                                           ///< s: how much longer than in training
  double low_frequency_factor = 1, high_frequency_factor = 4;  ///< llama3; yarn's α = 1 and β = 32
  int original_context = 0;  ///< llama3, yarn, longrope, dynamic: L, the context in training
  /// yarn: what γ grows along: how often a pair turns, or the pair's number, between those that turn α and β times;
  /// from a whole pair to a whole pair, or not. The paper has the first, its authors' code and most models the last
  /// two.
  enum class Ramp { turns, pairs, whole_pairs } ramp = Ramp::turns;
  double magnitude = 0;                    ///< what queries and keys are multiplied by; 0: what the scaling says
  std::vector<double> divisors = {};       ///< longrope: what θ of each pair is divided by
  std::vector<double> long_divisors = {};  ///< the same in texts of more than L tokens
  double long_magnitude = 0;               ///< > 0: longrope's magnitude in these (Phi-3.5-MoE)
  double query_growth = 0;                 ///< β of query_growth(), of queries alone; 0 = they do not grow
  int growth_from = 0;                     ///< what is added to a position there
  int pairs = -1;  ///< ≥ 0: only the first so many pairs turn, at the θ that they have among all ("proportional")
  bool operator==(const RotaryConfig&) const = default;
};

/// "none", "linear", "ntk", "yarn", "llama3": in the order in which a chooser lists them. What only a file can say (the
/// numbers of "longrope") or what depends on the text ("dynamic") is not among them.
struct RotaryScalingInfo {
  RotaryConfig::Scaling scaling;
  std::string_view id, title, formula, source;
};
std::span<const RotaryScalingInfo> rotary_scalings();
const RotaryScalingInfo& info(RotaryConfig::Scaling scaling);

/// The rotation in a text of `tokens`: of longrope the list for that length, of dynamic the base. The others are the
/// same in every text.
RotaryConfig in_text(const RotaryConfig& own, Index tokens);

/// `own` stretched by `factor` with the constants of the method's paper, for a model trained on `context` tokens.
RotaryConfig rescaled(const RotaryConfig& own, RotaryConfig::Scaling scaling, double factor, int context);

/// θ_i for i = 0 … d/2 − 1, d being config.width or else d_head, in radians per token; L θ_i / 2π is how often pair i
/// turns within the trained context.
///   linear  θ ÷ s                                     (position interpolation; Chen et al., 2023)
///   ntk     base · s^(d/(d−2)) in place of base       (bloc97, NTK-aware scaled RoPE, 2023)
///   yarn    θ (1 − γ) ÷ s + θ γ, γ = (turns − α)/(β − α) cut to 0 … 1   (Peng et al., YaRN, 2023, "NTK by parts")
///   llama3  the same form with other α and β          (Dubey et al., The Llama 3 Herd of Models, 2024)
///   longrope  θ ÷ a number for each pair that was searched for   (Ding et al., LongRoPE, 2024)
///   dynamic as none, as far as L; see in_text()
std::vector<double> rotary_frequencies(const RotaryConfig& config, int d_head);
/// What queries and keys are multiplied by besides: the model's own number, or YaRN's √(1/t) = 0.1 ln s + 1; 1
/// otherwise.
double rotary_magnitude(const RotaryConfig& config);

/// What a query at `position` is multiplied by: 1 + β ln(1 + ⌊(position + growth_from) ÷ L⌋), so that attention over
/// many keys stays as sharp (Meta, Llama 4, 2025; Ministral 3).
double query_growth(const RotaryConfig& config, Index position);

/// Cosines and sines of position · θ_i for positions [first, first + count), times `magnitude`: each (count, d_head/2).
struct RotaryTable {
  Tensor cosine, sine;
};
RotaryTable rotary_table(const std::vector<double>& frequencies, Index first, Index count, double magnitude = 1);

/// `table`, whose first row stands at `first`, for queries of that width: times their growth. Where a part of them
/// turns the table has pairs for the others, too, which grow and do not turn; pairs are neighbours then (interleaved).
RotaryTable of_queries(const RotaryTable& table, const RotaryConfig& config, Index first, Index d_head);

std::pair<Index, Index> rotary_pair(Index i, Index d_head, RotaryLayout layout);

/// The dimensions of x (token, d_head) that turn, as (token, width) with pairs (i, i + width/2) whatever their layout;
/// x itself where that is all of it.
Tensor turning_part(const Tensor& x, const RotaryConfig& config);

/// One vector turned to `position`, in double precision. REQUIRES x.size() = 2 · frequencies.size().
std::vector<double> rotated(std::span<const double> x, double position, std::span<const double> frequencies,
                            RotaryLayout layout = RotaryLayout::half_split, double magnitude = 1);

/// A pair's share of the score of one query and one key before rotation: amplitude · cos(phase + distance · θ).
struct RotaryPart {
  double amplitude = 0;                   ///< |q_i| |k_i|
  double phase = 0;                       ///< angle from k_i to q_i, radians in (−π, π]
  double query_angle = 0, key_angle = 0;  ///< of q_i and of k_i
  double query_norm = 0, key_norm = 0;
  double at(double distance, double theta) const;  ///< distance = query position − key position
};
std::vector<RotaryPart> rotary_parts(std::span<const double> q, std::span<const double> k,
                                     RotaryLayout layout = RotaryLayout::half_split);
/// scale · magnitude² · part of every pair: together the score.
std::vector<double> rotary_scores(std::span<const RotaryPart> parts, const RotaryConfig& config, double distance,
                                  double scale);

}  // namespace headscope
