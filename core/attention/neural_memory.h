#pragma once
// The long-term memory of Titans (Behrouz, Zhong & Mirrokni, Titans: Learning to Memorize at Test Time, 2024): a small
// network that learns while it reads. Its loss on a token is ‖M(k_t) − v_t‖²; the gradient of that loss is the
// surprise.
//   S_t = η S_{t−1} − θ ∇ℓ(M_{t−1}; k_t, v_t)     past surprise fades, momentary surprise comes in
//   M_t = (1 − α_t) M_{t−1} + S_t                  and what is no longer needed is forgotten
// and it answers a query by M_t(q_t), without learning. And the masks with which the paper joins it to attention.
// In the paper α_t is a learnt function of the token. Nothing is learnt here: α_t is one number for all tokens, or
// (ours) follows the two things that the paper says it should, how surprising the token is and how full the memory:
//   α_t = σ(logit α + a ρ_t + b (f_t − 1))
//   ρ_t = (s_t − s̄_{t−1}) ÷ (s_t + s̄_{t−1})       −1 … 1: the token's surprise s_t = ‖∇ℓ‖ against the running mean,
//   s̄_t = s̄_{t−1} + (s_t − s̄_{t−1}) ÷ min(t, h)   the mean of the first h tokens, then one that forgets at rate 1 ÷ h;
//   f_t = ‖M_{t−1}‖_F ÷ (√c v̄_t), v̄_t² = mean of ‖v_s‖², s ≤ t: 1 for one matrix that holds c values under orthogonal
//                                                  keys of length 1
// so that α_t = α where the token surprises as the ones before did and the memory holds c pairs. ρ is 0 for the first
// token, f is 0 where all values are.
// Thread rule: pure functions.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/tensor/tensor.h"
#include "core/trace/attention_rule.h"

namespace headscope {

/// What makes α_t another for each token.
struct AdaptiveForgetting {
  bool on = false;
  double surprise = 8;  ///< a ≥ 0
  double fill = 1;      ///< b ≥ 0
  Index span = 8;       ///< h ≥ 1, tokens
  double capacity = 8;  ///< c > 0, pairs
};
struct MemoryRates {
  double momentum = 0.9;  ///< η, 0 … 1: what is left of the past surprise
  double learning = 0.1;  ///< θ > 0: what the momentary surprise counts
  double forgetting = 0;  ///< α, 0 … 1: what is lost of the memory at each token
  AdaptiveForgetting adaptive = {};
};
/// α_t from ρ_t and f_t. 0 and 1 stay what they are.
double adaptive_forgetting(const MemoryRates& rates, double relative_surprise, double fill);

/// Row `row` of x (n, d): what a memory is taught and asked.
std::vector<double> tensor_row(const Tensor& x, Index row);

/// What the memory is: a matrix, or several with tanh between them (then drawn from `seed`, N(0, 1/width)).
struct MemoryShape {
  Index hidden = 0;  ///< 0: M(k) = W k, W = 0 at first; else M(k) = W₂ tanh(W₁ k), with `hidden` numbers between
  std::uint64_t seed = 1;
  Index depth = 1;  ///< hidden layers, where hidden > 0: 2 is W₃ tanh(W₂ tanh(W₁ k))
};
/// Numbers of all its matrices, for keys of width d and values of width d_v.
Index memory_numbers(Index d, Index d_v, const MemoryShape& shape);

/// The memory itself, for whoever teaches and asks it in an order of their own.
class NeuralMemory {
 public:
  /// Keys and queries of width d, values of width d_v.
  NeuralMemory(Index d, Index d_v, const MemoryRates& rates, const MemoryShape& shape);
  ~NeuralMemory();

  struct Lesson {
    double loss = 0, surprise = 0;  ///< before the token was learned
    double forgetting = 0;          ///< α_t
  };
  /// `forgetting`: in place of the α_t that follows from the rates.
  Lesson learn(const std::vector<double>& key, const std::vector<double>& value, std::optional<double> forgetting = {});
  /// M(q). Throws Error naming the token learned last when the memory has grown beyond all bounds.
  std::vector<double> answer(const std::vector<double>& query) const;
  /// Of a memory of one matrix: W transposed, (d, d_v).
  Tensor state() const;
  /// ‖M‖_F, over all its matrices.
  double size() const;
  /// All its numbers, matrix after matrix from the key on, row-major; and with one of them moved.
  std::vector<double> numbers() const;
  void move(std::size_t number, double by);

 private:
  struct Layers;
  std::unique_ptr<Layers> layers_;
};

struct MemoryLessons {
  std::vector<double> surprise;    ///< (n): ‖∇ℓ‖ of the token, before it was learned
  std::vector<double> loss;        ///< (n): ‖M_{t−1}(k_t) − v_t‖²
  std::vector<double> forgetting;  ///< (n): α_t
  std::vector<double> size;        ///< (n): ‖M_t‖_F; empty unless forgetting is adaptive
  /// Teaches and takes down.
  void teach(NeuralMemory& memory, const std::vector<double>& key, const std::vector<double>& value,
             const MemoryRates& rates);
};

struct MemoryRun : MemoryLessons {
  Tensor output;               ///< (n, d_v): M_t(q_t), after the token itself was learned
  std::vector<Tensor> states;  ///< of a memory of one matrix, when asked for: W after each token, (d, d_v), transposed
};

/// q, k (n, d); v (n, d_v). Throws Error naming the token when the memory grows beyond all bounds (θ too large for the
/// length of the keys).
MemoryRun run_memory(const Tensor& q, const Tensor& k, const Tensor& v, const MemoryRates& rates,
                     const MemoryShape& shape = {}, bool states = false);

/// A memory of one matrix answers with a mixture of the values it was given: output_t = Σ_s w_ts v_s exactly. (n, n),
/// signed, zero above the diagonal. `forgetting`: α_t of each token, where it is not the same for all.
Tensor memory_weights(const Tensor& q, const Tensor& k, const MemoryRates& rates,
                      const std::vector<double>& forgetting = {});

/// How memory and attention are joined.
enum class TitansForm {
  context,  ///< MAC: segments; each sees the persistent tokens, what memory recalls for it, and itself causally
  gate,     ///< MAG: a window beside the memory, whose outputs are multiplied; persistent tokens in front
  layer,    ///< MAL: the memory reads first, attention with a window reads what it says; persistent tokens in front
};
/// Who sees what: columns are the persistent tokens, then (context only) one recalled token for each position, then the
/// n tokens; rows are the n tokens. `span`: tokens in a segment, or in the window. `ahead`: a token of a segment sees
/// what was recalled for all of it, as in the paper's figure; else for tokens up to itself.
struct TitansMask {
  Index persistent = 0, recalled = 0, tokens = 0;
  std::vector<std::uint8_t> hidden;  ///< row-major, 1 = not seen
  Index columns() const { return persistent + recalled + tokens; }
};
TitansMask titans_mask(TitansForm form, Index n, Index persistent, Index span, bool ahead = true);
/// The predicate itself, for one cell of that mask.
bool titans_sees(TitansForm form, Index query, Index column, Index n, Index persistent, Index span, bool ahead = true);

}  // namespace headscope
