#pragma once
// The tokens that a model reckons with: those that its training has shown it, as far as the model itself tells. A
// vocabulary holds tokens that no text of the training had (bytes outside its alphabet, spellings of other corpora);
// random text made of them says nothing about a model's heads.

#include <cstdint>
#include <optional>
#include <vector>

#include "core/model/model.h"

namespace headscope {

struct ExpectedTokens {
  /// A token counts when its mean next-token probability is at least this share of even (1 / vocabulary).
  static constexpr double least_share = 0.01;
  static constexpr int rounds = 2, most_tokens = 64;
  std::vector<std::int32_t> ids;  ///< ascending, without the BOS
  int vocab = 0;
};

/// The mean is over the positions of random text that the model's own expectations made: what it expects at the start
/// (after the BOS; without one, after random tokens of the whole vocabulary) is the distribution that the tokens of the
/// first text are drawn from, independently of one another; what it expects along that text, of the second one's.
/// `rounds` texts of `most_tokens` tokens or the context. The same seed gives the same tokens. Throws Error or
/// Cancelled as forward() does. REQUIRES a model that says what comes next.
ExpectedTokens expected_tokens(const Model& model, std::optional<std::int32_t> bos, std::uint64_t seed, const Ctx& ctx);

}  // namespace headscope
