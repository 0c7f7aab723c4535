#pragma once
// The logit lens (nostalgebraist, interpreting GPT: the logit lens, 2020): what the model would answer if it stopped at
// an earlier place. Every residual stream goes through the model's own final norm and unembedding, as if no block came
// after it:
//   p(stage, position) = softmax(norm_final(residual) · W_U).
// It is the forward pass itself, entered behind the last block, so the last stage gives exactly the model's answer.

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/base/nth.h"
#include "core/metrics/next_token.h"
#include "core/model/model.h"
#include "core/trace/trace.h"

namespace headscope {

struct LogitLens {
  struct Stage {
    Site site;         ///< whose tensor was decoded
    std::string name;  ///< "embedding", "0 attn" (after the attention of block 0; "0 mixer" where it does not attend),
                       ///< "0 mlp" (after its MLP), "0 input" (after what the layer's own input adds), "0 scale"
                       ///< (times the layer's learned number)
  };
  std::vector<Stage> stages;  ///< in order of depth; the last is the model's own answer
  Index positions = 0;
  int kept = 0;                ///< tokens per cell in `top`
  std::vector<NextToken> top;  ///< (stage, position, kept), most probable first, ties by id
  Tensor entropy;              ///< (stage, position) −Σ p ln p over the full vocabulary, nats
  Tensor kl;                   ///< (stage, position) KL(answer ‖ stage), nats: how far from the model's own answer

  // Of the followed tokens, one per position; undefined when none is followed.
  std::vector<std::int32_t> followed;       ///< (position); −1 = none at this position
  Tensor followed_probability;              ///< (stage, position); NaN where none is followed
  Tensor followed_logit;                    ///< likewise
  std::vector<std::int32_t> followed_rank;  ///< (stage, position) 1 = the most probable, ties by id; 0 where none

  std::span<const NextToken> cell(Index stage, Index position) const {
    const auto n = static_cast<std::size_t>(kept);
    return std::span(top).subspan(static_cast<std::size_t>(stage * positions + position) * n, n);
  }
  std::int32_t rank(Index stage, Index position) const { return nth(followed_rank, stage * positions + position); }
};

/// The places where a residual stream can be read, in order of depth: before the first block, after every attention,
/// every MLP, every layer's own input, and the number that multiplies it.
std::vector<LogitLens::Stage> residual_stages(const ModelDims& dims);

/// The sites it reads: residual streams before, within and after every block.
std::set<SiteKind> logit_lens_sites(const Model& model);

/// `followed`: a token per position (see LogitLens), or empty. `trace` must have recorded logit_lens_sites(); its edits
/// are seen through the residual streams they changed. `ctx.tap` and `ctx.tape` must be null. Throws Error, Cancelled.
LogitLens logit_lens(const Model& model, const Ctx& ctx, const Trace& trace,
                     std::span<const std::int32_t> followed = {}, int keep = 5);

/// The same token at every position, or (−1) what each row is held against: targets() (core/metrics/next_token.h).
std::vector<std::int32_t> follow(const Trace& trace, std::int32_t token);

}  // namespace headscope
