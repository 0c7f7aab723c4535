#pragma once
// The way of one position through the whole model, stage by stage, with the numbers that were there: token id →
// embedding (+ position) → blocks → last norm → unembedding → softmax.

#include <set>
#include <string>
#include <vector>

#include "core/metrics/next_token.h"
#include "core/model/model.h"
#include "core/trace/trace.h"

namespace headscope {

struct PathStage {
  Site site;
  std::string name;                              ///< "token embedding", "0 attention"
  std::string formula;                           ///< "W_E[id]", "x + attention(norm(x))"
  std::string shape;                             ///< of the whole tensor: "14 × 128"
  bool adds = false;                             ///< it is added to the stream, and not the stream itself
  Tensor row;                                    ///< (width) its numbers at the position
  double norm = 0, mean = 0, low = 0, high = 0;  ///< of these numbers
  Stack stack = Stack::only;                     ///< `cross`: what an encoder-decoder took from the source
};

struct TokenPath {
  Index position = 0;
  std::vector<PathStage> stages;   ///< in the order of the pass; the last are the logits
  std::vector<NextToken> answers;  ///< after the softmax, most probable first
};

/// Whether the unembedding is the token embedding again, as the loaded tensors say: the same memory.
struct WeightTying {
  bool tied = false;
  std::size_t matrix_bytes = 0;  ///< of one such matrix as it lies in memory (F32)
};
WeightTying weight_tying(const Model& model);

std::set<SiteKind> token_path_sites(const Model& model);
/// `trace` must have recorded token_path_sites() and all logits. Throws Error on a position that is not there.
TokenPath read_token_path(const Model& model, const Trace& trace, Index position, int answers = 5);

}  // namespace headscope
