#pragma once
// The norm before each part of a block, x' = x + part(norm(x)) (pre-LN), against behind each sum, x' = norm(x +
// part(x)) (post-LN; Vaswani et al., Attention Is All You Need, 2017), after Xiong et al., On Layer Normalization in
// the Transformer Architecture, 2020. Both are the one forward pass; the norms are moved by the edit "post norm".

#include <cstdint>
#include <memory>
#include <vector>

#include "core/analysis/residual_stream.h"
#include "core/run/run_request.h"

namespace headscope {

/// The loaded model as it is (its edits included, but for those that move norms), and with every norm moved behind its
/// sum. The same weights: it was trained with one of the two only, so this says what they lean on, not which is better.
struct NormPlacement {
  struct Run {
    std::shared_ptr<const Trace> trace;  ///< with residual_stream_sites(), the norms' outputs and all logits
    ResidualStream stream;
    double loss = 0;  ///< mean nats per token; NaN for one token
  };
  Run pre, post;
  std::vector<double> kl;  ///< (position) KL(pre ‖ post) of the next token, nats
};
/// Throws as run().
NormPlacement compare_norm_placement(const LoadedModel& loaded, const RunRequest& request, const Ctx& ctx);
/// What both runs record.
std::set<SiteKind> norm_placement_sites(const Model& model);

/// A stack of GPT-2 blocks with random weights, N(0, 1/width) and gains of 1, on random tokens: before any training.
struct RandomStack {
  int layers = 12, width = 64, heads = 4, mlp = 256, tokens = 32, vocabulary = 128;
  std::uint64_t seed = 1;
  bool operator==(const RandomStack&) const = default;
};
/// By block, 0 … layers − 1. The loss is the mean cross-entropy of the next (random) token.
struct StackDepth {
  std::vector<double> residual;           ///< mean ‖x‖ of the stream leaving the block
  std::vector<double> residual_gradient;  ///< ‖∂loss/∂x‖ of that stream, all positions (Frobenius)
  std::vector<double> weight_gradient;    ///< ‖∂loss/∂W‖ of the MLP's output matrix (Frobenius)
  double loss = 0;                        ///< nats
};
struct RandomStacks {
  RandomStack stack;
  StackDepth pre, post;  ///< the same weights and tokens
};
/// Throws Error on a stack that cannot be built (heads that do not divide the width) or is larger than 64 layers, a
/// width of 1,024, an MLP of 8,192, 512 tokens, a vocabulary of 65,536 or 100 million parameters together, and
/// Cancelled.
RandomStacks random_stacks(const RandomStack& stack, const Ctx& ctx);

}  // namespace headscope
