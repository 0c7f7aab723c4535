#pragma once
// How far a run is from a witness: the plain float64 definition of the same model (core/model/plain.h), or a capture
// that another program made.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/model/plain.h"
#include "core/run/run_request.h"

namespace headscope {

/// What a float32 pass may differ by and still compute the same. Patterns, absolute: a weight is off by at most a
/// quarter of what the difference of two scores is off by, and a score of size S is known to some S · 1e-7: tiny
/// random models of every family stay below 2e-6, the bundled model whose scores were set large by hand (to 107) comes
/// to 1.0e-5. Logits
/// have a scale of their own, so theirs is a share of their spread, the largest less the smallest of the text: at a
/// spread of 30 no probability moves by 1 %. A loss is in nats, above 1 nat relative to itself. What a state space
/// amounts to may be any number: above 1 it is relative to the largest of its layer.
namespace verify_bounds {
inline constexpr double pattern = 5e-5, logits = 1e-4, loss = 1e-4;
}

/// The largest |run − witness| of one kind, and where: of a pattern its layer, head, query and key; of logits the
/// query and the token id (`key`); of losses the query. NaN, which agrees with nothing, where either has one.
struct Gap {
  double value = 0, bound = 0;
  int layer = -1, head = -1;
  Index query = -1, key = -1;
  Stack stack = Stack::only;  ///< of a pattern, in encoder-decoders
  bool agrees() const { return value <= bound; }
};

struct Verification {
  std::vector<Gap> patterns;  ///< of each layer that the witness has
  std::optional<Gap> logits;  ///< `value` as it is; `bound` is the share times the spread
  std::optional<Gap> losses;  ///< needs the logits of all tokens, and two tokens
  double spread = 0;          ///< of the witness's logits
  bool agrees() const;
};

/// `witness` may lack patterns (of a layer: none) and logits (no rows), or have those of the last token alone.
/// REQUIRES a trace of the same tokens with maps and all logits.
Verification verify(const Trace& trace, const plain::Pass& witness);

/// A safetensors file of another program or of `capture`: `tokens` (I32 or I64, [token]), and of
/// `blocks.{i}.attn.hook_pattern` [head, query, key] and `logits` ([token, vocab], or of the last token alone) what
/// there is; each may have a batch axis of 1 in front, and logits TransformerLens 4's name for them (unembed.hook_out).
/// Throws Error where it has neither, on other shapes, and on ids outside the vocabulary.
struct ReferenceCapture {
  std::vector<std::int32_t> ids;
  plain::Pass values;
};
ReferenceCapture read_reference(const std::filesystem::path& file, const ModelConfig& config);

}  // namespace headscope
