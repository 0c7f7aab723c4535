#pragma once
// The three ways in which Titans (Behrouz, Zhong & Mirrokni 2024, section 4) joins its memory (neural_memory.h) to
// attention, on the queries, keys and values of one head. Attention sees what titans_mask() lets it see, with
// softmax(scale · q·k); the memory is asked and taught with queries and keys of length 1. N(x) = x ÷ rms(x).
//   context  of each segment, memory first recalls hᵢ = M(qᵢ) from the segments before (eq. 21); attention y reads
//            persistent tokens, what was recalled (under the keys kᵢ) and the segment itself (22, 23); then memory is
//            taught y (24) and asked for it, oᵢ = yᵢ ⊗ M(yᵢ) (25).
//   gate     memory and attention with a window read side by side: oₜ = yₜ ⊗ Mₜ(qₜ) (26 – 28).
//   layer    memory reads first; attention with a window reads, under the same keys, what it says:
//            oₜ = Σ wₜₛ Mₛ(qₛ) (29 – 31).
// Of gate and layer, memory reads the persistent tokens before the text. ⊗ is "any non-linear gating"; in the paper's
// experiments y and M(·) are "normalised using learnable vector-valued weights, followed by a non-linearity σ(.)".
// Ours: which of the two σ takes in is a choice, N(y) ⊙ σ(N(M)) or σ(N(y)) ⊙ σ(N(M)); and what the paper learns besides
// is left where it begins: gains of 1 in N, persistent tokens drawn, the projections of y to memory's keys and values
// the identity (to keys of another width: cut off, or filled with zeros). Or memory is taught and asked as a head's
// keys and queries are, k → y, o = y ⊗ M(q).
// A segment of MAC is read whole in the paper: what was recalled for its later tokens stands before its earlier ones
// (22), and memory is asked when it has been taught all of it (24, 25). A model that goes on token by token cannot do
// so: `causal` lets a token see what was recalled for tokens up to itself, and asks memory for it as soon as it was
// taught. Gate and layer are causal as they are. Thread rule: pure functions.

#include <stop_token>

#include "core/attention/neural_memory.h"

namespace headscope {

struct PersistentTokens {
  Tensor k;  ///< (persistent, d)
  Tensor v;  ///< (persistent, d_v)
};
/// Drawn from `seed`, each number as large as the keys and the values are in the mean square. (Those of the first token
/// alone: then no later token has a say.)
PersistentTokens persistent_tokens(Index count, const Tensor& k, const Tensor& v, std::uint64_t seed);

struct TitansJoined {
  TitansMask mask;
  MemoryLessons lessons;  ///< of the n tokens; what memory is taught under them
  Tensor recalled;  ///< (n, d_v): context: M(qᵢ) of the segments before; else Mₜ(qₜ), the token itself learnt
  Tensor weights;   ///< (n, mask.columns()): attention
  Tensor attended;  ///< (n, d_v): y; of `layer` it is the output
  Tensor gate;      ///< (n, d_v): σ(N(M(·))), 0 … 1; undefined for `layer`
  Tensor output;    ///< (n, d_v)
  /// (n, n), when asked for: what each value of the text counts for in `attended`, by way of attention and of memory.
  /// Exact for a memory of one matrix: attended = mixed · v + what persistent tokens give. Of a deeper one as if it
  /// were one matrix taught the same keys with the same α_t.
  Tensor mixed;
  std::vector<Tensor> states;  ///< likewise: of a memory of one matrix, W after each token, (d, d_v)
};
/// What the paper leaves open, or learns.
struct TitansReading {
  enum class Context { output, token } context = Context::output;    ///< MAC's memory: y → y, M(y); or k → y, M(q)
  enum class Gating { memory, both } gating = Gating::memory;        ///< N(y) ⊙ σ(N(M)), or σ(N(y)) ⊙ σ(N(M))
  enum class Segments { whole, causal } segments = Segments::whole;  ///< of MAC
};
/// What else is to be kept, and who may end it.
struct TitansKeeps {
  bool mixed = false, states = false;
  std::stop_token stop = {};
};
/// q, k (n, d); v (n, d_v). Throws Error as run_memory() does, and Cancelled.
TitansJoined join_memory(TitansForm form, const Tensor& q, const Tensor& k, const Tensor& v, float scale,
                         const MemoryRates& rates, const MemoryShape& shape, const PersistentTokens& persistent,
                         Index span, const TitansReading& reading = {}, const TitansKeeps& keeps = {});

}  // namespace headscope
