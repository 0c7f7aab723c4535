#pragma once
// The residual stream by depth: how long it is at every position, and what the attention and the MLP of each block put
// into it. x is a row of the stream, f what a part adds to it:
//   norm     ‖x‖ = √Σ x²                          after the embedding, every attention and every MLP
//   added    ‖f‖                                   hook_attn_out, hook_mlp_out, hook_layer_out
//   cosine   x · f / (‖x‖ ‖f‖)                     with the stream that it is added to: 0 = a new direction, < 0 = it
//                                                  takes away from what is there
// Where a learned number s multiplies the stream that leaves a block, all that stands in it with it (Gemma 4), that is
// a part, too: it adds f = (s − 1) x, along the stream or against it.
// With the norm before each part the stream only ever gains terms, and grows with depth; with the norm behind each sum
// it has the norm's own length after every part (Xiong et al., On Layer Normalization in the Transformer Architecture,
// 2020).

#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/analysis/logit_lens.h"

namespace headscope {

/// Euclidean norm.
double norm_of(std::span<const float> row);

struct ResidualStream {
  struct Part {
    enum class Kind { attention, mlp, input, scale, convolution };
    std::string name;  ///< "0 attn", "0 mlp", "0 input", "0 scale", "0 convolution"
    int layer = 0;
    Kind kind = Kind::attention;
    Index stage = 0;  ///< where the stream holds it first; of a block whose parts read the same stream, of both
  };
  std::vector<LogitLens::Stage> stages;  ///< as residual_stages()
  Tensor norm;                           ///< (stage, position) ‖x‖
  std::vector<Part> parts;               ///< in the order of the pass
  Tensor added;                          ///< (part, position) ‖f‖
  Tensor cosine;                         ///< (part, position) of x and f; NaN where one of them is 0

  /// What the number of a part `scale` makes of the stream, s: ⟨s x, x⟩ / ⟨x, x⟩ = 1 + cosine · added / ‖x‖.
  double factor(std::size_t part, Index position) const;
  /// The product of all of them: what is left of the embedding where the last block ends. 1 where there are none.
  double factors(Index position) const;
  /// The parts that come between a stage and the one before it.
  std::vector<std::size_t> parts_of(Index stage) const;

  /// Mean over positions of a row of one of the three; NaN cells are left out.
  static double mean(const Tensor& values, Index row);
};

std::set<SiteKind> residual_stream_sites(const Model& model);

/// `trace` must have recorded residual_stream_sites(); what its edits did is in them. Throws Error naming a site that
/// is missing.
ResidualStream read_residual_stream(const Trace& trace);

}  // namespace headscope
