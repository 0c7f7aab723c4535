#pragma once
// The long-term memory of Titans (Behrouz, Zhong & Mirrokni, Titans: Learning to Memorize at Test Time, 2024): a small
// network that learns while it reads. Its loss on a token is ‖M(k_t) − v_t‖²; the gradient of that loss is the
// surprise.
//   S_t = η S_{t−1} − θ ∇ℓ(M_{t−1}; k_t, v_t)     past surprise fades, momentary surprise comes in
//   M_t = (1 − α) M_{t−1} + S_t                    and what is no longer needed is forgotten
// and it answers a query by M_t(q_t), without learning. And the masks with which the paper joins it to attention.
// Thread rule: pure functions.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/trace/attention_rule.h"

namespace headscope {

struct MemoryRates {
  double momentum = 0.9;  ///< η, 0 … 1: what is left of the past surprise
  double learning = 0.1;  ///< θ > 0: what the momentary surprise counts
  double forgetting = 0;  ///< α, 0 … 1: what is lost of the memory at each token
};

/// Row `row` of x (n, d): what a memory is taught and asked.
std::vector<double> tensor_row(const Tensor& x, Index row);

/// What the memory is: a matrix, or two with tanh between them (then drawn from `seed`, N(0, 1/width)).
struct MemoryShape {
  Index hidden = 0;  ///< 0: M(k) = W k, W = 0 at first; else M(k) = W₂ tanh(W₁ k)
  std::uint64_t seed = 1;
};

/// The memory itself, for whoever teaches and asks it in an order of their own.
class NeuralMemory {
 public:
  /// Keys and queries of width d, values of width d_v.
  NeuralMemory(Index d, Index d_v, const MemoryRates& rates, const MemoryShape& shape);
  ~NeuralMemory();

  struct Lesson {
    double loss = 0, surprise = 0;  ///< before the token was learned
  };
  Lesson learn(const std::vector<double>& key, const std::vector<double>& value);
  /// M(q). Throws Error naming the token learned last when the memory has grown beyond all bounds.
  std::vector<double> answer(const std::vector<double>& query) const;
  /// Of a memory of one matrix: W transposed, (d, d_v).
  Tensor state() const;

 private:
  struct Layers;
  std::unique_ptr<Layers> layers_;
};

struct MemoryRun {
  Tensor output;                 ///< (n, d_v): M_t(q_t), after the token itself was learned
  std::vector<double> surprise;  ///< (n): ‖∇ℓ‖ of the token, before it was learned
  std::vector<double> loss;      ///< (n): ‖M_{t−1}(k_t) − v_t‖²
  std::vector<Tensor> states;  ///< of a memory of one matrix, when asked for: W after each token, (d, d_v), transposed
};

/// q, k (n, d); v (n, d_v). Throws Error naming the token when the memory grows beyond all bounds (θ too large for the
/// length of the keys).
MemoryRun run_memory(const Tensor& q, const Tensor& k, const Tensor& v, const MemoryRates& rates,
                     const MemoryShape& shape = {}, bool states = false);

/// A memory of one matrix answers with a mixture of the values it was given: output_t = Σ_s w_ts v_s exactly. (n, n),
/// signed, zero above the diagonal.
Tensor memory_weights(const Tensor& q, const Tensor& k, const MemoryRates& rates);

/// How memory and attention are joined.
enum class TitansForm {
  context,  ///< MAC: segments; each sees the persistent tokens, what memory recalls for it, and itself causally
  gate,     ///< MAG: a window beside the memory, whose outputs are multiplied; persistent tokens in front
  layer,    ///< MAL: the memory reads first, attention with a window reads what it says; persistent tokens in front
};
/// Who sees what: columns are the persistent tokens, then (context only) one recalled token for each position, then the
/// n tokens; rows are the n tokens. `span`: tokens in a segment, or in the window.
struct TitansMask {
  Index persistent = 0, recalled = 0, tokens = 0;
  std::vector<std::uint8_t> hidden;  ///< row-major, 1 = not seen
  Index columns() const { return persistent + recalled + tokens; }
};
TitansMask titans_mask(TitansForm form, Index n, Index persistent, Index span);
/// The predicate itself, for one cell of that mask.
bool titans_sees(TitansForm form, Index query, Index column, Index n, Index persistent, Index span);

}  // namespace headscope
