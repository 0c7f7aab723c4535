#pragma once
// How one token is chosen from logits: temperature, top-k, top-p over the full vocabulary, and one random number.

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/random.h"
#include "core/tensor/tensor.h"

namespace headscope {

struct SamplingSettings {
  double temperature = 1;  ///< logits are divided by it; 0 = always the most probable token
  int top_k = 0;     ///< only the k most probable (Fan et al., Hierarchical Neural Story Generation, 2018); 0 = all
  double top_p = 1;  ///< then the fewest whose shares reach p (Holtzman et al., The Curious Case of Neural Text
                     ///< Degeneration, 2020); 1 = all
  bool greedy() const { return !(temperature > 0); }
  bool operator==(const SamplingSettings&) const = default;
};

/// Throws Error at `where` when a number is out of range.
void check(const SamplingSettings& settings, const std::string& where);

/// The full vocabulary, most probable first, ties by id. Sums in double.
struct TokenDistribution {
  std::vector<std::int32_t> ids;
  std::vector<double> plain;     ///< softmax(logits): what the model says
  std::vector<double> tempered;  ///< softmax(logits / temperature); greedy: 1 for the first
  std::vector<double> kept;      ///< what is drawn from: `tempered` of the first `count`, divided by their sum; else 0
  std::size_t count = 0;         ///< tokens that are not cut
  std::size_t after_top_k = 0;   ///< tokens that top-k leaves; top-p cuts those from `count` on
};
/// `logits` (vocab), at least one.
TokenDistribution token_distribution(const Tensor& logits, const SamplingSettings& settings);
/// Its first id, without the others.
std::int32_t most_probable(const Tensor& logits);
/// −Σ p ln p in nats.
double entropy_of(std::span<const double> probabilities);
/// Which entry of `kept` holds u in [0, 1): the first whose cumulative sum exceeds it.
std::size_t place_of(const TokenDistribution& distribution, double u);

/// The random number of step `index` of a text: the same as the draws of Random(seed) one after another, but known
/// without them, so that a text can be continued anywhere.
double draw_of(std::uint64_t seed, std::uint64_t index);

/// One token drawn. `logits` (vocab).
std::int32_t sample_token(const Tensor& logits, const SamplingSettings& settings, Random& random);

}  // namespace headscope
