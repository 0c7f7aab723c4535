#pragma once
// Text from a model, token by token, with a key-value cache.

#include <cstdint>
#include <functional>
#include <vector>

#include "core/base/random.h"
#include "core/model/model.h"

namespace headscope {

struct SamplingSettings {
  double temperature = 1;  ///< 0 = always the most probable token
  int top_k = 0;           ///< only the k most probable; 0 = all
};

/// One token drawn from softmax(logits / temperature), ties by id. `logits` (vocab).
std::int32_t sample_token(const Tensor& logits, const SamplingSettings& settings, Random& random);

/// Continues `prompt` (at least one token) by at most `count` tokens, at most to the end of the context, until `found`
/// returns false. Throws Error as Model::forward, and Cancelled.
void sample_text(const Model& model, const Ctx& ctx, const std::vector<std::int32_t>& prompt, int count,
                 const SamplingSettings& settings, Random& random, const std::function<bool(std::int32_t)>& found);

}  // namespace headscope
